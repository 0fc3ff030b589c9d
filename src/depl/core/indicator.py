"""Which document carries which label, as a sparse matrix: making it, and asking for pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import CorpusError


def indicator(rows: Sequence[Sequence[int]], n_columns: int) -> csr_array:
    """Sparse 0/1 matrix with ones at the given columns of each row (repeats count once)."""
    lengths = np.array([len(row) for row in rows], np.int64)
    flat = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    return flat_indicator(flat, lengths, n_columns)


def flat_indicator(
    columns: NDArray[np.integer], lengths: NDArray[np.integer], n_columns: int
) -> csr_array:
    """As ``indicator``, from the columns of all rows in a row and how many each row has."""
    if len(columns) and (columns.min() < 0 or columns.max() >= n_columns):
        raise CorpusError(
            f"Label positions must lie between 0 and {n_columns - 1}; got "
            f"{int(columns.min())} to {int(columns.max())}. Check them against the label set."
        )
    row = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    pairs = np.unique(row * n_columns + columns)
    indptr = np.searchsorted(pairs, np.arange(len(lengths) + 1) * n_columns)
    indices = (pairs % max(1, n_columns)).astype(np.int32)
    data = np.ones(len(indices), dtype=np.float32)
    return csr_array((data, indices, indptr), shape=(len(lengths), n_columns))


def carried(
    Y: csr_array, documents: NDArray[np.integer], labels: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Whether each document carries the paired label; no document carries a label of -1.

    Parameters
    ----------
    Y : csr_array of shape (n_documents, n_labels)
        Non-zero where a document carries a label.
    documents, labels : arrays that broadcast against each other
        Pairs of positions.

    Examples
    --------
    >>> carried(csr_array([[1, 0, 1]]), np.array([[0]]), np.array([[2, 1, -1]])).tolist()
    [[True, False, False]]
    """
    return among(true_pairs(Y), documents.astype(np.int64) * Y.shape[1] + labels) & (labels >= 0)


def among(pairs: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the pairs asked for are among those of ``true_pairs``.

    A binary search in a sorted list: no dense documents x labels matrix.
    """
    place = np.searchsorted(pairs, asked)
    place[place == len(pairs)] = 0
    return pairs[place] == asked if len(pairs) else np.zeros(asked.shape, bool)


def true_pairs(Y: csr_array) -> NDArray[np.int64]:
    """Every (document, label) pair of ``Y`` as ``document * n_labels + label``, ascending."""
    documents = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    # Repeats and stored zeros are allowed.
    return np.unique((documents * Y.shape[1] + Y.indices)[Y.data != 0])
