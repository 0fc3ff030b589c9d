"""Labels that were added since the fit, ready to be ranked beside those of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.fusion.newcomers import NewcomerModel
from depl.neural import meanings
from depl.neural.meanings import Meanings, unit_length
from depl.run.titles import Titles
from depl.sparse import breadth, likely
from depl.sparse import evidence as words
from depl.sparse.evidence import Evidence, profiles
from depl.sparse.likely import Likely
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from depl.neural.retriever import Vectors

_BLOCK = 128  # documents whose evidence is in memory at a time


@dataclass(frozen=True)
class Newcomers:
    """The added labels of a run.

    Parameters
    ----------
    positions : array of shape (n,)
        Their positions among all labels, ascending.
    features : TfidfFeatures
        Those of the run, and the words that only these labels have.
    evidence : Evidence
        Their names and examples, over the terms of ``features``.
    model : NewcomerModel
        How probable a label is by the evidence.
    examples : list of str
        The texts of the examples, in the order of the evidence.
    likely : Likely
        What the documents of the run tell that probably carry them.
    rarities : array of shape (n_other_labels,)
        How rare the labels are that the SVM knows, by ``sparse.evidence.rarity``.
    read_titles : bool
        Whether the run ranks titles on their own; if not, it has not learnt what they are worth.
    meanings : Meanings or None
        Vectors of their names and examples, where the run has an encoder.
    """

    positions: NDArray[np.int64]
    features: TfidfFeatures
    evidence: Evidence
    model: NewcomerModel
    examples: list[str]
    likely: Likely
    rarities: NDArray[np.float64]
    read_titles: bool = False
    meanings: Meanings | None = None

    def rank(
        self, texts: Sequence[str], X: csr_array, svm: Ranking, k: int, vectors: Vectors | None
    ) -> Ranking:
        """The k most probable of these labels for every text.

        Parameters
        ----------
        texts, X
            The texts, and their tf-idf over the run's own terms.
        svm : Ranking
            What the SVM says about the run's own labels.
        k : int
            How many.
        vectors : tensor or None
            The texts' vectors, where the run has an encoder.
        """
        X, titles = self.vectors(texts, X), self.titles(texts)
        blocks = []
        for i in range(0, X.shape[0], _BLOCK):
            rows = slice(i, i + _BLOCK)
            own = None if vectors is None else vectors[rows]
            evidence = self.evidence_for(X[rows], titles[rows], svm.take(rows), own)
            blocks.append(self._rank(evidence, k))
        return Ranking.concatenate(blocks) if blocks else Ranking.empty(0, k)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns of the evidence are."""
        by_meaning = () if self.meanings is None else meanings.COLUMNS
        return (*words.COLUMNS, *by_meaning, *breadth.COLUMNS, *likely.COLUMNS)

    @cached_property
    def _breadth(self) -> NDArray[np.float32]:
        return breadth.breadth(self.evidence, self.features.idf_)

    def vectors(self, texts: Sequence[str], X: csr_array) -> csr_array:
        """The texts' tf-idf over all terms; X is that over the run's own."""
        own = X.shape[1] == len(self.features.terms_)
        return X if own else self.features.transform(texts)

    def titles(self, texts: Sequence[str]) -> csr_array:
        """The tf-idf of the texts' titles over all terms."""
        return Titles.ranked(texts, "yes" if self.read_titles else "no").vectors(self.features)

    def evidence_for(
        self, X: csr_array, titles: csr_array, svm: Ranking, vectors: Vectors | None
    ) -> NDArray[np.float32]:
        """The evidence for every label in documents, by what ``vectors`` and ``titles`` give."""
        seen, own = profiles(svm, self.rarities), None
        if self.meanings is not None:
            assert vectors is not None
            own = unit_length(vectors.cpu().numpy())
        found = [
            known_evidence(self.evidence, self.meanings, self._breadth, X, seen, titles, own),
            self.likely.of(X),
        ]
        return np.concatenate(found, axis=2)

    def _rank(self, evidence: NDArray[np.float32], k: int) -> Ranking:
        found = self.model.probabilities(evidence, self.evidence.counts)
        best = Ranking.from_scores(found, k)
        places = np.append(self.positions, -1)[best.indices].astype(np.int32)
        return Ranking(places, best.scores)


def known_evidence(
    evidence: Evidence,
    by_meaning: Meanings | None,
    broad: NDArray[np.float32],
    X: csr_array,
    seen: csr_array,
    titles: csr_array,
    vectors: NDArray[np.float32] | None,
) -> NDArray[np.float32]:
    """What is known of labels themselves, as evidence in documents: all but ``Likely``.

    Parameters
    ----------
    evidence, by_meaning, broad
        Names and examples, their vectors where there is an encoder, and how broad the labels are.
    X, seen, titles
        Of the documents, as ``Evidence.of`` takes them.
    vectors : array of shape (n_documents, size) or None
        The documents' vectors, of length 1.
    """
    found = [evidence.of(X, seen, titles)]
    if by_meaning is not None:
        assert vectors is not None
        found.append(by_meaning.of(vectors))
    found.append(np.broadcast_to(broad, (X.shape[0], *broad.shape)))
    return np.concatenate(found, axis=2)
