"""Arrays and sparse matrices that grow at their end, each row at the same cost."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import RunError


class Column:
    """Numbers of one type, to which more are appended.

    Kept as Python's own ``array``: a loop over thousands of edits that appends to or changes a few
    numbers takes a tenth of the time that it takes with numpy.

    Parameters
    ----------
    start : array
        What it begins with, as a copy; two-dimensional if it is made of rows.
    """

    def __init__(self, start: NDArray[Any]) -> None:
        self._kind = start.dtype
        self._shape = start.shape[1:]
        self._width = int(np.prod(self._shape))
        self._values: array[Any] = array(start.dtype.char, start.tobytes())

    def __len__(self) -> int:
        return len(self._values) // max(1, self._width)

    def __getitem__(self, place: int) -> Any:  # noqa: ANN401 - whatever the type is
        return self._values[place]

    def __setitem__(self, place: int, value: float) -> None:
        self._values[place] = value

    def append(self, value: float) -> None:
        """Write a number behind the last."""
        self._values.append(value)

    def extend(self, values: NDArray[Any]) -> None:
        """Write many behind the last, or rows."""
        self._values.frombytes(values.astype(self._kind, copy=False).tobytes())

    def cut(self, n: int) -> None:
        """Forget all but the first n."""
        del self._values[n * max(1, self._width) :]

    def view(self) -> NDArray[Any]:
        """All of them; the view must be gone before the column changes."""
        found = np.frombuffer(self._values, self._kind)
        return found.reshape(-1, *self._shape) if self._shape and self._width else found

    def numpy(self) -> NDArray[Any]:
        """A copy of all of them."""
        return self.view().copy()


class Rows(NamedTuple):
    """Rows of a sparse matrix: row i is ``indices`` and ``data`` from ``indptr[i]`` on."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]

    @classmethod
    def of(cls, matrix: csr_array) -> Rows:
        """The rows of a whole matrix."""
        return cls(matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @staticmethod
    def empty(n: int) -> Rows:
        """Rows with nothing in them."""
        return Rows(np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(n + 1, np.int64))


class GrowingRows:
    """A sparse matrix to which rows are appended.

    Parameters
    ----------
    width : int
        Its number of columns.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._data = Column(np.empty(0, np.float32))
        self._indices = Column(np.empty(0, np.int32))
        self._indptr = Column(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def widen(self, columns: int) -> None:
        """Make room for so many further columns."""
        self.width += columns

    def filled_from(self, row: int) -> bool:
        """Whether there is anything in this row or below."""
        return bool(self._indptr[-1] > self._indptr[row])

    def append(self, rows: Rows) -> None:
        """Write rows below the last; columns outside the matrix are refused."""
        end = self._indptr[-1]
        if len(rows.indices):
            # Compiled code takes these as addresses, and they may come from a file. Negative ones
            # are very large ones here.
            if rows.indices.view(np.uint32).max() >= self.width:
                raise RunError("A label's terms are not those of the run. Fit the run again.")
            self._data.extend(rows.data)
            self._indices.extend(rows.indices)
        for place in rows.indptr[1:].tolist():
            self._indptr.append(end + place)

    def cut(self, n: int) -> None:
        """Forget all rows but the first n."""
        self._indptr.cut(n + 1)
        self._data.cut(self._indptr[-1])
        self._indices.cut(self._indptr[-1])

    def take(self, rows: NDArray[np.integer]) -> csr_array:
        """Some rows, as a matrix."""
        begins = self._indptr.numpy()
        first, last = begins[rows], begins[rows + 1]
        places, indptr = spans(first, last - first)
        arrays = self._data.view()[places], self._indices.view()[places], indptr
        return csr_array(arrays, shape=(len(rows), self.width))


def spans(
    first: NDArray[np.integer], lengths: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All numbers of several ranges one after the other, and where each range begins among them.

    Examples
    --------
    >>> spans(np.array([7, 2]), np.array([3, 2]))
    (array([7, 8, 9, 2, 3]), array([0, 3, 5]))
    """
    begin = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(begin[-1]) + np.repeat(first - begin[:-1], lengths), begin


def moved(matrix: csr_array, place: NDArray[np.int32], n_columns: int) -> csr_array:
    """A matrix with its columns at other places; the others are empty."""
    arrays = matrix.data, place[matrix.indices], matrix.indptr
    new = csr_array(arrays, shape=(matrix.shape[0], n_columns))
    new.sort_indices()
    return new


def count(which: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """How often each of the numbers below n occurs."""
    if n == 1:  # an edit of one label, as most are
        return np.array([len(which)])
    return np.bincount(which, minlength=n)
