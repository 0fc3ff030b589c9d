"""Votes of the nearest training documents for their labels."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from depl.core.ranking import Ranking


def votes(nearest: Ranking, Y: csr_array, *, sharpness: float, k: int) -> Ranking:
    """Rank labels by the share of the neighbours' votes they get.

    A neighbour's vote has the weight ``exp(sharpness * similarity)``; the weights of a document's
    neighbours sum to 1, so that a score is the share of the votes, between 0 and 1.

    Parameters
    ----------
    nearest : Ranking
        For every document the positions of training documents and their similarities.
    Y : csr_array of shape (n_training_documents, n_labels)
        Their labels.
    sharpness : float
        0 counts all neighbours equally.
    k : int
        Labels per document.

    Examples
    --------
    >>> nearest = Ranking(np.array([[0, 1, 2]]), np.array([[0.9, 0.9, 0.9]]))
    >>> carried = csr_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> votes(nearest, carried, sharpness=5.0, k=1).scores.round(2)
    array([[0.67]], dtype=float32)
    """
    real = nearest.indices >= 0
    lowest = np.finfo(np.float32).min
    best = nearest.scores.max(axis=1, keepdims=True, initial=lowest, where=real)
    apart = np.where(real, nearest.scores, best) - best
    weights = np.where(real, np.exp(sharpness * apart), 0.0).astype(np.float32)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
    pairs = (weights[real], (np.nonzero(real)[0], nearest.indices[real]))
    shares = csr_array(pairs, shape=(len(nearest), Y.shape[0])) @ Y
    shares.sort_indices()
    rows = np.repeat(np.arange(len(nearest)), np.diff(shares.indptr))
    return Ranking.from_pairs(rows, shares.indices, shares.data, len(nearest), k)
