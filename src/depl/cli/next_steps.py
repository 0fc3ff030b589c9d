"""What ``depl fit`` says at its end: how good the run is, examples, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from depl.cli.console import copied, count, err, label_text, named
from depl.cli.measured import said_unknown, taken_as_unknown
from depl.core.display import shortened

if TYPE_CHECKING:
    from depl.core.corpus import Corpus

_K = 5
_SHOWN = 2  # of these documents, with what is suggested
_TEXT = 76  # characters of a text
_MOST = 2_000  # documents that quality is measured on: enough for a sentence


def print_next(run: Path, corpus: Path | None = None) -> None:
    """A sentence on the documents set aside, two of them, and three commands with real paths."""
    from depl.run.folder import Run

    folder = Run.open(run)
    if not folder.has("fusion"):
        return
    aside = folder.aside()
    name = copied(run)
    if aside is not None:
        _print_quality(run, aside.subset(range(min(len(aside), _MOST))))
        evaluate = f"depl evaluate {name}"
    else:
        where = "CORPUS" if corpus is None else copied(corpus)
        evaluate = f"depl evaluate {name} {where}"
    steps = {
        f"depl predict {name} FILE": "labels for new documents",
        evaluate: "all figures, and a report with charts and mistakes",
        f"depl serve {name}": "a web page to try it on",
    }
    width = max(map(len, steps))
    err.print("\nNext:")
    for command, purpose in steps.items():
        err.print(f"  [bold]{command:<{width}}[/]  {purpose}", soft_wrap=True)


def _print_quality(run: Path, aside: Corpus) -> None:
    """How good the suggestions are for documents that were set aside, and the first of them."""
    from depl import api
    from depl.evaluation.sentences import quality
    from depl.model.classifier import Classifier

    model = Classifier.load(run)
    unknown = taken_as_unknown(model)
    report = api.evaluate(model, aside, ks=(1, _K), unknown=unknown)
    err.print(f"\nOn the {count(len(aside), 'document')} set aside: {quality(report)}.")
    if unknown:
        err.print(f"{said_unknown(aside, unknown)}.")
    shown = aside.subset(range(min(len(aside), _SHOWN)))
    deeper = model.predict(shown.texts, _K + len(unknown))
    rows = deeper.without(unknown).top(_K).rows(model.labels)
    for i, (text, row) in enumerate(zip(shown.texts, rows, strict=True)):
        carried = {shown.labels[j].id: shown.labels[j] for j in shown.Y[[i]].indices}
        err.print(Text.assemble("\n  ", (shortened(text, _TEXT), "dim")))
        for label, score in row:
            mark = "✓" if carried.pop(label.id, None) else " "
            err.print(Text.assemble(f"  {score:6.2f} ", (mark, "green"), " ", label_text(label)))
        if carried:
            missed = named(list(carried.values()))
            err.print(Text.assemble("         ", (f"not suggested: {missed}", "dim")))
