"""Theorem 1 of the paper, measured on real documents.

The theorem compares a sparse classifier with a dense one that is as poor as can be: words have
random Gaussian vectors of dimension d. For a document x (norm 1) and labels whose weights w_l are
non-negative and of norm at most 1, let v_l be w_l on the label's keywords and 0 elsewhere, let
``delta`` bound what the keywords drop, ``<x, w_l> - <x, v_l>``, and let ``eps`` be the least margin
``<x, w_p - w_n>`` of a positive label p over M negative ones ranked below it. Then

    P(the dense classifier puts any of the M above p) <= 4 M exp(-(eps - delta)^2 d / 50).

Two settings are measured. In the *theorem's* the weights are shifted to be non-negative. In the
*keyword* setting they are not: there the theorem is applied to the classifier that has the keywords
alone, w_l = v_l, so that delta is 0 and all conditions hold without a shift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, hstack
from scipy.special import betainc, betaincinv

from depl.core.errors import CorpusError
from depl.core.progress import track

Floats = NDArray[np.float64]
Numbers = NDArray[Any]

DIMENSIONS = (384, 768, 4096, 32_768, 262_144)  # MiniLM's, BERT's, a large model's, and beyond
PRINTED, COSINE = 50.0, 8.0  # what the exponent is divided by; see ``bound``
_BLOCK = 64  # documents whose scores for all labels are held at once


# ---- what theory says


def bound(gap: ArrayLike, d: ArrayLike, m: ArrayLike = 1, *, constant: float = PRINTED) -> Floats:
    """Theorem 1: min(1, 4 m exp(-gap^2 d / 50)), where gap is eps - delta.

    The proof needs a positive gap; without one the theorem says nothing, and this is 1. The lemma
    of Johnson and Lindenstrauss behind it, used on unit vectors, gives ``constant=COSINE`` for the
    cosine of x and v_p - v_n in the place of the gap: an order does not depend on a common factor,
    so nothing forces one scale upon all labels.

    Examples
    --------
    >>> bound([0.5, 0.5, -0.5], d=768, m=[1, 100, 1]).round(4).tolist()
    [0.086, 1.0, 1.0]
    """
    gap = np.maximum(np.asarray(gap, np.float64), 0)
    exponent = -(gap**2) * np.asarray(d) / constant
    return np.asarray(np.minimum(1.0, 4 * np.asarray(m) * np.exp(exponent)))


def misordering(cosine: ArrayLike, d: ArrayLike) -> Floats:
    """The probability itself that one pair is mis-ordered, of which the others are bounds.

    For unit vectors a and b with <a, b> = c, ``4 <Ea, Eb> = |E(a + b)|^2 - |E(a - b)|^2``. The two
    are independent, (2 + 2c) and (2 - 2c) times chi-square variables with d degrees of freedom, so
    <Ea, Eb> <= 0 has the probability that a Beta(d/2, d/2) variable is at most (1 - c) / 2.

    Examples
    --------
    >>> misordering([0.0, 0.1, 1.0], d=384).round(4).tolist()
    [0.5, 0.0248, 0.0]
    """
    half = np.asarray(d) / 2
    return np.asarray(betainc(half, half, (1 - np.clip(cosine, -1, 1)) / 2), np.float64)


def dimension_needed(gap: ArrayLike, m: ArrayLike = 1, *, constant: float = PRINTED) -> Floats:
    """The d from which on the bound is below 1, and says something; inf without a gap."""
    gap = np.maximum(np.asarray(gap, np.float64), 0)
    with np.errstate(divide="ignore"):
        return np.asarray(constant * np.log(4 * np.asarray(m)) / gap**2)


def gap_needed(m: ArrayLike, d: ArrayLike) -> tuple[Floats, Floats]:
    """The gap that the paper asks for so that the bound be 1/m, and the one that makes it so.

    The paper's 10 sqrt(log m / d) gives 4 m exp(-2 log m) = 4/m; 10 sqrt(log 2m / d) gives 1/m.
    """
    m, d = np.asarray(m, np.float64), np.asarray(d)
    return 10 * np.sqrt(np.log(m) / d), 10 * np.sqrt(np.log(2 * m) / d)


def interval(errors: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's confidence interval of a rate.

    Trials that are independent but have different probabilities scatter less than binomial ones
    (Hoeffding, 1956), so that for their mean probability the interval is too wide, if anything.
    """
    tail = (1 - level) / 2
    low = betaincinv(errors, trials - errors + 1, tail) if errors else 0.0
    high = betaincinv(errors + 1, trials - errors, 1 - tail) if errors < trials else 1.0
    return float(low), float(high)


# ---- documents and labels that meet the conditions


