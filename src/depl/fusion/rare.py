"""The order of suggestions: how far rare labels are favoured, and what follows the probable ones.

P@k is highest with the most probable labels first; PSP@k, where a rare label counts more, with the
largest probability times inverse propensity. A power of the inverse propensity, by which a label's
odds are multiplied, interpolates between the two: 0 gives the first order, and the larger it is,
the nearer the second. It multiplies odds, not probabilities, so that a nearly certain label keeps
its rank. How the power is chosen was compared on training documents of the three shared corpora
and of ten small parts of them; with the standard error of the counted loss instead of the expected
one, as it was before, powers differed from 0.1 to 0.6 between random halves of 4,500 documents.

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
    macro-F1@5 of rare labels that occur. What it costs is counted, and also expected by
    the probabilities: few documents change, so that counting alone is a matter of chance, and rare
    labels that come to the top are those whose probabilities are too high.

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

    plain = precisions(best(Order()), Y)

    def harmless(ranking: Ranking) -> bool:
        return bool((plain - precisions(ranking, Y)).max() <= head_loss + _ROUNDING)

    def largest(powers: Sequence[float], fill: float) -> Order | None:
        orders = (Order(x, fill, below) for x in powers)
        return next((x for x in orders if harmless(best(x))), None)

    falling = [step / _STEPS for step in range(_STEPS, -1, -1)]
    without = largest(falling, 0.0) or Order(below=below)  # which costs nothing
    # With an order of improbable labels a little less favour may be all that is left to spend.
    less = [x for x in falling if x <= without.power]
    orders = [without, *filter(None, (largest(less, x) for x in fills if x))]
    there = rare & (np.bincount(Y.indices, minlength=len(rare)) > 0)

    def worth(ranking: Ranking) -> float:
        tail = macro_average(f1_at_k(Hits.of(ranking.indices, Y), max(CUTS)), there)
        return sum(precision_and_psp(ranking.indices, Y, inverse, CUTS).values()) + 100 * tail

    return max(orders, key=lambda x: worth(best(x)))


def precisions(ranking: Ranking, Y: csr_array) -> Floats:
    """P@1 and P@5 in percent, as they are and as they would be if the scores were right."""
    right = Hits.of(ranking.indices, Y).correct
    likely = np.where(ranking.indices >= 0, ranking.scores, 0.0)
    found = [x[:, :k].sum(dtype=np.float64) / k for x in (right, likely) for k in CUTS]
    return 100 * np.array(found) / len(right)
