"""Labels that were added since the fit, ready to be ranked beside those of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.fusion.newcomers import NewcomerModel
from depl.sparse.evidence import Evidence, profiles
from depl.sparse.tfidf import TfidfFeatures

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
    """

    positions: NDArray[np.int64]
    features: TfidfFeatures
    evidence: Evidence
    model: NewcomerModel
    examples: list[str]

    def rank(self, texts: Sequence[str], X: csr_array, svm: Ranking, k: int) -> Ranking:
        """The k most probable of these labels for every text.

        Parameters
        ----------
        texts, X
            The texts, and their tf-idf over the run's own terms.
        svm : Ranking
            What the SVM says about the run's own labels.
        k : int
            How many.
        """
        X = self.vectors(texts, X)
        blocks = [
            self._rank(X[i : i + _BLOCK], svm.take(slice(i, i + _BLOCK)), k)
            for i in range(0, X.shape[0], _BLOCK)
        ]
        return Ranking.concatenate(blocks) if blocks else Ranking.empty(0, k)

    def vectors(self, texts: Sequence[str], X: csr_array) -> csr_array:
        """The texts' tf-idf over all terms; X is that over the run's own."""
        own = X.shape[1] == len(self.features.terms_)
        return X if own else self.features.transform(texts)

    def evidence_for(self, X: csr_array, svm: Ranking) -> NDArray[np.float32]:
        """The evidence for every label in documents given by ``vectors``."""
        return self.evidence.of(X, profiles(svm, self.evidence.profiles.shape[1]))

    def _rank(self, X: csr_array, svm: Ranking, k: int) -> Ranking:
        found = self.model.probabilities(self.evidence_for(X, svm), self.evidence.counts)
        best = Ranking.from_scores(found, k)
        places = np.append(self.positions, -1)[best.indices].astype(np.int32)
        return Ranking(places, best.scores)
