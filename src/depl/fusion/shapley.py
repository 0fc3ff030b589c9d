"""What each of several parts adds to a common result, where they overlap."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

from depl.evaluation.metrics import Floats


def subsets(n: int) -> NDArray[np.bool_]:
    """All subsets of n parts, (2 ** n, n): the bits of the numbers from 0 on."""
    found: NDArray[np.bool_] = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    return found


def shapley(values: Floats) -> Floats:
    """How much each part adds, on average over all orders in which they could be added.

    The sum is what all parts add together. Parts that say the same share the credit, where leaving
    out one of them at a time would give it to none.

    Parameters
    ----------
    values : array of shape (2 ** n,)
        The result with each of the ``subsets``.

    Examples
    --------
    >>> shapley(np.array([0.0, 6.0, 6.0, 6.0])).tolist()  # two parts that say the same
    [3.0, 3.0]
    """
    n = len(values).bit_length() - 1
    numbers, present = np.arange(len(values)), subsets(n)
    size = present.sum(axis=1)
    # Of the orders, the share in which exactly the other parts of a subset came before this one.
    share = np.array([1 / (n * comb(n - 1, k - 1)) if k else 0.0 for k in range(n + 1)])
    added = [
        np.sum(share[size[has]] * (values[has] - values[numbers[has] - 2**part]))
        for part, has in enumerate(present.T)
    ]
    return np.array(added, np.float64)


def contributions(
    log_odds: Callable[[NDArray[np.float32]], Floats],
    listed: NDArray[np.float32],
    others: NDArray[np.float32],
) -> Floats:
    """How much each part adds to the log-odds of one label of a document.

    A part is taken away by its not listing the label.

    Parameters
    ----------
    log_odds : callable
        Of pairs of a document and a label, by their features: those below, in this order.
    listed : array of shape (2 n,)
        The score and then the rank that each of n parts gives the label.
    others : array
        All further features.
    """
    listing = subsets(len(listed) // 2)
    X = np.tile(np.concatenate([listed, others]), (len(listing), 1))
    X[~np.isfinite(X)] = np.nan
    X[:, : len(listed)][~np.hstack([listing, listing])] = np.nan
    return shapley(log_odds(X))
