"""Why a label is suggested for a text: its words, its parts, and similar training documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Label
from depl.core.display import html_table
from depl.core.errors import CorpusError
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.fusion.fusion import Fusion
from depl.model.similar import OPENING, Neighbour, TrainingDocuments, nearest_documents
from depl.run.newcomers import Newcomers
from depl.run.state import State
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from depl.neural.retriever import Vectors

_DEPTH = 100  # labels that each part ranks in a run without a fusion


@dataclass(frozen=True)
class Match:
    """A term that a label and the text have in common.

    ``contribution`` is what it adds to the score: ``weight`` times its tf-idf in the text.
    ``spans`` are where it occurs in the text: first character, and one past the last.
    """

    term: str
    weight: float
    contribution: float
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class Share:
    """Score and rank of the label by one part: None where the part does not list it.

    ``rank`` counts from 1. ``contribution`` is what the part adds to the log-odds; in a run without
    a fusion it is the SVM's score.
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


@dataclass(frozen=True, repr=False)
class Explanation:
    """The explanation of a label for a text.

    Parameters
    ----------
    label, training_documents, description
        The label, how many training documents carry it, its pseudo description.
    probability, rank : float, int or None
        As suggested, with ranks from 1; None where no part lists the label. A run without a
        fusion has no probabilities.
    parts : list of Share
        Score, rank and contribution by each part; of an added label, by its names, by its examples,
        by the labels that the SVM sees both in them and in the text and, where there is an
        encoder, by what its name and its examples mean.
    keywords : list of Match
        The label's keywords that are in the text, the largest contribution first.
    name_words : list of Match
        The words of its best-matching name that are in the text, with contributions to the cosine.
    svm : Sum or None
        The terms of the SVM's score; None for labels without training documents.
    neighbours : list of Neighbour
        The nearest training documents that carry the label; of an added one the nearest examples.
    broader, narrower : list of Label
        The labels directly above and below it.
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
    broader: list[Label]
    narrower: list[Label]

    def __repr__(self) -> str:
        sure = "" if self.probability is None else f", probability {self.probability:.2f}"
        found = dict.fromkeys(match.term for match in (*self.keywords, *self.name_words))
        words = ", ".join(list(found)[:5]) or "none of its words is in the text"
        return f"Explanation({self.label.name}{sure}: {words})"

    def _repr_html_(self) -> str:
        keywords, name = (
            [(x.term, f"{x.weight:.2f}", f"{x.contribution:.3f}") for x in matches]
            for matches in (self.keywords, self.name_words)
        )
        parts = [
            (x.name, "-" if x.rank is None else x.rank, f"{x.contribution:.2f}") for x in self.parts
        ]
        similar = [(x.id, f"{x.similarity:.2f}", x.text) for x in self.neighbours]
        return (
            html_table(repr(self), ("keyword", "weight", "adds"), keywords)
            + html_table("Of its name", ("word", "weight", "adds"), name)
            + html_table("By part", ("part", "rank", "adds to the log-odds"), parts)
            + html_table("Similar training documents", ("id", "similarity", "text"), similar)
        )

    @property
    def band(self) -> str:
        """The name of the label's frequency band."""
        return BANDS[int(band_of(np.array([self.training_documents]))[0])].name

    def to_json(self) -> dict[str, Any]:
        """The object that ``depl explain --json`` prints and the service returns."""
        return {
            "label": {
                "id": self.label.id,
                "name": self.label.name,
                "training_documents": self.training_documents,
                "band": self.band,
                "alt_names": list(self.label.alt_names),
                "definition": self.label.description,
                "broader": [{"id": x.id, "name": x.name} for x in self.broader],
                "narrower": [{"id": x.id, "name": x.name} for x in self.narrower],
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


def explain(
    state: State,
    fusion: Fusion | None,
    training: TrainingDocuments | None,
    text: str,
    which: Sequence[int] | int,
    *,
    neighbours: int,
) -> list[Explanation]:
    """Explain labels for one text: those at some positions, or a number of the best."""
    if not isinstance(text, str):
        raise CorpusError(f"explain takes one text; got {type(text).__name__}. Give a string.")
    vectors = state.encode([text])
    x = state.features.transform([text])
    if fusion is None:
        rankings = state.rank([text], depth(fusion), vectors)
        ranked = rankings["svm"]
    else:
        rankings, new = state.rank_apart([text], depth(fusion), vectors)
        most = sum(part.k for part in (*rankings.values(), *([] if new is None else [new])))
        ranked = fused(state, fusion, (rankings, new), most)
    if isinstance(which, int):
        positions = [int(i) for i in ranked.top(which).indices[0] if i >= 0]
    else:
        positions = list(which)
    known = _Words(state.features, state.names.names, state.names.owner, text, x)
    newcomer = None
    if state.newcomers is not None:
        newcomer = _Newcomer(state.newcomers, text, x, vectors, rankings)
    found = []
    for position in positions:
        score, rank = _standing(ranked, position)
        is_new = newcomer is not None and newcomer.knows(position)
        words = newcomer.words if newcomer is not None and is_new else known
        keywords = words.matches(dict(state.keywords[position]))
        near = []
        if newcomer is not None and is_new:
            near = newcomer.examples(position)[:neighbours]
        elif training is not None and neighbours > 0:
            near = nearest_documents(state, training, x, vectors, position, neighbours)
        found.append(
            Explanation(
                label=state.labels[position],
                training_documents=int(state.train_counts[position]),
                description=state.descriptions[position],
                probability=None if fusion is None else score,
                rank=rank,
                parts=newcomer.shares(position)
                if newcomer is not None and is_new
                else _shares(state, fusion, rankings, position),
                keywords=keywords,
                name_words=words.name_matches(position),
                svm=None if is_new else words.svm_sum(state.svm, position, keywords),
                neighbours=near,
                broader=state.labels.broader(position),
                narrower=state.labels.narrower(position),
            )
        )
    return found


def depth(fusion: Fusion | None) -> int:
    """How many labels each part ranks: as many as when the fusion was fitted."""
    return _DEPTH if fusion is None else fusion.depth_


def fused(
    state: State,
    fusion: Fusion,
    apart: tuple[Mapping[str, Ranking], Ranking | None],
    k: int,
) -> Ranking:
    """The k best of all labels, from what ``State.rank_apart`` gives."""
    rankings, new = apart
    return fusion.rank(rankings, state.train_counts, k, new)


def matched_keywords(state: State, text: str, position: int) -> list[Match]:
    """The label's keywords that are in the text; the one that adds most to the score first."""
    x = state.features.transform([text])
    words = _Words(state.features, state.names.names, state.names.owner, text, x)
    return words.matches(dict(state.keywords[position]))


def _shares(
    state: State, fusion: Fusion | None, rankings: Mapping[str, Ranking], position: int
) -> list[Share]:
    said = {name: _standing(ranking, position) for name, ranking in rankings.items()}
    if fusion is None:
        given = {"svm": said["svm"][0] or 0.0}
    else:
        given = fusion.contributions(rankings, state.train_counts, 0, position)
    return [Share(name, *said[name], given.get(name, 0.0)) for name in rankings]


def _standing(ranking: Ranking, position: int) -> tuple[float | None, int | None]:
    """Score and rank, from 1, of a label in the only row of a ranking."""
    found = ranking.place(0, position)
    return (None, None) if found is None else (found[0], found[1] + 1)


class _Words:
    """The words of one text that match labels: their keywords, and their names."""

    def __init__(
        self,
        features: TfidfFeatures,
        names: csr_array,
        owner: NDArray[np.int64],
        text: str,
        x: csr_array,
    ) -> None:
        self._features, self._names, self._owner = features, names, owner
        self._text, self._x = text, x
        self._value = dict(zip(x.indices.tolist(), x.data.tolist(), strict=True))

    def matches(self, weights: Mapping[str, float]) -> list[Match]:
        """The terms that are in the text, what each adds, and where it is."""
        features = self._features
        in_text = {features.terms_[t]: v for t, v in self._value.items()}
        shared = {term: w * in_text[term] for term, w in weights.items() if term in in_text}
        if not shared:
            return []
        places = features.places(self._text, shared)
        order = sorted(shared, key=lambda term: -shared[term])
        return [Match(t, float(weights[t]), shared[t], places.get(t, [])) for t in order]

    def name_matches(self, position: int) -> list[Match]:
        """The words of the label's best-matching name that are in the text."""
        terms = self._features.terms_
        own = csr_array(self._names[np.flatnonzero(self._owner == position)])
        cosines = own @ self._x.toarray()[0]
        if not len(cosines) or cosines.max() <= 0:
            return []
        name = csr_array(own[[int(np.argmax(cosines))]])
        pairs = zip(name.indices.tolist(), name.data.tolist(), strict=True)
        return self.matches({terms[t]: w for t, w in pairs if " " not in terms[t]})

    def svm_sum(self, svm: OneVsAllSVM, position: int, keywords: Sequence[Match]) -> Sum | None:
        """The terms of the SVM's score of a label."""
        bias = float(svm.bias_[position])
        if not np.isfinite(bias):
            return None
        row = csr_array(svm.weights_[[position]])
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        words = sum(w * self._value.get(t, 0.0) for t, w in pairs)
        by_keywords = sum(match.contribution for match in keywords)
        return Sum(by_keywords, words - by_keywords, bias, words + bias)


# The columns of the evidence for added labels, by the reason that they are.
_REASONS = {
    "names": ("name", "name words"),
    "examples": ("examples", "apart", "nearest example"),
    "labels alike": ("labels alike",),
    "name meaning": ("name's meaning",),
    "example meaning": ("examples' meaning", "nearest meaning"),
    "how broad it is": ("common words", "variety"),
}


class _Newcomer:
    """What speaks for labels that were added, in one text."""

    def __init__(
        self,
        newcomers: Newcomers,
        text: str,
        x: csr_array,
        vectors: Vectors | None,
        rankings: Mapping[str, Ranking],
    ) -> None:
        self._newcomers, own = newcomers, newcomers.evidence
        self._x = newcomers.vectors([text], x)
        self._evidence = newcomers.evidence_for(self._x, rankings["svm"], vectors)[0]
        self._added = newcomers.model.contributions(self._evidence, own.counts)
        owner = newcomers.positions[own.name_owner]
        self.words = _Words(newcomers.features, own.names, owner, text, self._x)

    def knows(self, position: int) -> bool:
        """Whether the label was added."""
        return position in self._newcomers.positions

    def shares(self, position: int) -> list[Share]:
        """What each reason adds to the log-odds; ranks are among added labels."""
        i = int(np.searchsorted(self._newcomers.positions, position))
        found = []
        place = {x: j for j, x in enumerate(self._newcomers.columns)}
        for name, of_reason in _REASONS.items():
            columns = [place[x] for x in of_reason if x in place]
            if not columns:  # there is no encoder
                continue
            score = self._evidence[:, columns].max(axis=1)
            added = self._added[:, columns].sum(axis=1)
            there = score[i] > 0
            rank = int((added > added[i]).sum()) + 1 if there else None
            found.append(Share(name, float(score[i]) if there else None, rank, float(added[i])))
        return found

    def examples(self, position: int) -> list[Neighbour]:
        """The label's examples, the most similar one first."""
        i = int(np.searchsorted(self._newcomers.positions, position))
        rows = np.flatnonzero(self._newcomers.evidence.example_owner == i)
        cosines = self._newcomers.evidence.examples[rows] @ self._x.toarray()[0]
        order = np.argsort(-cosines, kind="stable")
        texts = self._newcomers.examples
        return [
            Neighbour(f"example {j + 1}", texts[rows[j]][:OPENING], float(cosines[j]))
            for j in order.tolist()
            if cosines[j] > 0
        ]


def _as_json(match: Match) -> dict[str, Any]:
    return asdict(match) | {"spans": [list(span) for span in match.spans]}
