"""AttentionXML, LightXML and X-Transformer: labels are strings that read like names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.checks import Contents, LabelRow, Layout
from depl.readers.document import Document
from depl.readers.files import SPLIT_NAMES, Source, find_file, find_splits, needed_file
from depl.readers.lines import lines
from depl.readers.pairing import lines_of_labels, with_label_lines, with_matrix
from depl.readers.pecos import matrix_file
from depl.readers.problems import Problems

DESCRIPTION = "AttentionXML, LightXML (train_texts.txt, train_labels.txt), X-Transformer"
FILES = "train_texts.txt or train_raw_texts.txt, train_labels.txt; or label_map.txt and Y.trn.npz"


def look(folder: Path) -> Layout | None:
    """Find the text files; where there are raw texts and tokenised ones, the raw ones count."""
    splits = find_splits(folder, "{}_texts.txt") | find_splits(folder, "{}_raw_texts.txt")
    return Layout(folder, splits, find_file(folder, "label_map.txt")) if splits else None


def load(layout: Layout, splits: Sequence[str], problems: Problems) -> Contents:
    """Read labels, and the documents of these splits; a label's id is its string."""
    if layout.labels is None:
        names: list[str | None] = [*_labels_in_use(layout.folder, splits)]
        file = "the label lines"
    else:
        names = lines_of_labels(layout.labels, problems)
        file = layout.labels.name
    # A line with nothing usable is still a column of Y; its number is used instead.
    columns = [name or str(column) for column, name in enumerate(names)]
    rows = [
        LabelRow(f"{file}:{number}", Label(columns[number - 1], readable(name)))
        for number, name in enumerate(names, start=1)
        if name is not None
    ]
    documents = {split: _documents(layout, split, columns, problems) for split in splits}
    return Contents(rows, documents)


def readable(label: str) -> str:
    """A label string as words.

    Examples
    --------
    >>> readable("artificial_intelligence"), readable("e-mail"), readable("-")
    ('artificial intelligence', 'e mail', '-')
    """
    return re.sub(r"[\s_-]+", " ", label).strip() or label


def _label_files(split: str) -> list[str]:
    return [f"{name}_labels.txt" for name in SPLIT_NAMES[split]]


def _labels_in_use(folder: Path, splits: Sequence[str]) -> list[str]:
    """Every label string of these splits, sorted; bad lines are noted when they are read again."""
    purpose = "the labels of each text (or label_map.txt with a matrix Y)"
    paths = [needed_file(folder, _label_files(split), purpose) for split in splits]
    return sorted(
        {
            label
            for path in paths
            for line in lines(Source(path, Problems()))
            if not line.fault
            for label in line.text.split()
        }
    )


def _documents(
    layout: Layout, split: str, columns: Sequence[str], problems: Problems
) -> Iterator[Document]:
    texts = layout.splits[split]
    label_lines = find_file(layout.folder, *_label_files(split))
    if label_lines is not None:
        return with_label_lines(texts, label_lines, split, problems)
    matrix = matrix_file(layout.folder, split)
    return with_matrix(texts, matrix, columns, layout.labels or matrix, split, problems)
