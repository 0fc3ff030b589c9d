"""Files that belong together line by line: the texts, and the labels of each text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from scipy.sparse import csr_array, load_npz

from depl.readers.document import Document
from depl.readers.files import Source
from depl.readers.limits import check_zip
from depl.readers.lines import Line, lines, reason, usable
from depl.readers.problems import Kind, Problems


def lines_of_labels(path: Path, problems: Problems) -> list[str | None]:
    """The lines of a label file; None where one is not UTF-8. Blank ends are dropped."""
    source = Source(path, problems)
    found = [line.text.strip() if usable(line, source) else None for line in lines(source)]
    while found and found[-1] == "":
        found.pop()
    return found


def with_label_lines(
    texts: Path, labels: Path, split: str, problems: Problems
) -> Iterator[Document]:
    """Documents whose labels are in the same line of another file, between spaces."""
    first, second = Source(texts, problems), Source(labels, problems)
    lengths = {first.name: 0, second.name: 0}
    surplus = False
    for text, own in zip_longest(lines(first), lines(second)):
        lengths[first.name] += text is not None
        lengths[second.name] += own is not None
        if text is None or own is None:
            # Blank lines at the end of one file belong to nothing and do no harm.
            surplus = surplus or bool((text or own).text.strip())
        elif usable(text, first) & usable(own, second):
            yield _document(first, split, text, own.text.split())
    if surplus:
        _note_unequal(lengths, problems)


def with_matrix(
    texts: Path,
    matrix: Path,
    columns: Sequence[str],
    labels: Path,
    split: str,
    problems: Problems,
) -> Iterator[Document]:
    """Documents whose labels are a row of a sparse matrix; ``columns`` are the label ids."""
    Y = _read_matrix(matrix, problems)
    if Y is None:
        return
    n_documents, n_labels = Y.shape
    if n_labels != len(columns):
        _note_unequal({f"{matrix.name} (columns)": n_labels, labels.name: len(columns)}, problems)
        return
    source, length, surplus = Source(texts, problems), 0, False
    for line in lines(source):
        length = line.number
        if length > n_documents:
            surplus = surplus or bool(line.text.strip())
        elif usable(line, source):
            row = Y.indices[Y.indptr[length - 1] : Y.indptr[length]]
            yield _document(source, split, line, [columns[column] for column in row])
    if surplus or length < n_documents:
        _note_unequal({texts.name: length, f"{matrix.name} (rows)": n_documents}, problems)


def _document(source: Source, split: str, line: Line, label_ids: Sequence[str]) -> Document:
    where = source.place(line.number)
    return Document(f"{split}-{line.number}", line.text, label_ids, where)


def _note_unequal(lengths: dict[str, int], problems: Problems) -> None:
    (first, n), (second, m) = lengths.items()
    problems.add(Kind.UNEQUAL_LENGTHS, first, f"{n}, against {m} in {second}")


def _read_matrix(path: Path, problems: Problems) -> csr_array | None:
    """A scipy matrix with every index in range; loading it runs no code, as scipy bars pickle."""
    try:
        check_zip(path)
        Y = csr_array(load_npz(path))
        Y.check_format(full_check=True)
    except Exception as error:  # zipfile, numpy's parser of headers and scipy have many of them
        problems.add(Kind.UNREADABLE, path.name, f"not a scipy sparse matrix: {reason(error)}")
        return None
    Y.eliminate_zeros()
    return Y
