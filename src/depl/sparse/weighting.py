"""Weights of terms, and rows of a length: what makes tf-idf of counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import contains
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

_PORTION = 4_096  # documents that are weighted at a time
_PAIRS_WEIGHT = 0.7  # length of a document's vector of pairs, where that of its words is 1


def scale(X: csr_array, factor: NDArray[np.float32], paired: NDArray[np.bool_]) -> csr_array:
    """Multiply the columns by these factors and scale the rows to length 1, in place."""
    # In portions, so that what is in double precision stays small.
    for first in range(0, X.shape[0], _PORTION):
        ends = X.indptr[first : first + _PORTION + 1]
        values, terms = X.data[ends[0] : ends[-1]], X.indices[ends[0] : ends[-1]]
        values *= factor[terms]
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        # Words and pairs each get a length of their own, then both together length 1.
        kind = 2 * rows + paired[terms]
        squares = np.bincount(kind, values.astype(np.float64) ** 2, minlength=2 * len(ends) - 2)
        lengths = np.sqrt(squares).reshape(-1, 2)
        wanted = np.where(lengths > 0, (1.0, _PAIRS_WEIGHT), 0.0)
        wanted /= np.maximum(np.sqrt((wanted**2).sum(axis=1, keepdims=True)), 1e-12)
        values *= (wanted / np.maximum(lengths, 1e-12)).ravel()[kind]
    return X


def idf(n: int, df: NDArray[Any]) -> NDArray[np.float32]:
    """Of terms that are in so many of n documents."""
    return (np.log((1 + n) / (1 + df)) + 1).astype(np.float32)


def are_pairs(terms: Sequence[str]) -> NDArray[np.bool_]:
    """Which terms are two words in a row."""
    return np.fromiter(map(contains, terms, repeat(" ")), np.bool_, len(terms))
