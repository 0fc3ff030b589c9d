"""Probabilities that are right for rare and for common labels: a line for each frequency.

The trees know how many training documents a label has, but grow few leaves for what rare labels
share with nothing else, and the line that makes their log-odds those of a probability is fitted on
all candidates, nearly all of them wrong. Among the first suggestions of documents, which people
see, the probabilities of rare labels were then too high: on 1,000 to 3,000 documents of debtags by
3 to 5 points for labels with 1 to 9. So a line that changes with the frequency is fitted on these
first suggestions. The order of suggestions does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from depl.core.ranking import Ranking
from depl.evaluation.metrics import Floats, Hits
from depl.fusion.calibration import minimise

COUNTS = (0, 3, 30, 300)  # training documents; between them lines change with ln(1 + count)
FIRST, FURTHER = 5, 10  # suggestions of a document to fit on
# How much the further ones count. Without them, probabilities of labels in no training document
# were 2.8 points too low on 1,000 documents of debtags, and 2.1 with them; where they count fully,
# those of labels with 1 to 9 were too high by 2.3, and by 1.3 with this.
_FURTHER_WEIGHT = 0.2
# How far a line may be expected to be from the usual one, and that from slope 1 and offset 0. With
# 0.3 for both, hardly anything changes but where there are few suggestions to learn from.
_OWN, _USUAL = 1.0, 0.3
_LEAST_SLOPE = 0.1


@dataclass(frozen=True)
class ByCount:
    """Log-odds corrected by slopes and offsets that depend on a label's training count.

    Parameters
    ----------
    slopes, offsets : tuple of float
        At each of the ``COUNTS``; beyond the last they stay the same.
    """

    slopes: tuple[float, ...] = (1.0,) * len(COUNTS)
    offsets: tuple[float, ...] = (0.0,) * len(COUNTS)

    def __post_init__(self) -> None:
        if {len(self.slopes), len(self.offsets)} != {len(COUNTS)}:
            raise ValueError(f"There must be {len(COUNTS)} slopes and offsets.")

    @classmethod
    def fit(
        cls,
        ranking: Ranking,
        Y: csr_array,
        train_counts: NDArray[np.integer],
        fold: NDArray[np.integer],
    ) -> ByCount:
        """Learn from the first suggestions of documents that were not fitted on.

        Parameters
        ----------
        ranking : Ranking
            Suggestions in their order; their scores are log-odds.
        Y : csr_array of shape (n_documents, n_labels)
            The labels of the documents.
        train_counts : array of shape (n_folds, n_labels)
            How many documents that the parts were trained on carry each label.
        fold : array of shape (n_documents,)
            The fold of each document.
        """
        first = ranking.top(FURTHER)
        listed = first.indices >= 0
        right = Hits.of(first.indices, Y).correct[listed]
        place = np.broadcast_to(np.arange(first.indices.shape[1]), listed.shape)[listed]
        weight = np.where(place < FIRST, 1.0, _FURTHER_WEIGHT)
        z = first.scores[listed].astype(np.float64)
        counts = train_counts[fold[:, None], np.maximum(first.indices, 0)][listed]
        near = _nearness(np.log1p(counts))
        # The usual slope and offset, then how far each line is from it.
        columns = np.column_stack([z, np.ones(len(z)), near * z[:, None], near])
        usual = np.zeros(columns.shape[1])
        usual[0] = 1.0
        spread = np.append([_USUAL] * 2, [_OWN] * (2 * len(COUNTS)))
        sign = np.where(right, 1.0, -1.0)

        def loss(line: Floats) -> tuple[float, Floats]:
            margin = sign * (columns @ line)
            pull = -weight * sign * expit(-margin)
            far = (line - usual) / spread
            value = (weight * np.logaddexp(0.0, -margin)).sum() + 0.5 * (far**2).sum()
            return value, columns.T @ pull + far / spread

        line = minimise(loss, usual)
        slopes, offsets = line[0] + line[2 : 2 + len(COUNTS)], line[1] + line[2 + len(COUNTS) :]
        return cls(tuple(np.maximum(slopes, _LEAST_SLOPE).tolist()), tuple(offsets.tolist()))

    def slope(self, log_counts: NDArray[np.floating]) -> Floats:
        """By how much log-odds are multiplied, from ln(1 + training count)."""
        return _between(log_counts, self.slopes)

    def corrected(self, z: Floats, log_counts: NDArray[np.floating]) -> Floats:
        """Log-odds of labels with these ln(1 + training count)."""
        return self.slope(log_counts) * z + _between(log_counts, self.offsets)

    def after(self, slope: float, offset: float) -> ByCount:
        """What is left to do where log-odds come with this slope and offset already.

        In the end log-odds have been multiplied by the slope, and the offset has been added.
        """
        offsets = (
            slope * b + offset * (1 - a) for a, b in zip(self.slopes, self.offsets, strict=True)
        )
        return ByCount(self.slopes, tuple(offsets))


def _nearness(log_counts: NDArray[np.floating]) -> Floats:
    """The weight of each of the ``COUNTS`` for labels: of the two around them, the nearer more."""
    return np.stack([_between(log_counts, one) for one in np.eye(len(COUNTS))], axis=-1)


def _between(log_counts: NDArray[np.floating], values: Sequence[float] | Floats) -> Floats:
    """Values at the ``COUNTS``, interpolated; without BLAS, where threads change the rounding."""
    found: Floats = np.interp(np.asarray(log_counts, np.float64), np.log1p(COUNTS), values)
    return found
