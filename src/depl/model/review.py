"""What to look at next: the documents about which a decision would teach a model most.

A decision about a label of a document teaches the more, the less certain the answer is and the
fewer documents the label has. After it the label has more documents, and the next one about the
same label teaches less: that is where the variety of the order comes from.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import LabelSet
from depl.labels.review_queue import Suggested, Waiting
from depl.model.classifier import Classifier

DEPTH = 20  # suggestions of a document that its place in the order depends on

_UNSURE = 0.05, 0.95  # probabilities between which a suggestion is uncertain
_RARE = 10  # documents; labels with fewer are rare


def suggestions(model: Classifier, texts: Sequence[str]) -> list[Suggested]:
    """The first labels of every text, by id, with their probabilities."""
    ranking = model.predict(texts, min(DEPTH, len(model.labels)))
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


def as_matrix(suggested: Iterable[Suggested], labels: LabelSet) -> csr_array:
    """Probabilities as a matrix, documents x labels; labels that are no longer there are left out.

    Examples
    --------
    >>> from depl.core.corpus import Label
    >>> labels = LabelSet([Label("a", "wine"), Label("b", "oil")])
    >>> as_matrix([[("b", 0.5)], [("a", 0.25), ("gone", 0.75)]], labels).toarray().tolist()
    [[0.0, 0.5], [0.25, 0.0]]
    """
    indptr, indices, data = [0], [], []
    for row in suggested:
        known = [(labels.get(label), p) for label, p in row]
        indices += [i for i, _ in known if i >= 0]
        data += [p for i, p in known if i >= 0]
        indptr.append(len(indices))
    shape = (len(indptr) - 1, len(labels))
    return csr_array((np.array(data, dtype=np.float64), indices, indptr), shape=shape)


def gains(
    P: csr_array, counts: NDArray[np.integer], expected: NDArray[np.floating] | float = 0.0
) -> NDArray[np.float64]:
    r"""How much the decisions about each document would teach.

    .. math:: g_d = \sum_l \frac{\sqrt{p_{dl}(1 - p_{dl})}}{1 + n_l + e_l}

    Parameters
    ----------
    P : csr_array
        Probabilities of suggestions, documents x labels.
    counts : array
        How many training documents carry each label, n.
    expected : array or float
        How many of the documents that were decided since, or come earlier, carry it, e.

    Examples
    --------
    >>> P = csr_array(np.array([[0.5, 0.0], [0.0, 0.5], [0.1, 0.9]]))
    >>> gains(P, np.array([9, 0])).tolist()  # the second label is rare
    [0.05, 0.5, 0.33]
    """
    doubt = csr_array((_doubt(P.data), P.indices, P.indptr), shape=P.shape)
    found: NDArray[np.float64] = doubt @ (1.0 / (1.0 + counts + expected))
    return found


def review_order(
    P: csr_array, counts: NDArray[np.integer], expected: NDArray[np.floating] | float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The order in which each document teaches most, given those before it.

    What a document teaches never grows as others are decided, so a gain that was computed earlier
    is an upper bound: only documents that come first by theirs are computed again.

    Returns
    -------
    order, gained : arrays
        Rows of ``P``, and what each of them teaches at its place.
    """
    seen = np.zeros(P.shape[1]) + expected
    heap = [(-gain, i) for i, gain in enumerate(gains(P, counts, seen).tolist())]
    heapq.heapify(heap)
    order, gained = [], []
    while heap:
        _, i = heap[0]
        row = slice(P.indptr[i], P.indptr[i + 1])
        labels, p = P.indices[row], P.data[row]
        gain = float(np.sum(_doubt(p) / (1.0 + counts[labels] + seen[labels])))
        if len(heap) > 1 and (-gain, i) > min(heap[1:3]):
            heapq.heapreplace(heap, (-gain, i))
            continue
        heapq.heappop(heap)
        order.append(i)
        gained.append(gain)
        seen[labels] += p
    return np.array(order, dtype=np.int64), np.array(gained)


def _doubt(p: NDArray[np.floating]) -> NDArray[np.float64]:
    inside = np.clip(p, 0.0, 1.0)
    found: NDArray[np.float64] = np.sqrt(inside * (1.0 - inside))
    return found


def ordered(model: Classifier, waiting: Sequence[Waiting]) -> list[Waiting]:
    """The documents of a queue that are not decided, those that teach most first.

    What is decided or being looked at counts as if it carried its suggestions: their probabilities
    add to the counts of labels.
    """
    state = model.state
    taken = as_matrix((x.suggested for x in waiting if not x.free), state.labels)
    free = [x for x in waiting if x.free]
    P = as_matrix((x.suggested for x in free), state.labels)
    order, _ = review_order(P, state.train_counts, np.asarray(taken.sum(axis=0)))
    return [free[i] for i in order]


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
        return "nothing is uncertain"
    names = [f"{labels[i].name} {p:.0%}{' (rare)' if rare else ''}" for i, p, rare in which[:most]]
    return ", ".join(names)
