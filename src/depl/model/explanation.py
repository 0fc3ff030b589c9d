"""Why a label is suggested for a text: its words, its parts, and the documents it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from depl.core.corpus import Label
from depl.core.errors import CorpusError, RunError
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.run.folder import Run

if TYPE_CHECKING:
    from torch import Tensor

    from depl.model.classifier import Classifier

_OPENING = 300  # characters of a neighbour's text


@dataclass(frozen=True)
class Match:
    """A term that a label and the text have in common.

    ``contribution`` is what it adds to the score: ``weight`` times its tf-idf in the text.
    ``spans`` are its places in the text: first character, and one past the last.
    """

    term: str
    weight: float
    contribution: float
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class Share:
    """What one part says of the label: None where it is not among the labels that it lists.

    ``rank`` counts from 1. ``contribution`` is how much lower the log-odds would be without this
    part; in a run without a fusion it is the SVM's score.
    """

    name: str
    score: float | None
    rank: int | None
    contribution: float


@dataclass(frozen=True)
class Sum:
    """The SVM's score: what the keywords add, what all other words add, and the bias."""

    keywords: float
    other_words: float
    bias: float
    score: float


@dataclass(frozen=True)
class Neighbour:
    """A training document that carries the label: its id, its opening, how similar it is."""

    id: str
    text: str
    similarity: float


@dataclass(frozen=True)
class Explanation:
    """All there is to say about a label for a text.

    Parameters
    ----------
    label, training_documents, description
        The label, how often training documents carry it, its pseudo description.
    probability, rank : float, int or None
        As suggested, 1 being the best; None where no part brings the label up. A run without a
        fusion has no probabilities.
    parts : list of Share
        What each part says.
    keywords : list of Match
        The label's keywords that are in the text, the weightiest there first.
    name_words : list of Match
        The words of its best-matching name that are in the text; what they add is to the cosine.
    svm : Sum or None
        How the SVM's score comes about; None for labels without training documents.
    neighbours : list of Neighbour
        The nearest training documents that carry the label.
    """

    label: Label
    training_documents: int
    description: str
    probability: float | None
    rank: int | None
    parts: list[Share]
    keywords: list[Match]
    name_words: list[Match]
    svm: Sum | None
    neighbours: list[Neighbour]

    @property
    def band(self) -> str:
        """The name of the label's frequency band."""
        return BANDS[int(band_of(np.array([self.training_documents]))[0])].name

    def to_json(self) -> dict[str, Any]:
        """The object that ``depl explain --json`` prints and the service gives."""
        return {
            "label": {
                "id": self.label.id,
                "name": self.label.name,
                "training_documents": self.training_documents,
                "band": self.band,
                "alt_names": list(self.label.alt_names),
            },
            "probability": self.probability,
            "rank": self.rank,
            "description": self.description,
            "parts": [asdict(x) for x in self.parts],
            "keywords": [_as_json(x) for x in self.keywords],
            "name_words": [_as_json(x) for x in self.name_words],
            "svm": None if self.svm is None else asdict(self.svm),
            "neighbours": [asdict(x) | {"carries": True} for x in self.neighbours],
        }


