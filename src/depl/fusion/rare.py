"""How far a ranking may favour rare labels before the frequent ones suffer.

P@k is highest with the most probable labels first; PSP@k, where a rare label counts more, with the
largest probability times inverse propensity. A power of the inverse propensity, by which a label's
odds are multiplied, interpolates between the two: 0 gives the first order, and the larger it is,
the nearer the second. It multiplies odds, not probabilities, so that a nearly certain label keeps
its rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.evaluation.metrics import Floats, mean_and_error, precision_and_psp_by_document

POWERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CUTS = (1, 5)


def favour(log_odds: Floats, inverse: Floats, power: float) -> Floats:
    """The log-odds of pairs; the odds are multiplied by a power of their inverse propensities."""
    raised: Floats = log_odds + power * np.log(inverse)
    return raised


def choose_power(
    rows: NDArray[np.integer],
    labels: NDArray[np.integer],
    log_odds: Floats,
    Y: csr_array,
    inverse: Floats,
    head_loss: float,
) -> float:
    """The power with the best mean of P@1, P@5, PSP@1 and PSP@5 that costs the head little.

    Parameters
    ----------
    rows, labels, log_odds : arrays of shape (n_pairs,)
        Candidates, from a model that did not see their documents.
    Y : csr_array of shape (n_documents, n_labels)
        The labels of the documents.
    inverse : array of shape (n_labels,)
        Inverse propensities.
    head_loss : float
        How many points P@1 and P@5 may each lose, with the standard error of the loss, since on
        new documents it can be that much larger; 0 favours no label.
    """

    def scores(power: float) -> dict[str, Floats]:
        raised = favour(log_odds, inverse[labels], power)
        best = Ranking.from_pairs(rows, labels, raised, Y.shape[0], max(CUTS))
        return precision_and_psp_by_document(best.indices, Y, inverse, CUTS)

    if head_loss == 0:
        return 0.0
    found = {power: scores(power) for power in POWERS}
    plain = found[0.0]
    harmless = [
        power
        for power, x in found.items()
        # A rounding error must not decide.
        if power == 0
        or all(sum(mean_and_error(plain[f"P@{k}"] - x[f"P@{k}"])) <= head_loss + 1e-9 for k in CUTS)
    ]
    return max(harmless, key=lambda power: sum(float(x.mean()) for x in found[power].values()))
