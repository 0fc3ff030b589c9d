"""Theorem 1 of the paper: its bound, and the exact probability that it bounds.

The theorem compares a sparse classifier with the weakest possible dense one: words have random
Gaussian vectors of dimension d. For a document x (norm 1) and labels whose weights w_l are
non-negative and of norm at most 1, let v_l be w_l on the label's keywords and 0 elsewhere, let
``delta`` bound what the keywords drop, ``<x, w_l> - <x, v_l>``, and let ``eps`` be the least margin
``<x, w_p - w_n>`` of a positive label p over M negative ones ranked below it. Then

    P(the dense classifier puts any of the M above p) <= 4 M exp(-(eps - delta)^2 d / 50).

Where no margin is larger than what the keywords drop, it says nothing. For one pair of labels the
probability itself can be computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

Floats = NDArray[np.float64]

PRINTED, COSINE = 50.0, 8.0  # what the exponent is divided by; see ``bound``


def bound(gap: ArrayLike, d: ArrayLike, m: ArrayLike = 1, *, constant: float = PRINTED) -> Floats:
    """Theorem 1: min(1, 4 m exp(-gap^2 d / 50)), where gap is eps - delta.

    The proof needs a positive gap; without one the theorem says nothing, and the bound is 1. The
    lemma of Johnson and Lindenstrauss behind it, applied to unit vectors, gives ``constant=COSINE``
    with the cosine of x and v_p - v_n in place of the gap: an order does not depend on a common
    factor, so labels need not share one scale.

    Examples
    --------
    >>> bound([0.5, 0.5, -0.5], d=768, m=[1, 100, 1]).round(4).tolist()
    [0.086, 1.0, 1.0]
    """
    gap = np.maximum(np.asarray(gap, np.float64), 0)
    exponent = -(gap**2) * np.asarray(d) / constant
    return np.asarray(np.minimum(1.0, 4 * np.asarray(m) * np.exp(exponent)))


def misordering(cosine: ArrayLike, d: ArrayLike) -> Floats:
    """The exact probability that one pair is mis-ordered, which the bounds are bounds on.

    For unit vectors a and b with <a, b> = c, ``4 <Ea, Eb> = |E(a + b)|^2 - |E(a - b)|^2``. The two
    are independent, (2 + 2c) and (2 - 2c) times chi-square variables with d degrees of freedom, so
    <Ea, Eb> <= 0 has the probability that a Beta(d/2, d/2) variable is at most (1 - c) / 2.

    Examples
    --------
    >>> misordering([0.0, 0.1, 1.0], d=384).round(4).tolist()
    [0.5, 0.0248, 0.0]
    """
    half, c = np.asarray(d) / 2, np.clip(cosine, -1, 1)
    # 1 - |c| is exact near both ends; 1 + |c| loses a |c| that is nearly 1.
    of_positive = betainc(half, half, (1 - np.abs(c)) / 2)
    return np.asarray(np.where(c < 0, 1 - of_positive, of_positive), np.float64)


def dimension_needed(gap: ArrayLike, m: ArrayLike = 1, *, constant: float = PRINTED) -> Floats:
    """The dimension from which the bound is below 1, and so says something; inf without a gap."""
    gap = np.maximum(np.asarray(gap, np.float64), 0)
    with np.errstate(divide="ignore"):
        return np.asarray(constant * np.log(4 * np.asarray(m)) / gap**2)


def gap_needed(m: ArrayLike, d: ArrayLike) -> tuple[Floats, Floats]:
    """The gap that the paper asks for to make the bound 1/m, and the gap that does make it 1/m.

    The paper's 10 sqrt(log m / d) gives 4 m exp(-2 log m) = 4/m; 10 sqrt(log 2m / d) gives 1/m.
    """
    m, d = np.asarray(m, np.float64), np.asarray(d)
    return 10 * np.sqrt(np.log(m) / d), 10 * np.sqrt(np.log(2 * m) / d)
