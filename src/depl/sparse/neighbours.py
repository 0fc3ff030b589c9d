"""Training documents whose words are most like a text's vote for their labels.

An SVM sums up what all documents of a label have in common; a text may be like one of them in
particular: another edition, an amendment, a package of the same source. On EURLEX57K the votes
alone have a P@1 of 91.7, the SVM 93.2; docs/how-it-works.md has what the fusion gains by them.

Every term counts. Without those that more than a tenth of the documents have, neighbours are found
in an eighth of the time, but a third to a half of the gain is lost. Titles that look for titles, or
for texts, added nothing, and 20 neighbours were as good as 50.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from depl.core.executor import Executor, LocalExecutor
from depl.core.ranking import Ranking
from depl.core.votes import votes
from depl.sparse.products import best_rows, by_column

WORD_NEIGHBOURS = "word neighbours"  # the part of a fusion


class WordNeighbours:
    """Ranks labels by the votes of the training documents with the largest cosine of words.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        Vectors of the training documents, of length 1.
    Y : csr_array of shape (n_documents, n_labels)
        Their labels.
    k, sharpness
        How many training documents vote, and how much more the nearer ones count.
    n_threads : int or None
        For many documents; None means one per core.
    """

    def __init__(
        self,
        X: csr_array,
        Y: csr_array,
        *,
        k: int,
        sharpness: float,
        n_threads: int | None = None,
    ) -> None:
        self.Y, self.k, self.sharpness, self.n_threads = Y, k, sharpness, n_threads
        self.n_terms = int(X.shape[1])
        self._by_term = by_column(X)

    def rank(self, X: csr_array, k: int, executor: Executor | None = None) -> Ranking:
        """The k labels with the largest shares of the votes, for every text."""
        nearest = self.nearest(X, executor)
        return votes(nearest, self.Y, sharpness=self.sharpness, k=k)

    def nearest(self, X: csr_array, executor: Executor | None = None) -> Ranking:
        """Positions of the nearest training documents, and their cosines."""
        executor = executor or LocalExecutor(self.n_threads)
        none = np.zeros(self.Y.shape[0], np.float32)
        found = best_rows(X, self._by_term, none, self.k, executor, "nearest documents")
        return found.keep(found.scores > 0)
