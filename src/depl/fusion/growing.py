"""Grows the trees of a fusion: which pairs of document and label they see, and how many trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from depl.core.workers import map_in_threads
from depl.evaluation.metrics import Floats
from depl.fusion.boosting import boost
from depl.fusion.trees import Trees

_HIGH, _ONE_IN = 10, 4
_L2 = 5.0
_LEAF, _LEAST_LEAF = 200, 20  # fewest rows per leaf: with many pairs, with few
# On 300 and 1,000 documents of debtags and EURLEX57K (20,000 to 70,000 pairs) half as many trees as
# on 4,000 and more were as good, and an eighth was not. Smaller steps and more trees than before
# (0.05 and 100 to 300) are worth more now that there are more parts: on the held-out documents of
# TIB-en with all parts, cross-fitted, the log-loss fell by 0.5 % and P@1 rose from 59.5 to 60.3;
# on six runs on 1,000 and 3,000 documents it fell by 0.1 to 0.3 %. With 31 leaves in place of 15
# the large runs gained as much again, and four of the six small ones lost.
_LEAST_TREES, _MOST_TREES, _PER_TREE = 160, 500, 300


def weigh(
    X: NDArray[np.float32], true: NDArray[np.bool_], n_parts: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """How many pairs each stands for to the trees; 0 for those that they do not see.

    Most pairs are labels that a document does not carry and that no part has among its first 10.
    One in four of these says as much as all of them, in half the time: on EURLEX57K with the sparse
    recipe P@5 was 70.6 instead of 70.5 and PSP@5 70.1 instead of 70.2.

    Parameters
    ----------
    X : array of shape (n_pairs, n_features)
        As ``candidate_pairs`` gives it.
    true : array of shape (n_pairs,)
        Whether the document carries the label.
    n_parts : int
        How many parts ranked them.
    rng : Generator
        Draws the pairs.
    """
    ranks = np.nan_to_num(X[:, n_parts : 2 * n_parts], nan=np.inf)
    seen = true | (ranks.min(axis=1) < _HIGH)
    drawn = rng.random(len(X), np.float32) < 1 / _ONE_IN
    return np.where(seen, 1.0, np.where(drawn, _ONE_IN, 0.0)).astype(np.float32)


def grow(
    X: NDArray[np.float32],
    true: NDArray[np.bool_],
    weight: NDArray[np.float32],
    n_parts: int,
    *,
    iterations: int | None,
    leaves: int,
    learning_rate: float,
) -> Trees:
    """Boost trees on pairs; as many as there are pairs for, unless ``iterations`` says how many."""
    return boost(
        X,
        true,
        weight=weight,
        iterations=iterations or min(_MOST_TREES, _LEAST_TREES + len(X) // _PER_TREE),
        leaves=leaves,
        learning_rate=learning_rate,
        l2=_L2,
        min_leaf=min(_LEAF, max(_LEAST_LEAF, len(X) // _LEAF)),
        # A better score or rank by a part never lowers the probability.
        directions=[1] * n_parts + [-1] * n_parts + [0] * (X.shape[1] - 2 * n_parts),
    )


def cross_fit(
    X: NDArray[np.float32],
    true: NDArray[np.bool_],
    fold: NDArray[np.integer],
    n_parts: int,
    rng: np.random.Generator,
    n_threads: int | None,
    *,
    iterations: int | None,
    leaves: int,
    learning_rate: float,
) -> tuple[Trees, Floats]:
    """Trees of all pairs; and the log-odds of each pair by trees that saw no pair of its fold."""
    weight = weigh(X, true, n_parts, rng)

    def grow_on(mine: NDArray[np.bool_]) -> Trees:
        seen = mine & (weight > 0)
        return grow(
            X[seen],
            true[seen],
            weight[seen],
            n_parts,
            iterations=iterations,
            leaves=leaves,
            learning_rate=learning_rate,
        )

    folds = np.unique(fold)
    # On 2 cores it is faster to grow the trees of all documents before it is known whether they
    # are needed; they are nearly always. They take longest, so they come first.
    seen = [np.full(len(X), True), *(fold != f for f in folds)]
    of_all, *of_others = map_in_threads(grow_on, seen, n_threads)
    log_odds = np.empty(len(X))
    for f, trees in zip(folds, of_others, strict=True):
        log_odds[fold == f] = trees.log_odds(X[fold == f])
    return of_all, log_odds
