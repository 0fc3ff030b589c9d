"""``depl explain``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from depl.cli.console import count, label_text, named, out, print_entry, print_json
from depl.cli.options import Json, RunFolder
from depl.cli.text_argument import TextSource, read_text

if TYPE_CHECKING:
    from depl.model.explanation import Explanation
    from depl.model.reasons import Match, Share

_BAR = 16  # characters of the longest bar
_MARGIN = 15  # where the second column begins
_AROUND = 70  # characters shown on either side of a match in a long text
_WHOLE = 700  # characters; shorter texts are shown whole
_PASSAGES = 3
_NAME = 16  # how wide the names of parts are at least
_OPENING = 90  # characters of a neighbour's text
_OF_PARTS = "score and rank by this part alone; + in favour or - against, in log-odds"


def explain(
    run: RunFolder,
    source: TextSource,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="LABEL",
            help="Label to explain, by id or name; by default the best suggestions.",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", metavar="N", min=1, help="Number of suggestions to explain.")
    ] = 3,
    neighbours: Annotated[
        int,
        typer.Option(
            "--neighbours", metavar="N", min=0, help="Number of similar training documents to show."
        ),
    ] = 3,
    as_json: Json = False,
) -> None:
    """Show why labels are suggested for a text: keywords, parts, similar documents."""
    from depl.model.classifier import Classifier

    text = read_text(source)
    model = Classifier.load(run)
    if label is not None:
        found = [model.explain(text, label, neighbours=neighbours)]
    else:
        found = model.explain_best(text, k, neighbours=neighbours)
    if as_json:
        objects = [explanation.to_json() for explanation in found]
        print_json(objects if label is None else objects[0])
        return
    for i, explanation in enumerate(found):
        if i:
            out.print()
        _print(explanation, text)
    legend = list(_legend(found))
    if legend:
        out.print("\n[dim]What the numbers are:[/]")
    for head, said in legend:
        print_entry(out, f"  {head:<{_MARGIN - 2}}", Text(said, "dim"))


def _legend(found: Sequence[Explanation]) -> Iterator[tuple[str, str]]:
    """What the numbers of the sections are, once for all explanations."""
    said = {
        "parts": (any(e.parts for e in found), _OF_PARTS),
        "keywords": (any(e.keywords for e in found), "what each word adds to the svm score"),
        "name": (any(e.name_words for e in found), "what each word adds to the name's similarity"),
        "neighbours": (any(e.neighbours for e in found), "similarity: 1 is the same, 0 nothing"),
    }
    shown = {head: words for head, (there, words) in said.items() if there}
    yield from shown.items()


def _print(e: Explanation, text: str) -> None:
    out.print(Text.assemble(label_text(e.label, "bold"), "  ", _status(e)))
    if not out.is_terminal:  # in a pipe a row is a line
        for head, body in _rows(e, text):
            out.print(Text(f"  {head:<{_MARGIN - 2}}") + body)
        return
    grid = Table.grid(Column(width=_MARGIN, style="dim"), Column(overflow="fold"))
    for head, body in _rows(e, text):
        grid.add_row(f"  {head}", body)
    out.print(grid)


def _rows(e: Explanation, text: str) -> Iterator[tuple[str, Text]]:
    yield "description", Text(e.description)
    for head, others in (("broader", e.broader), ("narrower", e.narrower)):
        if others:
            yield head, Text(named(others))
    longest = max((abs(part.contribution) for part in e.parts), default=0.0)
    ranked = [part for part in e.parts if part.rank is not None and part.score is not None]
    silent = [part.name for part in e.parts if part not in ranked]
    width = max([_NAME, *(1 + len(part.name) for part in ranked)])
    lines = [_part(part, longest, width) for part in ranked]
    if silent:
        lines.append(Text(f"not suggested by {', '.join(silent)}", "dim"))
    for i, line in enumerate(lines):
        yield "parts" if i == 0 else "", line
    yield from _matched("keywords", e.keywords)
    if e.svm is not None:
        s = e.svm
        total = f"{s.score:.2f} = {s.keywords:.2f} keywords {_signed(s.other_words)} other words"
        yield "svm score", Text(f"{total} {_signed(s.bias)} bias", "dim")
    yield from _matched("name", e.name_words)
    passages = list(_passages(text, [*e.keywords, *e.name_words]))
    for i, passage in enumerate(passages):
        yield "in the text" if i == 0 else "", passage
    for i, near in enumerate(e.neighbours):
        opening = " ".join(near.text.split())[:_OPENING]
        line = Text.assemble(f"{near.similarity:.2f}  ", (near.id, "bold"), "  ", (opening, "dim"))
        yield "neighbours" if i == 0 else "", line


def _status(e: Explanation) -> Text:
    documents = count(e.training_documents, "training document")
    if e.rank is None:
        return Text(f"not among the suggestions, {documents}", "yellow")
    probability = f"{e.probability:.1%}, " if e.probability is not None else ""
    return Text(f"{probability}suggestion {e.rank}, {documents}", "green")


def _part(part: Share, longest: float, width: int) -> Text:
    name = f"{part.name:<{width}}"
    bar = "█" * round(_BAR * abs(part.contribution) / longest) if longest else ""
    colour = "cyan" if part.contribution >= 0 else "red"
    score = 0.0 if part.score is None else part.score
    said = f"{name}score {score:6.2f}  rank {part.rank:>3}  {part.contribution:+6.2f}"
    return Text.assemble(said, "  ", (bar, colour))


def _matched(head: str, matches: Sequence[Match]) -> Iterator[tuple[str, Text]]:
    longest = max((abs(match.contribution) for match in matches), default=0.0)
    for i, match in enumerate(matches):
        bar = "█" * max(1, round(_BAR * abs(match.contribution) / longest)) if longest else ""
        times = "once" if len(match.spans) == 1 else f"{len(match.spans)} times"
        said = f"{match.term:<20}{match.contribution:+6.3f}  {times:<9}"
        yield head if i == 0 else "", Text.assemble(said, "  ", (bar, "cyan"))


def _passages(text: str, matches: Sequence[Match]) -> Iterator[Text]:
    """The text around the matches, with them highlighted; in a pipe they are put in « »."""
    spans = _joined({span for match in matches for span in match.spans})
    if not spans:
        return
    windows: list[list[int]] = []
    for start, end in spans:
        first, last = max(0, start - _AROUND), min(len(text), end + _AROUND)
        # No word is cut in half where there is a space to cut at.
        first = text.find(" ", first, start) + 1 or first if first else 0
        last = max(end, text.rfind(" ", end, last)) if last < len(text) else last
        if windows and first <= windows[-1][1]:
            windows[-1][1] = last
        else:
            windows.append([first, last])
    if len(text) <= _WHOLE:
        windows = [[0, len(text)]]
    for first, last in windows[:_PASSAGES]:
        last = min(last, first + _WHOLE)
        line, at = Text("… " if first else ""), first
        for start, end in (s for s in spans if first <= s[0] and s[1] <= last):
            line.append(_unbroken(text[at:start]), "dim")
            word = _unbroken(text[start:end])
            line.append(word if out.is_terminal else f"«{word}»", "bold black on yellow")
            at = end
        line.append(_unbroken(text[at:last]), "dim")
        yield line + Text(" …" if last < len(text) else "")
    if len(windows) > _PASSAGES:
        yield Text(f"and {count(len(windows) - _PASSAGES, 'more passage')}", "dim")


def _joined(spans: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same in order, those that overlap as one: terms do where words have no spaces."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _unbroken(text: str) -> str:
    return re.sub(r"\s", " ", text)


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '−'} {abs(value):.2f}"
