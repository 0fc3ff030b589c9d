"""Training documents whose words are most like a text's vote for their labels.

An SVM sums up what all documents of a label have in common; a text may be like one of them in
particular: another edition, an amendment, a package of the same source. On EURLEX57K the votes
alone have a P@1 of 91.7, the SVM 93.2; docs/how-it-works.md has what the fusion gains by them.

Common words cost most of the time, as they are in most documents. So they are left to the end: the
terms of a text are looked up from the rarest on, 200,000 entries of the training documents in all,
and the 250 best documents by these are compared by all of their words. Of the true 50 nearest, 99.4
% are found on EURLEX57K and 99.8 % on TIB-en, on EURLEX57K in half the time. Without the common
words at the end (those that more than a tenth of the documents have), a third to a half of the gain
is lost. Titles that look for titles, or for texts, added nothing, and 20 neighbours were as good
as 50.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from depl.core.executor import Executor, LocalExecutor
from depl.core.ranking import Ranking
from depl.core.votes import votes
from depl.sparse import _neighbour_kernels
from depl.sparse.chunks import Chunk, rank_in_chunks
from depl.sparse.duals import Compressed, by_column, kernel_arrays

WORD_NEIGHBOURS = "word neighbours"  # the part of a fusion

_BUDGET = 200_000  # entries of training documents that are looked up for a text
_RESCORED = 250  # documents that are compared by all words


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
        X = X.astype(np.float32, copy=False)
        self._by_term = by_column(X)
        self._by_document = kernel_arrays(X.indptr, X.indices, X.data)

    def rank(self, X: csr_array, k: int, executor: Executor | None = None) -> Ranking:
        """The k labels with the largest shares of the votes, for every text."""
        nearest = self.nearest(X, executor)
        return votes(nearest, self.Y, sharpness=self.sharpness, k=k)

    def nearest(self, X: csr_array, executor: Executor | None = None) -> Ranking:
        """Positions of the nearest training documents, and their cosines."""
        X = X.astype(np.float32, copy=False)
        texts = kernel_arrays(X.indptr, X.indices, X.data)
        asked = _Asked(texts, self._by_term, self._by_document, self.k)
        executor = executor or LocalExecutor(self.n_threads)
        return rank_in_chunks(_rank, asked, X.shape[0], self.k, executor, "nearest documents")


@dataclass(frozen=True)
class _Asked:
    """What all chunks of a search have in common."""

    texts: Compressed
    by_term: Compressed
    by_document: Compressed
    k: int


def _rank(asked: _Asked, chunk: Chunk) -> Ranking:
    """The nearest documents of the texts of a chunk."""
    out = Ranking.empty(chunk[1] - chunk[0], asked.k)
    _neighbour_kernels.nearest(
        *asked.texts,
        *chunk,
        *asked.by_term,
        *asked.by_document,
        _BUDGET,
        max(_RESCORED, asked.k),
        out.indices,
        out.scores,
    )
    return out
