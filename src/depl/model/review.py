"""What to look at next: the documents about which a decision would teach a model most.

A decision about a label of a document teaches the more, the less certain the answer is and the
fewer documents the label has. A document with words that few others have teaches what they stand
for, and often carries labels that nobody can suggest yet. What was decided counts: the next
document about the same label, or with the same words, teaches less. That is where the variety of
the order comes from. People's time goes into decisions, so what a document teaches is divided by
how many it is expected to take.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from depl.core.corpus import LabelSet
from depl.labels.review_queue import Suggested, Terms, Waiting
from depl.model.classifier import Classifier

_LABELS = 20  # suggestions of a document that its place in the order depends on
_TERMS = 60  # terms, those with the largest weights

_UNSURE = 0.05, 0.95  # probabilities between which a suggestion is uncertain
_RARE = 10  # documents; labels with fewer are rare


class Lesson(NamedTuple):
    """What there is to learn from a document: uncertain labels, and terms that few others have."""

    suggested: Suggested
    terms: Terms


def lessons(model: Classifier, texts: Sequence[str]) -> list[Lesson]:
    """What there is to learn from every text."""
    pairs = zip(_suggestions(model, texts), _terms(model, texts), strict=True)
    return [Lesson(suggested, terms) for suggested, terms in pairs]


def _suggestions(model: Classifier, texts: Sequence[str]) -> list[Suggested]:
    """The first labels of every text, by id, with their probabilities."""
    ranking = model.predict(texts, min(_LABELS, len(model.labels)))
    scores = ranking.scores.astype(np.float64)
    if model.fusion is None:  # the SVM's scores: 0 is as likely as not
        scores = 1 / (1 + np.exp(-2 * scores))
    return [
        [
            (model.labels[i].id, round(float(p), 6))
            for i, p in zip(row.tolist(), own.tolist(), strict=True)
            if i >= 0
        ]
        for row, own in zip(ranking.indices, scores, strict=True)
    ]


def _terms(model: Classifier, texts: Sequence[str]) -> list[Terms]:
    """The terms of every text with the largest weights, and how many documents have each."""
    features, n = model.features, model.n_train
    X = csr_array(features.transform(texts))
    # The inverse of smoothed idf, which is all that a run keeps about the frequency of a term.
    frequency = np.maximum(0, np.rint((1 + n) / np.exp(features.idf_ - 1.0) - 1)).astype(int)
    found: list[Terms] = []
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        own, weights = X.indices[start:end], X.data[start:end]
        best = np.argsort(-weights, kind="stable")[:_TERMS]
        found.append(
            [
                (str(features.terms_[j]), round(float(x), 4), int(frequency[j]))
                for j, x in zip(own[best], weights[best], strict=True)
            ]
        )
    return found


@dataclass(frozen=True)
class Queue:
    """Documents in numbers: what each would teach, about which labels and terms.

    Parameters
    ----------
    value : csr_array
        What a document would teach about each label and term, if nothing were known about it.
    amount : csr_array
        How many documents of it that would make.
    known : array
        How many documents there are already.
    """

    value: csr_array
    amount: csr_array
    known: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        P: csr_array,
        counts: NDArray[np.integer],
        X: csr_array,
        frequency: NDArray[np.integer],
    ) -> Queue:
        """From probabilities of labels and weights of terms; both count the same on average.

        What counts is what a document teaches for the decisions that it is expected to take.
        """
        doubt = csr_array((_doubt(P.data), P.indices, P.indptr), shape=P.shape)
        parts = [
            part / (float(np.mean(part @ (1.0 / (1.0 + n)))) or 1.0) if part.shape[0] else part
            for part, n in ((doubt, counts), (X, frequency))
        ]
        decisions = 1.0 + np.asarray(P.sum(axis=1)).ravel()
        return cls(
            csr_array(diags_array(1.0 / decisions) @ hstack(parts, format="csr")),
            csr_array(hstack([P, X], format="csr")),
            np.concatenate([counts, frequency]).astype(np.float64),
        )

    def gains(self) -> NDArray[np.float64]:
        """How much each document would teach if it came next."""
        found: NDArray[np.float64] = self.value @ (1.0 / (1.0 + self.known))
        return found

    def order(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The order in which each document teaches most, given those before it.

        What a document teaches never grows as others are decided, so a gain that was computed
        earlier is an upper bound: only documents that come first by theirs are computed again.

        Returns
        -------
        order, gained : arrays
            Documents, and what each of them teaches at its place.
        """
        known = self.known.copy()
        heap = [(-gain, i) for i, gain in enumerate(self.gains().tolist())]
        heapq.heapify(heap)
        order, gained = [], []
        while heap:
            _, i = heap[0]
            row = slice(self.value.indptr[i], self.value.indptr[i + 1])
            places = self.value.indices[row]
            gain = float(np.sum(self.value.data[row] / (1.0 + known[places])))
            if len(heap) > 1 and (-gain, i) > min(heap[1:3]):
                heapq.heapreplace(heap, (-gain, i))
                continue
            heapq.heappop(heap)
            order.append(i)
            gained.append(gain)
            row = slice(self.amount.indptr[i], self.amount.indptr[i + 1])
            known[self.amount.indices[row]] += self.amount.data[row]
        return np.array(order, dtype=np.int64), np.array(gained)


