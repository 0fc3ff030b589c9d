"""Which labels a batch is scored against (section 3.3, "Learning with Negative Sampling")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import ConfigError
from depl.core.indicator import carried
from depl.core.ranking import Ranking


class LabelSampler:
    """A label subset for every batch: all positives, hard negatives, then random ones.

    Labels that no training document carries are never sampled: as mere negatives they could not be
    found afterwards (on TIB-en: recall@10 of unseen labels 0 when sampled, 14 % when not).

    Parameters
    ----------
    Y : csr_array of shape (n_documents, n_labels)
        Which document carries which label.
    hard : Ranking or None
        For every document the labels it could be mistaken for, such as the SVM's ranking; its own
        labels in it are skipped.
    n_hard : int
        Hard negatives per document; a ranking that holds fewer is refused.
    size : int
        Labels in a subset; exceeded only where positives and hard negatives are more.
    """

    def __init__(self, Y: csr_array, hard: Ranking | None, *, n_hard: int, size: int) -> None:
        self.Y = Y
        self.size = size
        self.seen = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
        self.hard = None if hard is None or n_hard == 0 else self._negatives(hard, n_hard)

    def draw(self, documents: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The label subset for these documents, ascending."""
        batch = self.Y[documents]
        chosen = [batch.indices]
        if self.hard is not None:
            hard = self.hard[documents].ravel()
            chosen.append(hard[hard >= 0])
        subset = np.unique(np.concatenate(chosen)).astype(np.int64)
        missing = min(self.size, len(self.seen)) - len(subset)
        if missing > 0:
            # Enough to have the missing ones left when those already in the subset are removed,
            # at a cost that does not grow with the number of labels.
            n = min(missing + len(subset), len(self.seen))
            drawn = self.seen[rng.choice(len(self.seen), n, replace=False)]
            others = drawn[~np.isin(drawn, subset)][:missing]
            subset = np.sort(np.concatenate([subset, others]))
        return subset

    def targets(
        self, documents: NDArray[np.int64], subset: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """1 where a document carries a label of the subset, (documents x subset)."""
        batch = self.Y[documents]
        targets = np.zeros((len(documents), len(subset)), np.float32)
        rows = np.repeat(np.arange(len(documents)), np.diff(batch.indptr))
        targets[rows, np.searchsorted(subset, batch.indices)] = 1.0
        return targets

    def _negatives(self, ranking: Ranking, n: int) -> NDArray[np.int32]:
        """The first n seen labels of each row that the document does not carry; then -1."""
        documents = np.arange(len(ranking))[:, None]
        wrong = np.isin(ranking.indices, self.seen) & ~carried(self.Y, documents, ranking.indices)
        found = ranking.keep(wrong).top(n).indices
        there = np.minimum(n, len(self.seen) - np.diff(self.Y.indptr))
        lacking = np.flatnonzero((found >= 0).sum(axis=1) < there)
        if len(lacking):
            first = lacking[0]
            raise ConfigError(
                f"{n} hard negatives per document are asked for, and the ranking holds "
                f"{(found[first] >= 0).sum()} labels that document {first} does not carry. Rank "
                f"more labels (depl fit does, from retrieval.hard_negatives), or ask for fewer."
            )
        return found
