"""The words that a label's SVM weighs most (section 3.1 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


@dataclass(frozen=True)
class Keywords:
    """For every label its heaviest terms, heaviest first.

    Parameters
    ----------
    indices : array of shape (n_labels, n), int32
        Positions in ``terms``; -1 where a label has fewer than n positive weights.
    weights : array of shape (n_labels, n), float32
        Their SVM weights; 0 in the padding.
    terms : sequence of str
        What the positions mean.
    """

    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    terms: Sequence[str]

    def __len__(self) -> int:
        return len(self.indices)

    def of(self, label: int) -> list[tuple[str, float]]:
        """The keywords of the label at this position, with their weights."""
        pairs = zip(self.indices[label], self.weights[label], strict=True)
        return [(self.terms[t], float(w)) for t, w in pairs if t >= 0]


def top_keywords(
    weights: csr_array, terms: Sequence[str], n: int = 20, *, numbers: bool = True
) -> Keywords:
    """Pick the n largest positive weights of every label; equal weights go by term order.

    Parameters
    ----------
    weights : csr_array of shape (n_labels, n_terms)
        SVM weights.
    terms : sequence of str
        The terms of the columns.
    n : int
        How many keywords a label gets at most.
    numbers : bool
        Whether a term without any letter may be a keyword.

    Examples
    --------
    >>> weights = csr_array(np.array([[0.2, -1.0, 0.9], [0.0, 0.0, 0.0]]))
    >>> top_keywords(weights, ["grape", "steel", "wine"], n=2).of(0)
    [('wine', 0.8999999761581421), ('grape', 0.20000000298023224)]
    """
    indices = np.full((weights.shape[0], n), -1, np.int32)
    values = np.zeros((weights.shape[0], n), np.float32)
    allowed = np.array([numbers or any(map(str.isalpha, term)) for term in terms], dtype=bool)
    for label in range(weights.shape[0]):
        row = slice(weights.indptr[label], weights.indptr[label + 1])
        columns, w = weights.indices[row], weights.data[row]
        candidates = np.flatnonzero((w > 0) & allowed[columns])
        best = candidates[np.lexsort((columns[candidates], -w[candidates]))[:n]]
        indices[label, : len(best)] = columns[best]
        values[label, : len(best)] = w[best]
    return Keywords(indices, values, terms)