@dataclass(frozen=True)
class Setting:
    """Documents and labels on the theorem's terms; every document ranks as the SVM ranks it.

    The last coordinate carries the bias and counts as a keyword of every label, which favours the
    bound. A label's weights are ``by_term[:, l] - shift``; they are never written out, since the
    shift makes them dense.
    """

    X: csr_array  # documents x (terms + 1); rows of norm 1
    by_term: csr_array  # (terms + 1) x labels; the weights before the shift
    shift: Floats  # what is taken from every label's weights, term by term
    V: csr_array  # labels x (terms + 1); the shifted weights of the keywords

    @classmethod
    def of(
        cls,
        X: csr_array,
        weights: csr_array,
        bias: NDArray[np.floating],
        keywords: csr_array,
        *,
        shifted: bool,
    ) -> Setting:
        """Shift and scale.

        A vector taken from all labels' weights changes all scores of a document alike, and so does
        a common factor. Of all shifts that leave no weight negative the one by each term's least
        weight is the best: any other leaves every weight larger, hence every norm and every delta,
        while the margins stay. Without ``shifted`` only the biases are shifted, and the norms that
        must be at most 1 are those of the keyword vectors.

        ``X`` (documents x terms) is not negative, ``bias`` is finite, and ``keywords`` (labels x
        terms) has a 1 for each keyword of each label.
        """
        W = csr_array(weights, dtype=np.float64)
        least = W.min(axis=0).toarray().ravel() if shifted else np.zeros(W.shape[1])
        lift = np.asarray(bias, np.float64) - np.min(bias)
        V = csr_array(keywords.multiply(W) - keywords.multiply(least[None, :]))
        squares = _squares(W) - 2 * (W @ least) + least @ least if shifted else _squares(V)
        beta = _bias_value(squares, lift**2)
        scale = np.sqrt(max((squares + (lift / beta) ** 2).max(), np.finfo(float).tiny))

        def wide(matrix: csr_array, last: Floats) -> csr_array:
            return csr_array(hstack([matrix, csr_array(last[:, None])], format="csr"))

        documents = wide(csr_array(X, dtype=np.float64), np.full(X.shape[0], beta))
        norms = np.sqrt(_squares(documents))
        documents.data /= np.repeat(norms, np.diff(documents.indptr))
        return cls(
            documents,
            csr_array(wide(W, lift / beta).T) / scale,
            np.append(least, 0.0) / scale,
            wide(V, lift / beta) / scale,
        )

    def scores(self, rows: slice) -> Floats:
        """<x, w_l> of these documents and all labels."""
        X = self.X[rows]
        return np.asarray((X @ self.by_term).toarray() - (X @ self.shift)[:, None])

    def keyword_scores(self, rows: slice) -> Floats:
        """<x, v_l> of these documents and all labels."""
        return np.asarray((self.X[rows] @ self.V.T).toarray())


def _squares(matrix: csr_array) -> Floats:
    """The squared norm of every row."""
    return np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel()


def _bias_value(squares: Floats, lifts: Floats) -> float:
    """The last coordinate of a document, before it is normed, that shrinks margins least.

    Scores are divided by sqrt(1 + t) and by the largest norm, sqrt(squares + lifts / t), where t is
    the square sought; the square of the product is a maximum of functions convex in t.
    """

    def divisor(log_t: float) -> float:
        t = np.exp(log_t)
        return float((1 + t) * (squares + lifts / t).max())

    return float(np.exp(minimize_scalar(divisor, bounds=(-20, 20), method="bounded").x / 2))


# ---- random projections


