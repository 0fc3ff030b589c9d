"""What to look at next: the documents about which a decision would teach a model most.

An example of a label teaches the more, the less it was expected and the fewer documents the label
has: what is suggested with confidence is found by its name or its words already. Most is taught
by labels that are not suggested at all. How many of those a document carries is known on average:
as many as documents carry, less those that are suggested. What was decided counts: the next
document with the same labels, or the same words, teaches less. That is where the variety of the
order comes from. People's time goes into decisions, so what a document teaches is divided by how
many it is expected to take.
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
from depl.labels.review_queue import ReviewQueue, Suggested, Terms, Waiting
from depl.model.classifier import Classifier

_LABELS = 20  # suggestions of a document that its place in the order depends on
_AT_ONCE = 2_000  # documents
_TERMS = 60  # terms, those with the largest weights

# How fast an example teaches less as it is more expected. On training documents of TIB-en, one for
# a label that was suggested with more than 14 % taught nothing, and at more than 40 % its F1 fell.
_EXPECTED = 4

_TINY = 1e-9  # the weight of a text without terms

_UNSURE = 0.05, 0.95  # probabilities between which a suggestion is uncertain
_RARE = 10  # documents; labels with fewer are rare


class Lesson(NamedTuple):
    """What there is to learn from a document: what is suggested, and which words it has."""

    suggested: Suggested
    terms: Terms


def lessons(model: Classifier, texts: Sequence[str]) -> list[Lesson]:
    """What there is to learn from every text."""
    pairs = zip(_suggestions(model, texts), _terms(model, texts), strict=True)
    return [Lesson(suggested, terms) for suggested, terms in pairs]


def renew(model: Classifier, queue: ReviewQueue) -> None:
    """Say again what there is to learn from the documents that are open: the model has learnt."""
    texts = queue.texts()
    numbers = list(texts)
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        found = lessons(model, [texts[number] for number in some])
        queue.renew(dict(zip(some, found, strict=True)))


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
    """The terms of every text with the largest weights."""
    terms = model.features.terms_
    X = csr_array(model.features.transform(texts))
    found: list[Terms] = []
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        own, weights = X.indices[start:end], X.data[start:end]
        best = np.argsort(-weights, kind="stable")[:_TERMS]
        pairs = zip(own[best], weights[best], strict=True)
        found.append([(terms[j], round(float(x), 4)) for j, x in pairs])
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
        *,
        carried: float,
        shown: float,
    ) -> Queue:
        """What documents teach for the decisions that they are expected to take.

        Parameters
        ----------
        P : csr_array
            The probabilities of the labels that are suggested for each document.
        counts : array
            How many documents carry each label.
        X : csr_array
            The weights of each document's terms.
        carried : float
            How many labels a document carries on average.
        shown : float
            The probability from which suggestions are shown: the wrong ones are to be rejected.
        """
        wrong = _like(P, np.where(P.data >= shown, 1.0 - P.data, 0.0))
        decisions = max(1.0, carried) + _row_sums(wrong)
        # A label that is missing is worth 1 / n, where n documents carry it, itself among them. On
        # average over the labels of all documents, that is labels per label carried.
        worth = np.count_nonzero(counts) / max(1, counts.sum())
        lacking = worth * np.maximum(0.0, carried - _row_sums(P))
        words = diags_array(lacking / np.maximum(_row_sums(X), _TINY)) @ X
        taught = hstack([_like(P, _teaches(P.data)), words], format="csr")
        return cls(
            csr_array(diags_array(1.0 / decisions) @ taught),
            csr_array(hstack([P, X], format="csr")),
            np.concatenate([counts, np.zeros(X.shape[1])]),
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


def _teaches(p: NDArray[np.floating]) -> NDArray[np.float64]:
    """How likely an example is, times what it teaches: nothing where it was certain."""
    inside = np.clip(p, 0.0, 1.0)
    found: NDArray[np.float64] = inside * (1.0 - inside) ** _EXPECTED
    return found


def missing(suggested: Suggested, carried: float) -> float:
    """How many labels of a document are expected that are not suggested.

    Examples
    --------
    >>> missing([("a", 0.75), ("b", 0.25)], carried=2.5)
    1.5
    """
    return max(0.0, carried - sum(p for _, p in suggested))


def _row_sums(matrix: csr_array) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    return found


def _like(matrix: csr_array, data: NDArray[np.float64]) -> csr_array:
    """Other values at the same places."""
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


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
    names = dict.fromkeys(term for x in waiting for term, _ in x.terms)
    terms = {term: i for i, term in enumerate(names)}
    labels = {x.id: i for i, x in enumerate(state.labels)}

    def matrices(some: Sequence[Waiting]) -> tuple[csr_array, csr_array]:
        return _matrix([x.suggested for x in some], labels), _matrix([x.terms for x in some], terms)

    P, X = matrices(free)
    carried, shown = labels_per_document(model), shown_from(model)
    queue = Queue.of(P, state.train_counts, X, carried=carried, shown=shown)
    decided = [np.asarray(part.sum(axis=0)).ravel() for part in matrices(taken)]
    return Queue(queue.value, queue.amount, queue.known + np.concatenate(decided))


def labels_per_document(model: Classifier) -> float:
    """How many labels a document carries on average, by those that the model learnt from."""
    return float(model.train_counts.sum()) / max(1, model.n_train)


def shown_from(model: Classifier) -> float:
    """The probability from which suggestions are shown: the threshold of the best F1."""
    best = model.thresholds.best_f1 if model.thresholds else None
    return 0.5 if best is None else best


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
    """What there is to learn from a document: uncertain labels, those that teach most first.

    Returns
    -------
    list of tuple
        Position of the label, its probability, and whether it is rare.
    """
    low, high = _UNSURE
    known = [(labels.get(label), p) for label, p in suggested if low <= p <= high]
    found = [(i, p, bool(counts[i] < _RARE)) for i, p in known if i >= 0]
    return sorted(found, key=lambda x: -float(_teaches(np.array(x[1]))) / (1 + counts[x[0]]))


def said(
    which: Sequence[tuple[int, float, bool]], lacking: float, labels: LabelSet, most: int = 3
) -> str:
    """The same in words, for the command line, and how many labels are not suggested.

    Examples
    --------
    >>> from depl.core.corpus import Label
    >>> labels = LabelSet([Label("a", "wine"), Label("b", "oil")])
    >>> said([(1, 0.5, True), (0, 0.25, False)], 0.2, labels)
    'oil 50% (rare), wine 25%'
    >>> said([(1, 0.5, True)], 1.7, labels)
    'oil 50% (rare); about 2 more labels'
    """
    names = [f"{labels[i].name} {p:.0%}{' (rare)' if rare else ''}" for i, p, rare in which[:most]]
    n = round(lacking)
    more = [f"about {n} more label{'s' if n > 1 else ''}"] if n else []
    return "; ".join([", ".join(names)] * bool(names) + more) or "nothing: all is certain"
