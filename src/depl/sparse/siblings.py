"""Documents that nearly repeat each other: editions, translations, packages of one source.

A held-out document whose sibling stays in the training documents is easier than a new one, so what
is measured on it is too good: of Debian's packages, 53 % have a sibling with a cosine above 0.8
among the training documents, but 15 % of the packages of a new source do. Siblings are therefore
held out together.

Two documents are siblings if their vectors have a cosine of at least 0.8. To find them without
comparing all pairs, only documents that share one of their heaviest terms are compared, as long
as that term is in few documents: what makes siblings similar is above all their rare words.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.scratch import GrowingMatrix, column_counts, portions
from depl.sparse.duals import unwritable

_COSINE = 0.8
_HEAVIEST = 8  # terms of a document by which others are found
_RARE = 50  # documents that a term may be in to find others by it
# More siblings than this are a series, such as the weekly regulations on the price of lemons. New
# documents will continue it, so its documents are held out one by one.
_SERIES = 20


def sibling_groups(X: csr_array) -> NDArray[np.int64]:
    """The group of each document, from 0 on; a document without siblings is alone in its group.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        Vectors of length 1 or 0.

    Examples
    --------
    >>> sibling_groups(csr_array(np.array([[0.6, 0.8], [1, 0], [0.6, 0.8]]))).tolist()
    [0, 1, 0]
    """
    frequency = column_counts(X)
    found = GrowingMatrix()
    for some in portions(X):
        found.append(_heaviest(some, frequency))
    finders = found.whole(X.shape[1]).tocsc()
    parent = np.arange(X.shape[0])
    _join(
        unwritable(X.indptr.astype(np.int64)),
        unwritable(X.indices),
        unwritable(X.data),
        finders.indptr.astype(np.int64),
        finders.indices.astype(np.int32, copy=False),
        np.zeros(X.shape[1]),
        parent,
    )
    _, group, size = np.unique(parent, return_inverse=True, return_counts=True)
    alone = size[group] > _SERIES
    group[alone] = len(size) + np.arange(np.count_nonzero(alone))
    _, first, numbered = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbered]


def _heaviest(X: csr_array, frequency: NDArray[np.int64]) -> csr_array:
    """The entries that are their document's heaviest, among terms that few documents have."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    often = frequency[X.indices]
    useful = np.flatnonzero((often <= _RARE) & (often > 1))
    order = useful[np.lexsort((X.indices[useful], -X.data[useful], rows[useful]))]
    place = np.arange(len(order)) - np.searchsorted(rows[order], rows[order])
    heavy = np.sort(order[place < _HEAVIEST])
    indptr = np.searchsorted(heavy, X.indptr)
    return csr_array((X.data[heavy], X.indices[heavy], indptr), shape=X.shape)


@numba.njit(cache=True)
def _join(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.floating],
    finder_starts: NDArray[np.int64],
    finder_documents: NDArray[np.int32],
    dense: NDArray[np.float64],
    parent: NDArray[np.int64],
) -> None:
    """Point the parents of siblings at the first of them; ``dense`` has room for a document."""
    compared = np.full(len(parent), -1, np.int64)
    for i in range(len(parent)):
        for e in range(indptr[i], indptr[i + 1]):
            dense[indices[e]] = data[e]
        for e in range(indptr[i], indptr[i + 1]):
            term = indices[e]
            for f in range(finder_starts[term], finder_starts[term + 1]):
                j = finder_documents[f]
                if j >= i or compared[j] == i:
                    continue
                compared[j] = i
                cosine = 0.0
                for g in range(indptr[j], indptr[j + 1]):
                    cosine += dense[indices[g]] * data[g]
                if cosine >= _COSINE - 1e-6:
                    a, b = i, j
                    while parent[a] != a:
                        a = parent[a]
                    while parent[b] != b:
                        b = parent[b]
                    parent[max(a, b)] = min(a, b)
        for e in range(indptr[i], indptr[i + 1]):
            dense[indices[e]] = 0.0
    for i in range(len(parent)):  # a parent is never behind its child
        parent[i] = parent[parent[i]]