def projected_scores(
    V: csr_array, x: csr_array, dimensions: Sequence[int], n: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """<Ex, Ev_l> for n random Gaussian E and all labels, up to a positive factor for each E.

    No d x terms matrix is drawn, only what matters of it. With ``|x| = 1`` split v into <v, x> x
    and the rest r. Er is independent of Ex, and given Ex, <Ex, Er> is ``|Ex| / sqrt(d)`` times
    <g, r> with one standard normal g for all labels; ``d |Ex|^2`` is a chi-square variable. Divided
    by ``|Ex|`` the score is ``<v, x> |Ex| + <g, r> / sqrt(d)``.

    Yields
    ------
    array of shape (n_labels, n), for each d of ``dimensions``
    """
    g = rng.standard_normal((V.shape[1], n), dtype=np.float32)
    along = (V @ x.T).toarray()
    across = V @ g - along * (x @ g)
    for d in dimensions:
        yield along * np.sqrt(rng.chisquare(d, n) / d) + across / np.sqrt(d)


# ---- real documents


@dataclass(frozen=True)
class Margins:
    """What was measured in one setting.

    A *set* is a document, a label p that it carries, and all M labels that it does not carry and
    the SVM ranks below p. From each set some *pairs* (p, n) are drawn.
    """

    # Of the pairs, sets x draws.
    epsilon: Floats
    delta: Floats  # the larger of the two labels' drops
    cosine: Floats  # of x and v_p - v_n
    # Of the sets: least margin, largest drop.
    set_epsilon: Floats
    set_delta: Floats
    # For each dimension, how many of as many projections as there are pairs mis-ordered the pair
    # that they were drawn for, and any label of its set.
    pair_errors: NDArray[np.int64]
    set_errors: NDArray[np.int64]

    @property
    def gap(self) -> Floats:
        """Eps - delta of the pairs; the theorem speaks of those where it is positive."""
        return self.epsilon - self.delta

    @property
    def set_gap(self) -> Floats:
        """Eps - delta of the sets."""
        return self.set_epsilon - self.set_delta


@dataclass(frozen=True)
class Study:
    """Both settings on the same documents, labels and pairs; ``sizes`` has M of every set."""

    documents: int
    labels: int
    dimensions: tuple[int, ...]
    sizes: NDArray[np.int64]
    theorem: Margins
    keyword: Margins

    @property
    def pairs(self) -> int:
        """How many pairs were drawn, and projections in each setting and dimension."""
        return int(self.theorem.epsilon.size)


class _Set(NamedTuple):
    positive: int
    below: NDArray[np.intp]
    drawn: NDArray[np.intp]


def study(
    X: csr_array,
    Y: csr_array,
    weights: csr_array,
    bias: NDArray[np.floating],
    keywords: csr_array,
    *,
    dimensions: Sequence[int] = DIMENSIONS,
    draws: int = 20,
    seed: int = 0,
) -> Study:
    """Measure margins and simulate projections for all sets of these documents.

    ``X`` is documents x terms and ``Y`` documents x labels; ``weights``, ``bias`` and ``keywords``
    are as for ``Setting.of``, and labels with a bias of -inf, which the SVM cannot rank, are left
    out. From each set ``draws`` pairs are drawn, each with a projection of its own. A large d costs
    no more than a small one.
    """
    known = np.flatnonzero(np.isfinite(bias))
    weights, bias, keywords, Y = weights[known], bias[known], keywords[known], Y[:, known]
    theorem = Setting.of(X, weights, bias, keywords, shifted=True)
    keyword = Setting.of(X, weights, bias, keywords, shifted=False)
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    measured: tuple[list[list[Numbers]], list[list[Numbers]]] = ([], [])
    starts = range(0, X.shape[0], _BLOCK)
    for start in track(starts, "projections", total=len(starts)):
        rows = slice(start, start + _BLOCK)
        full, kept = theorem.scores(rows), theorem.keyword_scores(rows)
        alone = keyword.keyword_scores(rows)
        # The weights of the keyword setting are its keywords: what they drop is nothing.
        scores = ((full, kept), (alone, alone))
        for i in range(len(full)):
            for case in _sets(full[i], Y[[start + i]].indices, draws, rng):
                sizes.append(len(case.below))
                for out, setting, (w, v) in zip(measured, (theorem, keyword), scores, strict=True):
                    x = setting.X[[start + i]]
                    margins = _margins(setting.V, case, w[i], v[i])
                    out.append([*margins, *_errors(setting.V, x, case, dimensions, rng)])
    if not sizes:
        raise CorpusError(
            f"The run ranks no label that the {X.shape[0]} documents carry above another, so there "
            f"is no margin to measure. Give more documents, or the corpus the run was fitted on."
        )
    shape = (X.shape[0], len(known), tuple(dimensions))
    return Study(*shape, np.array(sizes), _gathered(measured[0]), _gathered(measured[1]))


def _sets(
    scores: Floats, carried: NDArray[np.integer], draws: int, rng: np.random.Generator
) -> Iterator[_Set]:
    """One document's labels that are ranked above some label it does not carry."""
    negative = np.ones(len(scores), bool)
    negative[carried] = False
    for p in carried:
        below = np.flatnonzero(negative & (scores < scores[p]))
        if len(below):
            yield _Set(int(p), below, rng.choice(below, draws))


def _margins(V: csr_array, case: _Set, full: Floats, kept: Floats) -> list[Numbers]:
    """Epsilon, delta and cosine of the drawn pairs; epsilon and delta of the set."""
    p, below, drawn = case
    dropped = full - kept
    away = V[np.full(len(drawn), p)] - V[drawn]
    keyword = kept[p] - kept[drawn]
    length = np.sqrt(_squares(away))
    # Two labels without keywords, and with the same bias: no projection can tell them apart.
    cosine = np.divide(keyword, length, out=np.zeros_like(keyword), where=length > 0)
    return [
        full[p] - full[drawn],
        np.maximum(dropped[p], dropped[drawn]),
        cosine,
        full[p] - full[below].max(),
        np.maximum(dropped[p], dropped[below].max()),
    ]


def _errors(
    V: csr_array, x: csr_array, case: _Set, dimensions: Sequence[int], rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """How many projections mis-order the pair drawn for them, and any pair of the set."""
    p, below, drawn = case
    n = len(drawn)
    projections = list(projected_scores(V, x, dimensions, n, rng))
    pair = [np.sum(s[drawn, np.arange(n)] >= s[p]) for s in projections]
    whole = [np.sum(s[below].max(axis=0) >= s[p]) for s in projections]
    return np.array(pair), np.array(whole)


def _gathered(rows: list[list[Numbers]]) -> Margins:
    """One ``Margins`` of all sets' measurements; errors are added up."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    columns[-2:] = [errors.sum(axis=0) for errors in columns[-2:]]
    return Margins(*columns)
