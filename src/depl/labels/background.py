"""Documents of a run among which those are looked for that probably carry a new label.

They are the documents that were held out, as an SVM sees them that has not learnt them: that is how
new documents are seen. Labels that play newcomers are looked for in them, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from depl.core.ranking import Ranking
from depl.fusion.newcomers import NewcomerModel
from depl.labels.moments import Moments, weigh
from depl.neural.meanings import Meanings
from depl.run.folder import Run
from depl.run.newcomers import known_evidence
from depl.run.titles import Titles
from depl.sparse.evidence import (
    SEEN,
    Evidence,
    members_of,
    over_columns,
    profiles,
    rarity,
    unit_rows,
)
from depl.sparse.likely import Likely, likely_documents
from depl.sparse.tfidf import TfidfFeatures

BLOCK = 500  # documents whose evidence is in memory at a time

_DOCUMENTS = 3_000


@dataclass(frozen=True)
class Background:
    """Documents of a run with all that labels are compared with.

    Parameters
    ----------
    documents : array of shape (n_documents,)
        Which of the training documents they are.
    X : csr_array of shape (n_documents, n_terms)
        Their tf-idf.
    seen : csr_array of shape (n_documents, n_labels)
        What the SVMs see in them that have not learnt them, by ``sparse.evidence.profiles``.
    titles : csr_array of shape (n_documents, n_terms)
        The tf-idf of their titles; empty rows where titles are not read.
    vectors : array of shape (n_documents, size) or None
        Their vectors of length 1, where the run has an encoder.
    """

    documents: NDArray[np.int64]
    X: csr_array
    seen: csr_array
    titles: csr_array
    vectors: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        run: Run,
        rng: np.random.Generator,
        *,
        X: csr_array | None = None,
        features: TfidfFeatures | None = None,
        held_out: Ranking | None = None,
        encoded: Callable[[NDArray[np.int64]], NDArray[np.float32]] | None = None,
    ) -> Background:
        """Those of a run, at random.

        Parameters
        ----------
        run : Run
            With an SVM and the SVMs of its held-out documents.
        rng : Generator
            For the choice.
        X, features : csr_array of shape (n_train, n_terms), TfidfFeatures, optional
            The tf-idf of all training documents, and what made it, if these are not the run's own.
        held_out : Ranking, optional
            How the SVMs rank all held-out documents, where it is known already.
        encoded : function, optional
            Gives the vectors of some training documents.
        """
        own = run.train_vectors()
        all_held_out = run.slice.held_out
        some = np.sort(rng.permutation(len(all_held_out))[:_DOCUMENTS])
        documents = all_held_out[some]
        if held_out is None:
            fold = run.slice.fold[documents]
            ranked = run.rank_held_out(csr_array(own[documents]), fold, SEEN)
        else:
            ranked = held_out.take(some)
        titles = Titles.ranked(run.train_texts().take(documents), run.config().fusion.titles)
        return cls(
            documents,
            csr_array((own if X is None else X)[documents]),
            profiles(ranked, rarities(run.Y)),
            titles.vectors(run.features() if features is None else features),
            None if encoded is None else encoded(documents),
        )

    def over(self, n_terms: int) -> Background:
        """The same over further terms, which none of the documents has."""
        X, titles = over_columns(self.X, n_terms), over_columns(self.titles, n_terms)
        return replace(self, X=X, titles=titles)

    def known(
        self,
        evidence: Evidence,
        meanings: Meanings | None,
        broad: NDArray[np.float32],
        rows: slice,
    ) -> NDArray[np.float32]:
        """What is known of labels, as evidence in some of the documents."""
        X, seen, titles = (csr_array(x[rows]) for x in (self.X, self.seen, self.titles))
        vectors = None if self.vectors is None else self.vectors[rows]
        return known_evidence(evidence, meanings, broad, X, seen, titles, vectors)

    def likely(
        self,
        evidence: Callable[[slice], NDArray[np.float32]],
        labels: Evidence,
        model: NewcomerModel,
        moments: Moments,
        *,
        cull: float,
        parts: int = 1,
    ) -> list[Likely]:
        """What the documents tell that probably carry some labels.

        Parameters
        ----------
        evidence : function
            Gives what is known of the labels as evidence in some of the documents.
        labels : Evidence
            Of them, with their examples, which count as likely documents.
        model : NewcomerModel
            That goes by this evidence.
        moments : Moments
            Of the training documents.
        cull : float
            Weights smaller than this are dropped, where such a row has the length of an SVM's.
        parts : int
            How many answers: answer i is without the documents i, i + parts ... where there are
            several, so that these can be compared with labels as new documents are.
        """
        counts = labels.counts
        blocks = [
            model.of_others(evidence(slice(i, i + BLOCK)), counts)
            for i in range(0, len(self.documents), BLOCK)
        ]
        n, n_terms = len(counts), len(moments.mean)
        chances = np.concatenate([np.empty((0, n), np.float32), *blocks])
        shares = chances.sum(axis=0, dtype=np.float64) / max(1, len(chances))
        members = members_of(labels.example_owner, n)
        documents = csr_array(
            vstack([self.X[:, :n_terms], labels.examples[:, :n_terms]], format="csr")
        )
        found = []
        for part in range(parts):
            others = chances.copy()
            if parts > 1:
                others[part::parts] = 0.0
            those = csr_array(hstack([likely_documents(others), members], format="csr"))
            weights = unit_rows(weigh(moments, documents, those, cull=cull)[0])
            found.append(Likely(shares.astype(np.float32), weights))
        return found


def rarities(Y: csr_array) -> NDArray[np.float64]:
    """How rare each label of a run is."""
    return rarity(np.bincount(Y.indices, minlength=Y.shape[1]), Y.shape[0])
