"""Files that belong together line by line: the texts, and the labels of each text."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from scipy.sparse import csr_array, load_npz

from depl.readers.assembling import Document
from depl.readers.files import lines
from depl.readers.trouble import Kind, Trouble


def lines_of_labels(path: Path, trouble: Trouble) -> list[str | None]:
    """What each line of a label file says; None where it is not UTF-8. Blank ends are dropped."""
    found = [text.strip() if whole else None for _, text, whole in lines(path, trouble)]
    while found and found[-1] == "":
        found.pop()
    return found


def with_label_lines(texts: Path, labels: Path, split: str, trouble: Trouble) -> Iterator[Document]:
    """Documents whose labels stand in the same line of another file, between spaces."""
    lengths = {texts.name: 0, labels.name: 0}
    surplus = False
    for text_line, label_line in zip_longest(lines(texts, trouble), lines(labels, trouble)):
        for name, line in ((texts.name, text_line), (labels.name, label_line)):
            lengths[name] += line is not None
        if text_line is not None and label_line is not None:
            if text_line[2] and label_line[2]:
                yield _document(texts, split, text_line[0], text_line[1], label_line[1].split())
        elif any(line is not None and line[1].strip() for line in (text_line, label_line)):
            # Blank lines at the end of one file belong to nothing and may stand there.
            surplus = True
    if surplus:
        _note_unequal(lengths, trouble)


def with_matrix(
    texts: Path,
    matrix: Path,
    columns: Sequence[str],
    labels: Path,
    split: str,
    trouble: Trouble,
) -> Iterator[Document]:
    """Documents whose labels are a row of a sparse matrix; ``columns`` are the label ids."""
    Y = _read_matrix(matrix, trouble)
    if Y is None:
        return
    n_documents, n_labels = Y.shape
    if n_labels != len(columns):
        _note_unequal({f"{matrix.name} (columns)": n_labels, labels.name: len(columns)}, trouble)
        return
    length, surplus = 0, False
    for number, text, whole in lines(texts, trouble):
        length = number
        if number > n_documents:
            surplus = surplus or bool(text.strip())
        elif whole:
            row = Y.indices[Y.indptr[number - 1] : Y.indptr[number]]
            yield _document(texts, split, number, text, [columns[column] for column in row])
    if surplus or length < n_documents:
        _note_unequal({texts.name: length, f"{matrix.name} (rows)": n_documents}, trouble)


def _document(path: Path, split: str, number: int, text: str, label_ids: Sequence[str]) -> Document:
    return Document(f"{path.name}:{number}", f"{split}-{number}", text, label_ids)


def _note_unequal(lengths: dict[str, int], trouble: Trouble) -> None:
    (first, n), (second, m) = lengths.items()
    trouble.add(Kind.UNEQUAL_LENGTHS, first, f"{n}, against {m} in {second}")


def _read_matrix(path: Path, trouble: Trouble) -> csr_array | None:
    """A scipy matrix with every index in range; loading it runs no code, as scipy bars pickle."""
    try:
        Y = csr_array(load_npz(path))
        Y.check_format(full_check=True)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        trouble.add(Kind.UNREADABLE, path.name, f"not a scipy sparse matrix: {error}")
        return None
    Y.eliminate_zeros()
    return Y
