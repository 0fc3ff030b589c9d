"""What to look at next, against a brute-force order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.core.corpus import Label, LabelSet
from depl.labels.review_queue import Waiting
from depl.model.classifier import Classifier
from depl.model.review import Queue, following, lessons, ordered, reasons


class BruteForce:
    """Every gain computed again for every place, in plain Python."""

    def __init__(self, P, counts, X, frequency) -> None:
        self.P, self.X = P.tolist(), X.tolist()
        self.labels, self.terms = list(map(float, counts)), list(map(float, frequency))
        n = len(self.P)
        self.unit = [math.fsum(self.parts(d)[i] for d in range(n)) / n or 1.0 for i in range(2)]

    def parts(self, d: int) -> tuple[float, float]:
        doubts = (
            math.sqrt(p * (1 - p)) / (1 + n) for p, n in zip(self.P[d], self.labels, strict=True)
        )
        novelty = (x / (1 + n) for x, n in zip(self.X[d], self.terms, strict=True))
        return math.fsum(doubts), math.fsum(novelty)

    def gain(self, d: int) -> float:
        taught = sum(part / unit for part, unit in zip(self.parts(d), self.unit, strict=True))
        return taught / (1 + math.fsum(self.P[d]))

    def order(self) -> tuple[list[int], list[float]]:
        left, order, gained = list(range(len(self.P))), [], []
        while left:
            all_gains = [(round(self.gain(d), 11), -d) for d in left]
            best = left[all_gains.index(max(all_gains))]
            order.append(best)
            gained.append(self.gain(best))
            self.labels = [n + p for n, p in zip(self.labels, self.P[best], strict=True)]
            self.terms = [n + x for n, x in zip(self.terms, self.X[best], strict=True)]
            left.remove(best)
        return order, gained


@pytest.mark.parametrize("seed", range(8))
def test_the_order_is_that_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = rng.random((30, 12)) * (rng.random((30, 12)) < 0.3)
    X = rng.random((30, 20)) * (rng.random((30, 20)) < 0.2)
    counts, frequency = rng.integers(0, 30, 12), rng.integers(0, 9, 20)
    queue = Queue.of(csr_array(P), counts, csr_array(X), frequency)
    order, gained = queue.order()
    wanted, wanted_gains = BruteForce(P, counts, X, frequency).order()
    assert order.tolist() == wanted
    np.testing.assert_allclose(gained, wanted_gains, rtol=1e-9)
    assert order[0] == np.argmax(queue.gains())


ROWS = st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=3, max_size=3)


@given(st.lists(ROWS, min_size=1))
def test_every_document_has_one_place_and_gains_never_grow(rows: list[list[float]]) -> None:
    P = csr_array(np.array(rows))
    order, gained = Queue.of(P, np.array([0, 5, 50]), P, np.array([0, 1, 2])).order()
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert np.all(np.diff(gained) <= 1e-12)


def test_uncertain_rare_and_new_labels_come_first() -> None:
    counts = np.array([0, 100, 0])
    P = csr_array(np.array([[0.5, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0.99, 0, 0], [0, 0, 0.1]]))
    queue = Queue.of(P, counts, csr_array((5, 0)), np.array([], dtype=int))
    found = queue.gains()
    assert found[0] > found[4] > found[3] > found[2]  # sure ones, then common ones, teach less
    order, _ = queue.order()
    assert order.tolist()[:2] == [0, 4]  # another label before a second document of the first


def test_a_document_that_takes_fewer_decisions_comes_first() -> None:
    P = csr_array(np.array([[0.5, 0.99, 0.99], [0.5, 0, 0]]))
    counts = np.array([0, 10**6, 10**6])
    order, _ = Queue.of(P, counts, csr_array((2, 0)), np.array([], dtype=int)).order()
    assert order.tolist() == [1, 0]


def test_new_words_come_before_known_ones() -> None:
    X = csr_array(np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0], [0, 0, 1.0]]))
    order, _ = Queue.of(csr_array((4, 1)), np.array([3]), X, np.array([9, 0, 1])).order()
    assert order.tolist() == [1, 2, 3, 0]  # ties in the order of the queue


def waiting(number: int, label: str, term: str = "", *, free: bool = True) -> Waiting:
    state = "open" if free else "done"
    terms = [(term, 1.0, 0)] if term else []
    return Waiting(number, str(number), "", [(label, 0.5), ("gone", 0.5)], terms, state, free)


def test_what_was_decided_counts_and_what_was_removed_does_not(fitted_run) -> None:
    model = Classifier.load(fitted_run)
    rare = [waiting(1, "77"), waiting(2, "2077")]
    assert [x.number for x in ordered(model, rare)] == [1, 2]
    assert following(model, rare).number == 1
    decided = [waiting(n, "77", free=False) for n in range(3, 20)]
    assert [x.number for x in ordered(model, [*rare, *decided])] == [2, 1]
    assert following(model, [*rare, *decided]).number == 2
    assert following(model, decided) is None
    assert ordered(model, decided) == []
    words = [
        waiting(1, "77", "hive"),
        waiting(2, "77", "comb"),
        waiting(3, "77", "hive", free=False),
    ]
    assert following(model, words).number == 2


def test_lessons_are_the_suggestions_and_the_terms_with_their_frequency(
    fitted_run, dataset
) -> None:
    model = Classifier.load(fitted_run)
    text = "Catch quotas for cod and herring of fishing vessels"
    ((suggested, terms),) = lessons(model, [text])
    ranking = model.predict([text], 12)
    ids = [model.labels[i].id for i in ranking.indices[0] if i >= 0]
    assert [label for label, _ in suggested] == ids
    np.testing.assert_allclose([p for _, p in suggested], ranking.scores[0][: len(ids)], atol=1e-6)
    vectors = model.features.transform(dataset.train.texts)
    own = dict(zip(model.features.terms_, np.diff(csr_array(vectors).tocsc().indptr), strict=True))
    assert terms
    assert all(own[term] == n for term, _, n in terms)
    weights = [weight for _, weight, _ in terms]
    assert weights == sorted(weights, reverse=True)


def test_reasons_are_the_uncertain_labels_and_say_which_are_rare() -> None:
    labels = LabelSet([Label("a", "wine"), Label("b", "oil"), Label("c", "milk")])
    suggested = [("a", 0.5), ("b", 0.5), ("c", 0.99), ("gone", 0.5)]
    found = reasons(suggested, labels, np.array([50, 2, 0]))
    assert found == [(1, 0.5, True), (0, 0.5, False)]
