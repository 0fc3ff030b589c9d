"""Choices made on a slice of the training documents, never on a test split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from depl.core.aside import held_out_folds
from depl.core.executor import Executor
from depl.core.scratch import rows_of
from depl.evaluation import metrics
from depl.sparse.label_tree import linear_model

_K = 5


def choose_C(  # noqa: N802 - C is what everybody calls it
    X: csr_array,
    Y: csr_array,
    grid: Sequence[float],
    fraction: float,
    *,
    seed: int,
    executor: Executor | None = None,
    **settings: Any,  # noqa: ANN401 - whatever else linear_model takes
) -> tuple[float, list[dict[str, float]]]:
    """Pick the C with the best mean of P@5 and PSP@5 on a random slice of the documents.

    P@5 alone is blind to rare labels and PSP@5 alone overrates them; their mean weighs both.

    Parameters
    ----------
    X, Y : csr_array
        All training documents: terms and labels.
    grid : sequence of float
        The values to try; the first of several equally good ones wins.
    fraction : float
        Share of the documents in the slice.
    seed : int
        For the slice, and for the SVM.
    executor : Executor or None
        What solves the SVMs and ranks; None: threads of this machine.
    **settings
        The SVM's other settings.

    Returns
    -------
    C : float
        The best value.
    scores : list of dict
        For every value: C, P@5, PSP@5.
    """
    alone, rng = np.arange(X.shape[0]), np.random.default_rng(seed)
    fold = held_out_folds(alone, fraction * X.shape[0], 1, rng)
    held_out, rest = np.flatnonzero(fold == 0), np.flatnonzero(fold != 0)
    counts = np.bincount(Y[rest].indices, minlength=Y.shape[1])
    inverse = metrics.inverse_propensities(counts, len(rest))
    X_rest, Y_rest = rows_of(X, rest), Y[rest]
    scores = []
    for C in grid:
        svm = linear_model(**(settings | {"C": C, "seed": seed}))
        svm.fit(X_rest, Y_rest, executor)
        found = svm.rank(X[held_out], _K, executor).indices
        scores.append({"C": C} | metrics.precision_and_psp(found, Y[held_out], inverse, [_K]))
    best = max(scores, key=lambda row: row[f"P@{_K}"] + row[f"PSP@{_K}"])
    return best["C"], scores
