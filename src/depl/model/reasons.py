"""What speaks for a label in one text: words, parts of the model, and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.model.similar import OPENING, Neighbour
from depl.run.newcomers import Newcomers
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from depl.neural.retriever import Vectors


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


class WordReasons:
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
    "title names": ("name in title",),
    "title examples": ("examples in title",),
    "name meaning": ("name's meaning",),
    "example meaning": ("examples' meaning", "nearest meaning"),
    "likely documents": ("likely documents",),
    "how broad it is": ("common words", "variety", "bound", "share"),
}


class AddedLabelReasons:
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
        titles = newcomers.titles([text])
        self._evidence = newcomers.evidence_for(self._x, titles, rankings["svm"], vectors)[0]
        self._reasons = dict(_REASONS)
        if not titles.nnz:
            del self._reasons["title names"], self._reasons["title examples"]
        self._added = newcomers.model.contributions(self._evidence, own.counts)
        owner = newcomers.positions[own.name_owner]
        self.words = WordReasons(newcomers.features, own.names, owner, text, self._x)

    def knows(self, position: int) -> bool:
        """Whether the label was added."""
        return position in self._newcomers.positions

    def shares(self, position: int) -> list[Share]:
        """What each reason adds to the log-odds; ranks are among added labels."""
        i = int(np.searchsorted(self._newcomers.positions, position))
        found = []
        place = {x: j for j, x in enumerate(self._newcomers.columns)}
        for name, of_reason in self._reasons.items():
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
