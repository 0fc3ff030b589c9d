"""Which documents ``depl evaluate`` measures runs on, and what there is to say about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.markup import escape

from depl.cli.console import count, err
from depl.cli.taking import print_taken
from depl.core.errors import ConfigError, RunError

if TYPE_CHECKING:
    from depl.core.corpus import Corpus
    from depl.model.classifier import Classifier
    from depl.readers.columns import Columns
    from depl.readers.vocabularies import Vocabulary
    from depl.run.folder import Run


class Measured(NamedTuple):
    """Documents, the corpus that they are from, and what they are called within it."""

    corpus: Corpus
    name: str
    split: str
    report: str  # the name of the file for it


def set_aside_by(runs: Sequence[Path]) -> Measured:
    """The documents that the runs set aside; they must be the same in all of them."""
    from depl.run.folder import Run

    first, *others = [(path, Run.open(path).aside()) for path in runs]
    path, aside = first
    if aside is None:
        raise ConfigError(
            f"{path} set no documents aside to measure on. Name a corpus after the run: depl "
            f"evaluate {path} CORPUS"
        )
    for other, documents in others:
        if documents is None or documents.texts != aside.texts:
            raise ConfigError(
                f"{path} and {other} did not set the same documents aside, so one may have been "
                f"trained on what the other has not. Name a corpus that neither has seen."
            )
    return Measured(aside, path.resolve().name, "set aside", "set-aside")


def taken_as_unknown(model: Classifier) -> list[int]:
    """Labels that a run would not know but for the documents that it set aside."""
    from depl.run.folder import Run

    if model.folder is None:
        return []
    counts = model.train_counts  # feedback that was learnt may have brought documents
    return [i for i in Run.open(model.folder).labels_of_aside() if not counts[i]]


def said_unknown(aside: Corpus, unknown: Sequence[int]) -> str:
    """How many labels of the documents set aside are on no other document, in a sentence."""
    counts = aside.label_counts
    missed = counts[list(unknown)]
    carried, labels = int((missed > 0).sum()), count(int((counts > 0).sum()), "label")
    return (
        f"{carried:,} of the {labels} of these documents "
        f"{'is' if carried == 1 else 'are'} on no training document. New "
        f"documents will have such labels too, so they count as missed ({int(missed.sum()):,} of "
        f"{int(counts.sum()):,} assignments)"
    )


def read_measured(
    path: Path,
    runs: Sequence[Path],
    columns: Columns,
    split: str,
    *,
    vocabulary: Vocabulary | None = None,
    format: str | None,
    on_error: Literal["stop", "skip"],
    encoding: str | None = None,
) -> Measured:
    """The documents of a corpus; of a table, taken as the first run took those that it has."""
    from depl.readers.columns import Columns
    from depl.readers.corpora import read_records
    from depl.readers.recognising import is_table
    from depl.run.folder import Run

    run = Run.open(runs[0])
    kept = run.columns()
    table = is_table(path)
    data, taken = read_records(
        path,
        columns,
        kept=None if kept is None else Columns.from_json(kept),
        known=run.labels,
        vocabulary=vocabulary,
        format=format,
        on_error=on_error,
        splits=None if table else [split],
        encoding=encoding,
    )
    if taken is not None:
        print_taken(taken, data, chosen=columns.sheet is not None)
    [corpus] = data.splits.values()  # whatever the split was called
    name = path.resolve().name
    if table:
        _warn_of_trained(corpus, run)
        return Measured(corpus, name, "all documents", path.stem)
    if split in ("train", "trn"):
        warn(f"the split {split!r} was trained on, so these figures say little about new documents")
    return Measured(corpus, name, split, split)


def say_unknown(corpus: Corpus, run: Path) -> None:
    """How many labels of the documents the run cannot suggest."""
    from depl.run.folder import Run

    try:
        known = Run.open(run).labels
    except RunError:
        return
    counts = corpus.label_counts
    carried = [i for i in range(len(counts)) if counts[i]]
    unknown = [i for i in carried if known.get(corpus.labels[i].id) < 0]
    if unknown and len(unknown) == len(carried) and len(known):
        warn(
            f"{run} knows none of the {count(len(carried), 'label')} of these documents. Are they "
            f"named differently here? The documents have {corpus.labels[unknown[0]].id!r}, for "
            f"example, and the run has {known[0].id!r}"
        )
    elif unknown:
        n, total = int(sum(counts[i] for i in unknown)), int(counts.sum())
        warn(
            f"{run} does not know {len(unknown):,} of the {count(len(carried), 'label')} of these "
            f"documents; {n:,} of {total:,} assignments count as missed"
        )


def _warn_of_trained(corpus: Corpus, run: Run) -> None:
    asked = Counter(corpus.texts)
    n = sum(asked[text] for text in set(asked).intersection(run.train_texts()))
    if n:
        warn(
            f"{n:,} of these {count(len(corpus), 'document')} were trained on, so the figures are "
            f"too good; `depl evaluate {run.path}` takes those that were set aside"
        )


def warn(what: str) -> None:
    """Something to know about the figures."""
    err.print(f"[yellow]Note:[/] {escape(what)}.")
