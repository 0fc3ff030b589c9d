"""Arrays and sparse matrices that grow at their end, each row at the same cost."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import RunError

_ROOM = 64  # rows that the first growth makes room for

Scalar = TypeVar("Scalar", bound=np.generic)


class Growing(Generic[Scalar]):
    """An array to which rows are appended; its room doubles when it is full.

    Parameters
    ----------
    start : array
        What it begins with; it is copied when the first row is appended, and never changed before.
    """

    def __init__(self, start: NDArray[Scalar]) -> None:
        self._room = start
        self._n = len(start)
        self._own = False

    def __len__(self) -> int:
        return self._n

    @property
    def array(self) -> NDArray[Scalar]:
        """All rows; a view that later changes show through."""
        return self._room[: self._n]

    def own(self) -> NDArray[Scalar]:
        """All rows, to be written to."""
        self._make_room(self._n)
        return self.array

    def append(self, rows: NDArray[Any]) -> None:
        """Write rows behind the last."""
        n = self._n + len(rows)
        self._make_room(n)
        self._room[self._n : n] = rows
        self._n = n

    def _make_room(self, n: int) -> None:
        if n > len(self._room) or not self._own:
            room = np.empty((max(n, 2 * self._n, _ROOM), *self._room.shape[1:]), self._room.dtype)
            room[: self._n] = self.array
            self._room, self._own = room, True

    def cut(self, n: int) -> None:
        """Forget all rows but the first n."""
        self._n = n


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
        self._width = width
        self._data = Growing(np.empty(0, np.float32))
        self._indices = Growing(np.empty(0, np.int32))
        self._indptr = Growing(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def filled_from(self, row: int) -> bool:
        """Whether there is anything in this row or below."""
        return bool(self._indptr.array[-1] > self._indptr.array[row])

    def append(self, rows: Rows) -> None:
        """Write rows below the last; columns outside the matrix are refused."""
        if rows.indices.size:
            # Compiled code takes these as addresses, and they may come from a file.
            if rows.indices.min() < 0 or rows.indices.max() >= self._width:
                raise RunError("A label's terms are not those of the run. Fit the run again.")
            self._data.append(rows.data)
            self._indices.append(rows.indices)
        self._indptr.append(rows.indptr[1:] + self._indptr.array[-1])

    def cut(self, n: int) -> None:
        """Forget all rows but the first n."""
        self._indptr.cut(n + 1)
        self._data.cut(int(self._indptr.array[-1]))
        self._indices.cut(int(self._indptr.array[-1]))

    def take(self, rows: NDArray[np.integer]) -> csr_array:
        """Some rows, as a matrix."""
        first, last = self._indptr.array[rows], self._indptr.array[rows + 1]
        places, indptr = spans(first, last - first)
        arrays = self._data.array[places], self._indices.array[places], indptr
        return csr_array(arrays, shape=(len(rows), self._width))


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
