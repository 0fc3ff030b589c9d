"""What was taken from a table, in words; printed before anything long starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from rich.markup import escape

from depl.cli.console import count, err, print_entry
from depl.core.errors import ConfigError

if TYPE_CHECKING:
    from depl.core.corpus import Dataset
    from depl.readers.records import Taken
    from depl.readers.vocabularies import Vocabulary

_EXAMPLES = 3
_SOME = 10  # documents from which on labels that never repeat are no labels
_FEW = 30  # documents from which hardly anything is learnt
_MANY = (
    0.2  # of the labels: more with a separator in their names are not split where they should be
)


def concepts(path: Path | None, language: str | None) -> Vocabulary | None:
    """The vocabulary that --vocabulary names."""
    from depl.readers.vocabularies import read_vocabulary

    if path is None and language is not None:
        raise ConfigError(
            "--language is the language of a vocabulary's names: give --vocabulary as well."
        )
    return None if path is None else read_vocabulary(path, language)


def print_taken(taken: Taken, data: Dataset, *, chosen: bool = False) -> None:
    """The table, its columns, what became of its rows, and the spellings that are one label.

    ``chosen`` is whether somebody has named the sheet.
    """
    from depl.readers.fields import MARKS
    from depl.readers.records import COPY
    from depl.readers.spellings import lost_zeros

    columns = taken.columns
    err.print(f"[bold]{escape(taken.name)}[/]  {escape(taken.described)}")
    if " (not read: " in taken.described and not chosen:
        _line("sheets", "--sheet NAME reads another one")
    _line("text", columns.text_said)
    _line("labels", columns.labels_said)
    _line("id", columns.id or "none: rows are numbered")
    if taken.unused:
        _line("not used", ", ".join(taken.unused))
    n = sum(map(len, data.splits.values()))
    rows = f"{count(n, 'document')}, {count(len(data.labels), 'label')}"
    left_out = {why: n for why, n in taken.left_out.items() if why != COPY}
    if left_out:
        several = len(left_out) > 1
        reasons = ", ".join(f"{n:,} {why}" if several else why for why, n in left_out.items())
        rows += f"; {count(sum(left_out.values()), 'row')} left out: {reasons}"
    if taken.left_out[COPY]:
        rows += f"; {count(taken.left_out[COPY], 'row')} joined with those of the same id and text"
    _line("taken", rows)
    odd = [name for name in columns.labels if data.labels.get(name) >= 0]
    if odd and columns.separator != MARKS:
        _line(
            "header",
            f"{odd[0]!r} is also a label: does the first row hold the names of the columns?",
        )
    for other in (";", "|"):
        n = sum(other in label.name for label in data.labels)
        if n > _MANY * len(data.labels):
            said = f"{other!r} is in {n:,} of the labels: are the cells to be split there?"
            _line("separator", f"{said} --label-separator {other!r}")
    if lost_zeros(label.id for label in data.labels):
        _line(
            "zeros",
            "the labels are numbers, some of them one digit shorter: has a spreadsheet dropped "
            "zeros at the beginning? Keep codes as text there, or give them with --vocabulary",
        )
    if taken.variants:
        _line("spellings", _variants(taken.variants))
    if taken.matched is not None:
        vocabulary = taken.matched.vocabulary
        _line("vocabulary", f"{vocabulary.name}: {vocabulary.described}")
        _line("", taken.matched.said)
        taken.matched.warn()


def print_doubts(taken: Taken, data: Dataset) -> None:
    """What speaks against learning from a table as it was read, before anything long starts."""
    documents = sum(map(len, data.splits.values()))
    columns = " + ".join(taken.columns.labels)
    assigned = sum(corpus.Y.nnz for corpus in data.splits.values())
    if len(data.labels) == 1:
        _line(
            "check",
            f"every document has the label {data.labels[0].name!r}, so there is nothing to choose "
            f"from. Are the labels in another column than {columns}? --labels NAME",
        )
    elif documents >= _SOME and assigned == len(data.labels) == documents:
        _line(
            "check",
            f"every document has a label of its own, so nothing can be learnt about any. Is "
            f"{columns} the id of the rows? --labels NAME takes another column",
        )
    elif documents < _FEW:
        _line(
            "check",
            f"{count(documents, 'document is', 'documents are')} very few to learn from: some "
            f"hundreds are a good beginning, with several for each label",
        )


def _line(name: str, value: str) -> None:
    print_entry(err, f"  {name:<11}", value)


def _variants(variants: dict[str, list[str]]) -> str:
    """The labels that are spelt in several ways, and those with most spellings."""
    most = sorted(variants, key=lambda name: -len(variants[name]))[:_EXAMPLES]
    shown = "; ".join(f"{name!r} is also {_others(name, variants[name])}" for name in most)
    labels = count(len(variants), "label is", "labels are")
    return f"{labels} spelt in several ways: {shown}; --labels-as-they-are keeps them apart"


def _others(name: str, spellings: list[str]) -> str:
    """The other spellings; those that look the same are not written out."""
    composed = [normalize("NFC", spelling) for spelling in spellings]
    shown = [repr(other) for other in dict.fromkeys(composed) if other != name]
    if len(set(composed)) < len(spellings):
        shown.insert(0, "in another Unicode form")
    return ", ".join(shown[:_EXAMPLES])