def _doubt(p: NDArray[np.floating]) -> NDArray[np.float64]:
    """The standard deviation of the answer: largest at one half, 0 for what is certain."""
    inside = np.clip(p, 0.0, 1.0)
    found: NDArray[np.float64] = np.sqrt(inside * (1.0 - inside))
    return found


def ordered(model: Classifier, waiting: Sequence[Waiting]) -> list[Waiting]:
    """The documents of a queue that are free, those that teach most first."""
    free = [x for x in waiting if x.free]
    order, _ = _in_numbers(model, waiting, free).order()
    return [free[i] for i in order]


def following(model: Classifier, waiting: Sequence[Waiting]) -> Waiting | None:
    """The free document that teaches most; None if there is none."""
    free = [x for x in waiting if x.free]
    return free[int(np.argmax(_in_numbers(model, waiting, free).gains()))] if free else None


def _in_numbers(model: Classifier, waiting: Sequence[Waiting], free: Sequence[Waiting]) -> Queue:
    """What is free, in numbers; the rest counts as if it carried its suggestions."""
    state = model.state
    taken = [x for x in waiting if not x.free]
    terms = {term: n for x in waiting for term, _, n in x.terms}
    place = {term: i for i, term in enumerate(terms)}
    labels = {x.id: i for i, x in enumerate(state.labels)}

    def matrices(some: Sequence[Waiting]) -> tuple[csr_array, csr_array]:
        weights = [[(term, weight) for term, weight, _ in x.terms] for x in some]
        return _matrix([x.suggested for x in some], labels), _matrix(weights, place)

    P, X = matrices(free)
    P_taken, X_taken = matrices(taken)
    frequency = np.array(list(terms.values()), dtype=np.int64)
    queue = Queue.of(P, state.train_counts, X, frequency)
    decided = [np.asarray(part.sum(axis=0)).ravel() for part in (P_taken, X_taken)]
    return Queue(queue.value, queue.amount, queue.known + np.concatenate(decided))


def _matrix(rows: Iterable[Sequence[tuple[str, float]]], place: dict[str, int]) -> csr_array:
    """Pairs of names and numbers as a matrix; names that have no place are left out."""
    indptr: list[int] = [0]
    indices: list[int] = []
    data: list[float] = []
    for row in rows:
        known = [(place[name], x) for name, x in row if name in place]
        indices += [i for i, _ in known]
        data += [x for _, x in known]
        indptr.append(len(indices))
    return csr_array(
        (np.array(data, dtype=np.float64), np.array(indices, dtype=np.int64), indptr),
        shape=(len(indptr) - 1, len(place)),
    )


def reasons(
    suggested: Suggested, labels: LabelSet, counts: NDArray[np.integer]
) -> list[tuple[int, float, bool]]:
    """What there is to learn from a document: labels that are uncertain, the most telling first.

    Returns
    -------
    list of tuple
        Position of the label, its probability, and whether it is rare.
    """
    low, high = _UNSURE
    known = [(labels.get(label), p) for label, p in suggested if low <= p <= high]
    found = [(i, p, bool(counts[i] < _RARE)) for i, p in known if i >= 0]
    return sorted(found, key=lambda x: -float(_doubt(np.array(x[1]))) / (1 + counts[x[0]]))


def said(which: Sequence[tuple[int, float, bool]], labels: LabelSet, most: int = 3) -> str:
    """The same in words, for the command line.

    Examples
    --------
    >>> from depl.core.corpus import Label
    >>> labels = LabelSet([Label("a", "wine"), Label("b", "oil")])
    >>> said([(1, 0.5, True), (0, 0.25, False)], labels)
    'oil 50% (rare), wine 25%'
    """
    if not which:
        return "other words than those of the documents that were learned from"
    names = [f"{labels[i].name} {p:.0%}{' (rare)' if rare else ''}" for i, p, rare in which[:most]]
    return ", ".join(names)
