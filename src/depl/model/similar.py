"""Similarity: training documents similar to a text, labels similar to a label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from depl.run.folder import Run
from depl.run.state import State
from depl.sparse.renewal import Renewal
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from depl.neural.retriever import Vectors

OPENING = 300  # characters of a document's text


@dataclass(frozen=True)
class Neighbour:
    """A training document that carries the label: id, beginning of the text, similarity."""

    id: str
    text: str
    similarity: float


class TrainingDocuments:
    """The training documents of a run, read on first use.

    Parameters
    ----------
    run : Run
        The run.
    features : TfidfFeatures, optional
        What the run has learnt since it was fitted.
    """

    def __init__(self, run: Run, features: TfidfFeatures | None = None) -> None:
        self._run, self._features = run, features

    @cached_property
    def vectors(self) -> csr_array:
        """Their tf-idf."""
        vectors = self._run.train_vectors()
        if self._features is None:
            return vectors
        return Renewal(self._run.idf(), self._features).rows(vectors)

    def read(self) -> None:
        """Read all of it now, as a service does: the run may be fitted again while it is used."""
        _ = self.vectors, self._carried, self._openings

    def carrying(self, label: int) -> NDArray[np.int32]:
        """Positions of the documents that carry a label; none for labels added since."""
        carried = self._carried
        if label >= carried.shape[1]:
            return np.empty(0, np.int32)
        return np.asarray(carried.indices[carried.indptr[label] : carried.indptr[label + 1]])

    def opening(self, position: int) -> tuple[str, str]:
        """A document's id, and the beginning of its text."""
        ids, texts = self._openings
        return ids[position].as_py(), texts[position].as_py()

    @cached_property
    def _carried(self) -> csc_array:
        return csc_array(self._run.Y)

    @cached_property
    def _openings(self) -> tuple[Any, Any]:
        """Ids and beginnings as arrow columns: whole texts would take seconds and memory."""
        return self._run.openings(OPENING)


def nearest_documents(
    state: State,
    training: TrainingDocuments,
    x: csr_array,
    vectors: Vectors | None,
    label: int,
    k: int,
) -> list[Neighbour]:
    """The k training documents with a label that are most similar to a text, nearest first.

    Parameters
    ----------
    state, training
        The run.
    x, vectors
        The text's tf-idf, and its vector where the run has an encoder, which then decides.
    label, k
        Of which label, and how many.
    """
    rows = training.carrying(label)
    if not len(rows):
        return []
    if state.retriever is None or vectors is None:
        similarity = training.vectors[rows] @ x.toarray()[0]
    else:
        vector = vectors[0].cpu().numpy()
        unit = vector / max(float(np.linalg.norm(vector)), 1e-30)
        similarity = state.retriever.retriever.documents.vectors[rows] @ unit
    best = np.argsort(-similarity, kind="stable")[:k]
    return [
        Neighbour(*training.opening(int(rows[i])), float(similarity[i]))
        for i in best
        if similarity[i] > 0
    ]


def nearest_labels(state: State, position: int, k: int) -> list[tuple[int, float]]:
    """The k labels most similar to one: by the encoder, else by SVM weights, else by names."""
    if state.retriever is not None:
        vectors = state.retriever.retriever.labels.vectors
        lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-30)
        cosine = (vectors @ vectors[position]) / (lengths * lengths[position])
    else:
        weights = state.svm.weights_
        row = csr_array(weights[[position]])
        if not row.nnz:  # no training document: only its names can be compared
            own = np.flatnonzero(state.names.owner == position)
            ranking = state.names.rank(csr_array(state.names.names[own]), k + 1)
            best: dict[int, float] = {}
            for j, s in zip(ranking.indices.ravel(), ranking.scores.ravel(), strict=True):
                if j >= 0 and j != position and j not in state.removed:
                    best[int(j)] = max(float(s), best.get(int(j), 0.0))
            return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        lengths = np.sqrt(np.add.reduceat(np.append(weights.data**2, 0), weights.indptr[:-1]))
        lengths[np.diff(weights.indptr) == 0] = np.inf  # no label is similar to one without weights
        cosine = (weights @ row.toarray()[0]) / (lengths * lengths[position])
    cosine[[position, *state.removed]] = -np.inf
    order = np.argsort(-cosine, kind="stable")[:k]
    return [(int(j), float(cosine[j])) for j in order if cosine[j] > 0]
