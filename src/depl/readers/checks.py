"""What a format's reader finds, and the checks that make a ``Dataset`` of it in every format."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.hierarchy import links_back
from depl.core.indicator import flat_indicator
from depl.core.progress import track
from depl.core.scratch import TextSpool
from depl.readers.document import Document
from depl.readers.problems import Kind, Problems


class LabelRow(NamedTuple):
    """One label as it was found, and where."""

    where: str
    label: Label


class Layout(NamedTuple):
    """The files of a corpus: the folder, the document file of each split, the labels file."""

    folder: Path
    splits: dict[str, Path]
    labels: Path | None


class Contents(NamedTuple):
    """What a format's reader gives: the labels (None: those of the documents) and each split."""

    labels: list[LabelRow] | None
    documents: dict[str, Iterator[Document]]


class Format(Protocol):
    """What each module of a format offers."""

    DESCRIPTION: str
    """One line that says what the format is."""
    FILES: str
    """The file names by which it is recognised."""

    def look(self, folder: Path) -> Layout | None:
        """Find the files by their names; None when no split is there."""

    def load(self, layout: Layout, splits: Sequence[str], problems: Problems) -> Contents:
        """Read the labels at once and the documents of these splits one by one."""


class _Split(NamedTuple):
    """The documents of a split; millions of them need little memory."""

    ids: list[str]
    texts: TextSpool
    labels: array[int]  # their positions, document after document
    counts: array[int]  # how many each document has


def assemble(layout: Layout, contents: Contents, problems: Problems) -> Dataset:
    """Check labels and documents, note what is wrong, and keep the rest."""
    closed = contents.labels is not None
    known = _label_set(layout, contents.labels or [], problems)
    positions = {label_id: i for i, label_id in enumerate(known)}
    parts: dict[str, _Split] = {}
    for split, documents in track(
        contents.documents.items(), "Reading the corpus", len(contents.documents)
    ):
        parts[split] = _check(documents, positions, closed, problems)
        # A damaged file is a problem of its own already.
        if not parts[split].ids and not problems.fatal:
            where = layout.splits[split].name
            problems.add(Kind.EMPTY, where, f"no usable document for the {split} split")
    if closed:
        labels = LabelSet(known.values())
    else:
        # Numbered in the order of reading until here; sorted, any order of reading gives the same.
        labels = LabelSet(Label(label_id, label_id) for label_id in sorted(positions))
    place = np.zeros(len(labels), np.int64)
    place[[positions[label.id] for label in labels]] = np.arange(len(labels))
    corpora = {split: _corpus(part, place, labels) for split, part in parts.items()}
    return Dataset(labels, corpora, layout.folder.resolve().name or "corpus", closed)


def _corpus(part: _Split, place: NDArray[np.int64], labels: LabelSet) -> Corpus:
    """The documents, whose labels were numbered before they had a place in the set."""
    columns, counts = place[np.frombuffer(part.labels, np.int32)], np.array(part.counts, np.int64)
    Y = flat_indicator(columns, counts, len(labels))
    return Corpus(part.ids, part.texts.texts(), Y, labels)


def _label_set(layout: Layout, rows: list[LabelRow], problems: Problems) -> dict[str, Label]:
    """The labels by id, in the order of their file; the first of two with one id is kept."""
    known: dict[str, Label] = {}
    places = {row.label.id: row.where for row in rows}
    for where, label in rows:
        if label.id in known:
            problems.add(Kind.DUPLICATE_LABELS, where, repr(label.id))
            continue
        if not label.name.strip():
            problems.add(Kind.UNNAMED_LABELS, where, repr(label.id))
            # Without the label its documents would lose it, so its id is used as the name.
            label = replace(label, name=label.id)
        known[label.id] = label
    for label_id, parent in links_back({x.id: x.broader for x in known.values()}):
        problems.add(Kind.CIRCLES, places[label_id], f"{label_id!r} below {parent!r}")
        label = known[label_id]
        known[label_id] = replace(label, broader=tuple(x for x in label.broader if x != parent))
    if layout.labels is not None and not known:
        problems.add(Kind.EMPTY, layout.labels.name, "no usable label")
    return known


def _check(
    documents: Iterable[Document], positions: dict[str, int], closed: bool, problems: Problems
) -> _Split:
    """Keep the documents that have an id of their own, a text and a label."""
    part = _Split([], TextSpool(), array("i"), array("i"))
    seen: set[str] = set()
    for document_id, text, label_ids, where, *_ in documents:
        if document_id in seen:
            problems.add(Kind.DUPLICATE_DOCUMENTS, where, repr(document_id))
            continue
        seen.add(document_id)
        blank = not text or text.isspace()
        if not closed and not blank:
            for label_id in label_ids:
                positions.setdefault(label_id, len(positions))
        row = [positions[label_id] for label_id in label_ids if label_id in positions]
        if closed and len(row) < len(label_ids):
            for label_id in label_ids:
                if label_id not in positions:
                    problems.add(Kind.UNKNOWN_LABELS, where, repr(label_id))
        if blank:
            problems.add(Kind.NO_TEXT, where)
        elif not row:
            problems.add(Kind.NO_LABELS, where)
        else:
            part.ids.append(document_id)
            part.texts.append(text)
            part.labels.extend(row)
            part.counts.append(len(row))
    return part
