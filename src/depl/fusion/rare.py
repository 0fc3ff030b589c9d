"""The order of suggestions: how far rare labels are favoured, and what follows the probable ones.

P@k is highest with the most probable labels first; PSP@k, where a rare label counts more, with the
largest probability times inverse propensity. A power of the inverse propensity, by which a label's
odds are multiplied, interpolates between the two: 0 gives the first order, and the larger it is,
the nearer the second. It multiplies odds, not probabilities, so that a nearly certain label keeps
its rank.

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

from collections.abc import Iterable, Sequence
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
    mean_and_error,
    precision_and_psp_by_document,
)

POWERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
FILLS = (0.0, 1.0, 2.0, 4.0)
IMPROBABLE = 0.02
CUTS = (1, 5)

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
    """The best order that costs the head little.

    First the power with the best sum of P@1, P@5, PSP@1 and PSP@5, then, with it, the order of
    improbable labels with the best sum of these and the macro-F1@5 of rare labels that occur.

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
        How many points P@1 and P@5 may each lose, with the standard error of the loss, since on
        new documents it can be that much larger; 0 keeps the order of probabilities.
    below : float
        The probability below which labels are improbable.
    fills : sequence of float
        The orders of improbable labels to choose from, as ``Order`` has them; 0 first.
    """
    if head_loss == 0:
        return Order()
    rare = rare & (np.bincount(Y.indices, minlength=len(rare)) > 0)

    def scores(order: Order) -> tuple[dict[str, Floats], float]:
        keys = order.keys(log_odds, probability, inverse[labels])
        best = Ranking.from_pairs(rows, labels, keys, Y.shape[0], max(CUTS)).indices
        tail = macro_average(f1_at_k(Hits.of(best, Y), max(CUTS)), rare) if rare.any() else 0.0
        return precision_and_psp_by_document(best, Y, inverse, CUTS), 100 * tail

    plain, _ = scores(Order())

    def best_of(orders: Iterable[Order], weight_of_tail: float) -> Order:
        """The first of the best; the first of all is taken where none is harmless."""
        worth: dict[Order, float] = {}
        for order in orders:
            by_document, tail = scores(order)
            lost = (mean_and_error(plain[f"P@{k}"] - by_document[f"P@{k}"]) for k in CUTS)
            # A rounding error must not decide.
            if not worth or all(sum(x) <= head_loss + 1e-9 for x in lost):
                found = sum(float(x.mean()) for x in by_document.values())
                worth[order] = found + weight_of_tail * tail
        return max(worth, key=worth.__getitem__)

    power = best_of((Order(x) for x in POWERS), 0.0).power
    return best_of((Order(power, x, below) for x in fills), 1.0)
