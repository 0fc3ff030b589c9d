"""How far probabilities can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from depl.evaluation.metrics import Floats, Hits, ratio


@dataclass(frozen=True)
class Reliability:
    """How well probabilities are calibrated: suggestions by probability, in bins of equal width.

    Parameters
    ----------
    counts : array of shape (n_bins,)
        Suggestions with a probability in the bin.
    probability : array of shape (n_bins,)
        Their mean probability; 0 in empty bins.
    right : array of shape (n_bins,)
        The share of them that is correct; 0 in empty bins.
    """

    counts: NDArray[np.int64]
    probability: Floats
    right: Floats

    @property
    def error(self) -> float:
        """Expected calibration error.

        ``ECE = sum_b counts_b / counts |probability_b - right_b|``.
        """
        off = np.abs(self.probability - self.right)
        return float((self.counts * off).sum() / max(1, self.counts.sum()))


def reliability(hits: Hits, probabilities: NDArray[np.floating], n_bins: int = 15) -> Reliability:
    """Compare the probabilities of predicted labels with how often they are correct.

    Parameters
    ----------
    hits : Hits
        Of n documents and k labels each.
    probabilities : array of shape (n, k)
        Of the predicted labels; those of empty places are ignored.
    n_bins : int
        Bins of equal width from 0 to 1.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> hits = Hits.of(np.array([[0, 1]]), csr_array([[1, 0]]))
    >>> reliability(hits, np.array([[0.9, 0.3]]), n_bins=2).right.tolist()
    [0.0, 1.0]
    """
    listed = hits.predicted >= 0
    p, right = probabilities[listed].astype(np.float64), hits.correct[listed]
    bins = np.clip((p * n_bins).astype(np.int64), 0, n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    means = [ratio(np.bincount(bins, x, minlength=n_bins), counts) for x in (p, right)]
    return Reliability(counts, *means)
