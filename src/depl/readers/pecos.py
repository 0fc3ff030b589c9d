"""PECOS: texts and label names line by line, and who carries what as a scipy matrix.

DEXML and Renee keep the same three things under other names; both are read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.checks import Contents, LabelRow, Layout
from depl.readers.files import SPLIT_NAMES, find_file, find_splits, needed_file
from depl.readers.pairing import lines_of_labels, with_matrix
from depl.readers.problems import Problems

DESCRIPTION = "PECOS (X.trn.txt, Y.trn.npz, output-items.txt) and DEXML (raw/trn_X.txt, raw/Y.txt)"
FILES = "X.trn.txt, X.tst.txt, Y.trn.npz, Y.tst.npz, output-items.txt; or raw/trn_X.txt, raw/Y.txt"
LABEL_FILES = ("output-items.txt", "raw/Y.txt")


def look(folder: Path) -> Layout | None:
    """Find ``X.{trn,tst}.txt`` or ``raw/{trn,tst}_X.txt``, and the label names."""
    splits = find_splits(folder, "X.{}.txt", "raw/{}_X.txt")
    return Layout(folder, splits, find_file(folder, *LABEL_FILES)) if splits else None


def load(layout: Layout, splits: Sequence[str], problems: Problems) -> Contents:
    """Read labels, and the documents of these splits; a label's id is its column in ``Y``."""
    labels = needed_file(layout.folder, LABEL_FILES, "the file with the name of each label")
    names = lines_of_labels(labels, problems)
    columns = [str(column) for column in range(len(names))]
    rows = [
        LabelRow(f"{labels.name}:{number}", Label(column, name))
        for number, (column, name) in enumerate(zip(columns, names, strict=True), start=1)
        if name is not None
    ]
    documents = {
        split: with_matrix(
            layout.splits[split],
            matrix_file(layout.folder, split),
            columns,
            labels,
            split,
            problems,
        )
        for split in splits
    }
    return Contents(rows, documents)


def matrix_file(folder: Path, split: str) -> Path:
    """The matrix of a split, which must be there."""
    names = [f"Y.{name}.npz" for name in SPLIT_NAMES[split]]
    return needed_file(folder, names, f"the matrix that says which {split} text has which labels")
