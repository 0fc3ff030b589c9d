"""The labels that a fusion considers for each document, with scores and ranks by its parts."""

from __future__ import annotations

from collections.abc import Mapping

import numba
import numpy as np
from numpy.typing import NDArray

from depl.core.ranking import Ranking


def candidate_pairs(
    rankings: Mapping[str, Ranking],
    candidates: int,
    train_counts: NDArray[np.integer],
    fold: NDArray[np.integer] | None = None,
    facts: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Rows, labels and features of all candidates, by row and then by label.

    Parameters
    ----------
    rankings : mapping of str to Ranking
        Of the P parts, in the order of the features.
    candidates : int
        How many of the best labels of every part are considered.
    train_counts : array of shape (n_labels,) or (n_folds, n_labels)
        How many training documents carry each label.
    fold : array of shape (n_documents,), optional
        Where there are counts of several folds: the one of each document.
    facts : array of shape (n_labels, n_facts) or (n_folds, n_labels, n_facts), optional
        What else is known of the labels.

    Returns
    -------
    rows, labels : arrays of shape (n_pairs,)
        The pairs.
    X : array of shape (n_pairs, 3 P + 1 + n_facts)
        Every part's score, every part's rank from 0, ln(1 + training count), the score that every
        part gives the document's best label, and the facts; NaN where a part does not list the
        label, or any label.
    """
    parts = list(rankings.values())
    n_facts = 0 if facts is None else facts.shape[-1]
    room = len(parts[0]) * sum(min(candidates, x.k) for x in parts)
    rows, labels = np.empty(room, np.int64), np.empty(room, np.int64)
    X = np.full((room, n_features(len(parts), n_facts)), np.nan, np.float32)
    size = _fill(
        np.concatenate([x.indices for x in parts], axis=1, dtype=np.int32),
        np.concatenate([x.scores for x in parts], axis=1, dtype=np.float32),
        np.cumsum([0, *(x.k for x in parts)]),
        candidates,
        rows,
        labels,
        X,
    )
    rows, labels, X = rows[:size], labels[:size], X[:size]
    of_label = labels if fold is None else (fold[rows], labels)
    X[:, 2 * len(parts)] = np.log1p(train_counts[of_label])
    best = np.stack([x.scores[:, 0] for x in parts], axis=1)
    known = n_features(len(parts))
    X[:, 2 * len(parts) + 1 : known] = np.where(np.isfinite(best), best, np.nan)[rows]
    if facts is not None:
        X[:, known:] = facts[of_label]
    return rows, labels, X


def n_features(n_parts: int, n_facts: int = 0) -> int:
    """How many features a pair has."""
    return 3 * n_parts + 1 + n_facts


@numba.njit(nogil=True, cache=True)
def _fill(
    indices: NDArray[np.int32],
    scores: NDArray[np.float32],
    starts: NDArray[np.int64],
    limit: int,
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    X: NDArray[np.float32],
) -> int:
    """Candidates of each document with every part's score and rank; returns how many there are.

    The rankings of the parts are concatenated: part p is in the columns from ``starts[p]`` to
    ``starts[p + 1]``. ``rows``, ``labels`` and ``X`` have room for all pairs; X is initially
    all NaN and gets, for P parts, the scores in its columns 0 to P - 1 and the ranks in the
    columns P to 2 P - 1.
    """
    n_parts = len(starts) - 1
    width = indices.shape[1]
    found = np.empty(width, np.int64)
    end = 0
    for i in range(len(indices)):
        size = 0
        for p in range(n_parts):
            for c in range(starts[p], min(starts[p] + limit, starts[p + 1])):
                if indices[i, c] >= 0:
                    found[size] = indices[i, c]
                    size += 1
        begin = end
        last = -1
        for label in np.sort(found[:size]):  # in label order: that is how ties are broken
            if label != last:
                rows[end] = i
                labels[end] = label
                last = label
                end += 1
        mine = labels[begin:end]
        for p in range(n_parts):
            for c in range(starts[p], starts[p + 1]):
                label = indices[i, c]
                if label < 0:
                    continue
                at = np.searchsorted(mine, label)
                if at < len(mine) and mine[at] == label:
                    if np.isfinite(scores[i, c]):
                        X[begin + at, p] = scores[i, c]
                    X[begin + at, n_parts + p] = c - starts[p]
    return end