class TrainingDocuments:
    """The training documents of a run, read when they are first asked for.

    Parameters
    ----------
    run : Run
        Whose they are.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def vectors(self) -> csr_array:
        """Their tf-idf."""
        return self._run.train_vectors()

    def carrying(self, label: int) -> NDArray[np.int32]:
        """Positions of the documents that carry a label; none for labels added since."""
        carried = self._carried
        if label >= carried.shape[1]:
            return np.empty(0, np.int32)
        return np.asarray(carried.indices[carried.indptr[label] : carried.indptr[label + 1]])

    def opening(self, position: int) -> tuple[str, str]:
        """A document's id, and how its text begins."""
        ids, texts = self._openings
        return ids[position].as_py(), texts[position].as_py()

    @cached_property
    def _carried(self) -> csc_array:
        return csc_array(self._run.Y)

    @cached_property
    def _openings(self) -> tuple[Any, Any]:
        """Ids and openings as arrow columns: whole texts would take seconds and memory."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        path = self._run.require("corpus") / "train.parquet"
        try:
            table = pq.read_table(path, columns=["id", "text"])
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"{path} cannot be read ({error}). Fit the run again.") from error
        return table["id"], pc.utf8_slice_codeunits(table["text"], 0, _OPENING)


def explain(
    model: Classifier, text: str, which: Sequence[int] | int, *, neighbours: int
) -> list[Explanation]:
    """Explain labels for one text: those at some positions, or so many of the best."""
    if not isinstance(text, str):
        raise CorpusError(f"explain takes one text; got {type(text).__name__}. Give a string.")
    vectors = model.encode([text])
    rankings = model.parts([text], vectors=vectors)
    x = model.features.transform([text])
    value = dict(zip(x.indices.tolist(), x.data.tolist(), strict=True))
    ranked = rankings["svm"]
    if model.fusion is not None:
        most = sum(part.k for part in rankings.values())
        ranked = model.fusion.rank(rankings, model.train_counts, most)
    if isinstance(which, int):
        positions = [int(i) for i in ranked.top(which).indices[0] if i >= 0]
    else:
        positions = list(which)
    similar = _Similarities(model, x, vectors) if neighbours > 0 else None
    found = []
    for position in positions:
        score, rank = _place(ranked, position)
        keywords = _matches(model, text, dict(model.keywords[position]), value)
        found.append(
            Explanation(
                label=model.labels[position],
                training_documents=int(model.train_counts[position]),
                description=model.descriptions[position],
                probability=None if model.fusion is None else score,
                rank=rank,
                parts=_shares(model, rankings, position),
                keywords=keywords,
                name_words=_name_words(model, text, position, x, value),
                svm=_sum(model, position, value, keywords),
                neighbours=[] if similar is None else similar.nearest(position, neighbours),
            )
        )
    return found


def nearest_labels(model: Classifier, position: int, k: int) -> list[tuple[int, float]]:
    """The k labels most like one: by the encoder, else by SVM weights, else by names."""
    if model.retriever is not None:
        vectors = model.retriever.retriever.labels.vectors
        lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-30)
        cosine = (vectors @ vectors[position]) / (lengths * lengths[position])
    else:
        weights = model.svm.weights_
        row = csr_array(weights[[position]])
        if not row.nnz:  # no training document: only its names tell what it is like
            own = np.flatnonzero(model.names.owner == position)
            ranking = model.names.rank(csr_array(model.names.names[own]), k + 1)
            best: dict[int, float] = {}
            for j, s in zip(ranking.indices.ravel(), ranking.scores.ravel(), strict=True):
                if j >= 0 and j != position and j not in model.removed:
                    best[int(j)] = max(float(s), best.get(int(j), 0.0))
            return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        lengths = np.sqrt(np.add.reduceat(np.append(weights.data**2, 0), weights.indptr[:-1]))
        lengths[np.diff(weights.indptr) == 0] = np.inf  # nothing is like a label without weights
        cosine = (weights @ row.toarray()[0]) / (lengths * lengths[position])
    cosine[[position, *model.removed]] = -np.inf
    order = np.argsort(-cosine, kind="stable")[:k]
    return [(int(j), float(cosine[j])) for j in order if cosine[j] > 0]


class _Similarities:
    """How near training documents are to one text: in the encoder's space, else by tf-idf."""

    def __init__(self, model: Classifier, x: csr_array, vectors: Tensor | None) -> None:
        self._model = model
        if vectors is None:
            self._query = x.toarray()[0]
        else:
            vector = vectors[0].cpu().numpy()
            self._query = vector / max(float(np.linalg.norm(vector)), 1e-30)

    def nearest(self, position: int, k: int) -> list[Neighbour]:
        model = self._model
        if model.training is None:
            return []
        rows = model.training.carrying(position)
        if not len(rows):
            return []
        if model.retriever is None:
            similarity = model.training.vectors[rows] @ self._query
        else:
            similarity = model.retriever.retriever.documents.vectors[rows] @ self._query
        best = np.argsort(-similarity, kind="stable")[:k]
        return [
            Neighbour(*model.training.opening(int(rows[i])), float(similarity[i]))
            for i in best
            if similarity[i] > 0
        ]


def _shares(model: Classifier, rankings: Mapping[str, Ranking], position: int) -> list[Share]:
    said = {name: _place(ranking, position) for name, ranking in rankings.items()}
    if model.fusion is None:
        given = {"svm": said["svm"][0] or 0.0}
    else:
        given = model.fusion.contributions(rankings, model.train_counts, 0, position)
    return [Share(name, *said[name], given.get(name, 0.0)) for name in rankings]


def _place(ranking: Ranking, position: int) -> tuple[float | None, int | None]:
    """Score and rank, from 1, of a label in the only row of a ranking."""
    place = np.flatnonzero(ranking.indices[0] == position)
    if not len(place):
        return None, None
    return float(ranking.scores[0, place[0]]), int(place[0]) + 1


def _matches(
    model: Classifier, text: str, weights: Mapping[str, float], value: Mapping[int, float]
) -> list[Match]:
    """The terms that are in the text, what each adds, and where it stands."""
    in_text = {model.features.terms_[t]: v for t, v in value.items()}
    shared = {term: w * in_text[term] for term, w in weights.items() if term in in_text}
    if not shared:
        return []
    places = model.features.places(text, shared)
    order = sorted(shared, key=lambda term: -shared[term])
    return [Match(t, float(weights[t]), shared[t], places.get(t, [])) for t in order]


def _name_words(
    model: Classifier, text: str, position: int, x: csr_array, value: Mapping[int, float]
) -> list[Match]:
    own = csr_array(model.names.names[np.flatnonzero(model.names.owner == position)])
    cosines = own @ x.toarray()[0]
    if not len(cosines) or cosines.max() <= 0:
        return []
    name = csr_array(own[[int(np.argmax(cosines))]])
    pairs = zip(name.indices.tolist(), name.data.tolist(), strict=True)
    return _matches(model, text, {model.features.terms_[t]: w for t, w in pairs}, value)


def _sum(
    model: Classifier, position: int, value: Mapping[int, float], keywords: Sequence[Match]
) -> Sum | None:
    bias = float(model.svm.bias_[position])
    if not np.isfinite(bias):
        return None
    row = csr_array(model.svm.weights_[[position]])
    pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
    words = sum(w * value.get(t, 0.0) for t, w in pairs)
    by_keywords = sum(match.contribution for match in keywords)
    return Sum(by_keywords, words - by_keywords, bias, words + bias)


def _as_json(match: Match) -> dict[str, Any]:
    return asdict(match) | {"spans": [list(span) for span in match.spans]}
