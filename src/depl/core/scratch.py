"""Matrices and texts that may be larger than memory: what is large goes to files without a name.

The system removes such a file with the process, however that one ends. What is read back is
mapped: its pages are in memory as long as there is room, and are no part of what a process needs.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import explain_os_errors
from depl.core.texts import FEW, TextsOnDisk

_PORTION = 16_384  # rows of a matrix that are worked on at a time
_SMALL = 1 << 24  # entries of a matrix that is kept in memory: 128 MiB
_PASSING = 1 << 22  # and of one that is only gone through, once or twice
_TOGETHER = 1 << 24  # characters of texts that are read together


class ScratchFile:
    """A file without a name, to be written once and then read."""

    def __init__(self) -> None:
        self.folder = _folder()
        with explain_os_errors(self.folder):
            self.file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed below
        finalize(self, self.file.close)
        self._lock = Lock()

    def write(self, raw: Any) -> None:  # noqa: ANN401 - bytes, or the memory of an array
        """Write further bytes."""
        with explain_os_errors(self.folder):
            self.file.write(raw)

    def read(self, first: int, last: int) -> bytes:
        """The bytes between two places, for whatever thread."""
        with self._lock:
            self.file.seek(first)
            return self.file.read(last - first)

    def mapped(self, kind: type[np.generic]) -> NDArray[Any]:
        """What was written, as an array that cannot be written to."""
        with explain_os_errors(self.folder):
            self.file.flush()
        if os.fstat(self.file.fileno()).st_size == 0:  # nothing cannot be mapped
            return np.empty(0, kind)
        memory = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(memory, kind)


def _folder() -> Path:
    """Where TMPDIR says, or else /var/tmp: /tmp is memory itself on many systems."""
    lasting = Path("/var/tmp")
    given = any(name in os.environ for name in ("TMPDIR", "TEMP", "TMP"))
    if not given and lasting.is_dir() and os.access(lasting, os.W_OK):
        return lasting
    return Path(tempfile.gettempdir())


class GrowingMatrix:
    """A csr matrix of any size whose rows are appended one portion after the other.

    Parameters
    ----------
    passing : bool
        Whether it is only gone through once or twice: it is then on disk sooner.

    Examples
    --------
    >>> rows = GrowingMatrix()
    >>> rows.append(csr_array(np.array([[0, 2], [1, 0]], np.float32)))
    >>> rows.append(csr_array(np.array([[3, 0]], np.float32)))
    >>> rows.whole(n_columns=2).toarray().tolist()
    [[0.0, 2.0], [1.0, 0.0], [3.0, 0.0]]
    """

    def __init__(self, *, passing: bool = False) -> None:
        self._most = _PASSING if passing else _SMALL
        self._kept: list[tuple[NDArray[np.float32], NDArray[np.int32]]] = []
        self._n_kept = 0  # entries
        self._files: tuple[ScratchFile, ScratchFile] | None = None
        self._lengths: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]

    def append(self, rows: csr_array) -> None:
        """Take further rows: float32, with int32 for the columns."""
        self._kept.append(
            (np.ascontiguousarray(rows.data, np.float32), rows.indices.astype(np.int32, copy=False))
        )
        self._n_kept += rows.nnz
        self._lengths.append(np.diff(rows.indptr).astype(np.int64))
        if self._files is not None or self._n_kept > self._most:
            self._write()

    def whole(self, n_columns: int) -> csr_array:
        """All rows, mapped into memory where they are large; not to be written to."""
        indptr = np.concatenate(self._lengths).cumsum()
        if self._files is None:
            arrays = [np.concatenate(x) for x in zip(*self._kept, strict=True)]
            data, indices = arrays or (np.empty(0, np.float32), np.empty(0, np.int32))
        else:
            data, indices = self._files[0].mapped(np.float32), self._files[1].mapped(np.int32)
        return csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))

    def _write(self) -> None:
        self._files = self._files or (ScratchFile(), ScratchFile())
        for arrays in self._kept:
            for file, array in zip(self._files, arrays, strict=True):
                file.write(array.data)
        self._kept = []


def portions(matrix: csr_array, rows: NDArray[np.integer] | None = None) -> Iterator[csr_array]:
    """The matrix, or these rows of it, some thousand rows at a time."""
    n = matrix.shape[0] if rows is None else len(rows)
    if rows is None and n <= _PORTION:
        yield matrix
        return
    for first in range(0, n, _PORTION):
        last = min(first + _PORTION, n)
        yield csr_array(matrix[first:last] if rows is None else matrix[rows[first:last]])


def rows_of(matrix: csr_array, rows: NDArray[np.integer]) -> csr_array:
    """Rows of a matrix, mapped into memory where they are large."""
    taken = GrowingMatrix()
    for portion in portions(matrix, rows):
        taken.append(portion)
    return taken.whole(matrix.shape[1])


def column_counts(matrix: csr_array) -> NDArray[np.int64]:
    """How many entries each column has; no copy of all of them is made."""
    counts = np.zeros(matrix.shape[1], np.int64)
    for first in range(0, matrix.nnz, _TOGETHER):
        some = matrix.indices[first : first + _TOGETHER]
        counts += np.bincount(some, minlength=matrix.shape[1])
    return counts


class TextSpool:
    """Takes texts one by one; gives them back as a list or, where they are many, on disk."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._n_kept = 0  # characters
        self._file: ScratchFile | None = None
        self._written = 0  # bytes
        self._ends: list[NDArray[np.int64]] = []  # of the texts of each portion, in the file

    def append(self, text: str) -> None:
        """Take a text."""
        self._kept.append(text)
        self._n_kept += len(text)
        if self._n_kept > (FEW if self._file is None else _TOGETHER):
            self._write()

    def texts(self) -> list[str] | TextsOnDisk:
        """All texts."""
        if self._file is None:
            return self._kept
        self._write()
        sizes = [len(ends) - 1 for ends in self._ends]
        return TextsOnDisk(sizes, partial(_read_texts, self._file, self._ends))

    def _write(self) -> None:
        if self._file is None:
            self._file = ScratchFile()
        some: list[bytes] = []
        size = 0
        for text in self._kept:
            some.append(text.encode("utf-8", "surrogatepass"))
            size += len(some[-1])
            if size > _TOGETHER:
                self._write_portion(some)
                some, size = [], 0
        if some:
            self._write_portion(some)
        self._kept, self._n_kept = [], 0

    def _write_portion(self, texts: list[bytes]) -> None:
        assert self._file is not None
        lengths = np.array([0, *map(len, texts)], np.int64)
        self._ends.append(self._written + lengths.cumsum())
        self._file.write(b"".join(texts))
        self._written += int(lengths.sum())


def _read_texts(file: ScratchFile, ends: list[NDArray[np.int64]], portion: int) -> list[str]:
    first, *rest = ends[portion].tolist()
    raw = file.read(first, rest[-1])
    places = [0, *(end - first for end in rest)]
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
