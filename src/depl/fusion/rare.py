"""The order of suggestions: how far rare labels are favoured, and what follows the probable ones.

P@k is highest with the most probable labels first; PSP@k, where a rare label counts more, with the
largest probability times inverse propensity. A power of the inverse propensity, by which a label's
odds are multiplied, interpolates between the two: 0 gives the first order, and the larger it is,
the nearer the second. It multiplies odds, not probabilities, so that a nearly certain label keeps
its rank.

The power is as large as it can be without costing the head more than it may. What it costs cannot
be counted on a few thousand documents, of which it changes a hundred: between random halves of
3,000 held-out documents, powers chosen by counting differed from 0.0 to 0.45, and PSP@1 with them
by two points. What it is expected to cost by the probabilities is not left to chance, but too
little, because rare labels that come to the top are those whose probabilities are too high. So the
expected loss is multiplied by how many times as large the real one is (``times_expected``): this
is estimated from the documents that change at every power, also at large ones, where there are
many. ``python benchmarks/favour.py DATA`` compares both ways on training documents.

Where documents carry fewer labels than are asked for, the rest of the list is labels that are
hardly probable. Rare ones there are nearly always wrong, and one wrong suggestion weighs as much as
a right one in the F1 of a label with two documents; common labels do not mind. So improbable labels
can be put in another order, the common ones first. Whether it pays is measured on the held-out
documents of every run (``choose_order``); benchmarks/README.md has what it is worth, under "Out of
the box". Where rare labels are found by their names, as in WordNet's definitions, it is not done.
Which labels are improbable, and the orders to choose from, were compared with others on training
documents of ten cases: ``python benchmarks/fill.py DATA``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.evaluation.bands import band_of
from depl.evaluation.metrics import (
    Floats,
    Hits,
    f1_at_k,
    macro_average,
    precision_and_psp,
)

FILLS = (0.0, 1.0, 2.0, 4.0)
IMPROBABLE = 0.02
CUTS = (1, 5)

_STEPS = 20  # from power 0 to 1
_ROUNDING = 1e-9  # of a loss: it must not decide
_BEHIND = 1e3  # more than any log-odds
_RARE = 1  # the band of labels with 1 to 9 training documents
# How many times as large as expected a loss is, before any document was counted: on training
# documents that the runs of benchmarks/favour.py do not know it was 1 to 2 times.
_TIMES, _SPREAD = 1.5, 0.5


def rare_labels(counts: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which labels have 1 to 9 training documents."""
    rare: NDArray[np.bool_] = band_of(counts) == _RARE
    return rare


@dataclass(frozen=True)
class Order:
    """In which order labels are suggested.

    Parameters
    ----------
    power : float
        The power of the inverse propensity by which a label's odds are multiplied.
    fill : float
        The power by which those of improbable labels are divided; these follow all others. 0 leaves
        them among the others.
    below : float
        The probability below which labels are improbable.
    """

    power: float = 0.0
    fill: float = 0.0
    below: float = IMPROBABLE

    def keys(self, log_odds: Floats, probability: Floats, inverse: Floats) -> Floats:
        """What to sort pairs by, the largest first; ``inverse`` are inverse propensities."""
        weight = np.log(inverse)
        keys: Floats = log_odds + self.power * weight
        if self.fill:
            behind = log_odds - self.fill * weight - _BEHIND
            keys = np.where(probability < self.below, behind, keys)
        return keys


def choose_order(
    rows: NDArray[np.integer],
    labels: NDArray[np.integer],
    log_odds: Floats,
    probability: Floats,
    Y: csr_array,
    inverse: Floats,
    rare: NDArray[np.bool_],
    head_loss: float,
    *,
    below: float = IMPROBABLE,
    fills: Sequence[float] = FILLS,
) -> Order:
    """The order that favours rare labels as far as it costs the head little.

    For every order of improbable labels the largest power that costs neither P@1 nor P@5 more than
    ``head_loss``; and of these the one with the best sum of P@1, P@5, PSP@1, PSP@5 and the
    macro-F1@5 of rare labels that occur.

    Parameters
    ----------
    rows, labels, log_odds, probability : arrays of shape (n_pairs,)
        Candidates, from a model that did not see their documents.
    Y : csr_array of shape (n_documents, n_labels)
        The labels of the documents.
    inverse : array of shape (n_labels,)
        Inverse propensities.
    rare : array of shape (n_labels,), bool
        Which labels are rare.
    head_loss : float
        How many points P@1 and P@5 may each lose; 0 keeps the order of probabilities.
    below : float
        The probability below which labels are improbable.
    fills : sequence of float
        The orders of improbable labels to choose from, as ``Order`` has them; 0 first.
    """
    if head_loss == 0:
        return Order()

    def best(order: Order) -> Ranking:
        keys = order.keys(log_odds, probability, inverse[labels])
        return Ranking.from_pairs(rows, labels, probability, Y.shape[0], max(CUTS), order=keys)

    powers = [step / _STEPS for step in range(_STEPS + 1)]
    path = [Precisions.of(best(Order(x, 0.0, below)), Y) for x in powers]
    times = times_expected(path)

    def harmless(found: Precisions) -> bool:
        return bool((times * (path[0].likely - found.likely)).max() <= head_loss + _ROUNDING)

    # Power 0 costs nothing.
    largest = max(x for x, found in zip(powers, path, strict=True) if harmless(found))
    without = Order(largest, 0.0, below)

    def with_fill(fill: float) -> Order | None:
        orders = (Order(x, fill, below) for x in reversed(powers) if x <= largest)
        return next((x for x in orders if harmless(Precisions.of(best(x), Y))), None)

    # With an order of improbable labels a little less favour may be all that is left to spend.
    orders = [without, *filter(None, (with_fill(x) for x in fills if x))]
    there = rare & (np.bincount(Y.indices, minlength=len(rare)) > 0)

    def worth(ranking: Ranking) -> float:
        tail = macro_average(f1_at_k(Hits.of(ranking.indices, Y), max(CUTS)), there)
        return sum(precision_and_psp(ranking.indices, Y, inverse, CUTS).values()) + 100 * tail

    return max(orders, key=lambda x: worth(best(x)))


class Precisions(NamedTuple):
    """P@1 and P@5 of a ranking in percent.

    Parameters
    ----------
    counted : array of shape (n_documents, 2)
        Of every document.
    likely : array of shape (2,)
        Of all of them, as they would be if the scores were right.
    """

    counted: Floats
    likely: Floats

    @classmethod
    def of(cls, ranking: Ranking, Y: csr_array) -> Precisions:
        """Those of a ranking whose scores are probabilities."""
        right = Hits.of(ranking.indices, Y).correct
        likely = np.where(ranking.indices >= 0, ranking.scores, 0.0)
        counted, expected = (
            np.stack([100 * x[:, :k].sum(axis=1, dtype=np.float64) / k for k in CUTS], axis=1)
            for x in (right, likely)
        )
        return cls(counted, expected.mean(axis=0))


def times_expected(path: Sequence[Precisions]) -> Floats:
    """How many times as large as expected the losses of P@1 and P@5 are, each at least 1.

    The steps from one ranking to the next change different documents. So the factor is a least
    squares fit to the losses of all steps, each as certain as its number of changed documents lets
    it be, and drawn to ``_TIMES``, from which it is expected to differ by ``_SPREAD``.

    Parameters
    ----------
    path : sequence of Precisions
        Of the same documents, with rising powers.
    """
    lost = -np.diff([x.counted for x in path], axis=0)  # (steps, documents, cuts)
    expected = -np.diff([x.likely for x in path], axis=0)
    one = 100 / np.array(CUTS, np.float64)  # a label more or less: no step is certain
    certainty = lost.shape[1] ** 2 / (np.square(lost).sum(axis=1) + one**2)
    slope = (certainty * expected * lost.mean(axis=1)).sum(axis=0) + _TIMES / _SPREAD**2
    scale = (certainty * np.square(expected)).sum(axis=0) + 1 / _SPREAD**2
    factors: Floats = np.maximum(slope / scale, 1.0)
    return factors
