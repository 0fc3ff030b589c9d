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
from depl.model.review import (
    Queue,
    following,
    labels_per_document,
    lessons,
    missing,
    ordered,
    reasons,
    said,
)

CARRIED, SHOWN = 1.5, 0.3


def queue_of(P, counts, X) -> Queue:
    return Queue.of(
        csr_array(P),
        np.array(counts),
        csr_array(X),
        carried=CARRIED,
        shown=SHOWN,
    )


class BruteForce:
    """Every gain computed again for every place, in plain Python."""

    def __init__(self, P, counts, X) -> None:
        self.P, self.X = P.tolist(), X.tolist()
        self.labels, self.terms = list(map(float, counts)), [0.0] * X.shape[1]
        carried = [n for n in self.labels if n]
        self.worth = math.fsum(n * (1 / n) for n in carried) / sum(carried)

    def gain(self, d: int) -> float:
        own, words = self.P[d], self.X[d]
        suggested = (p * (1 - p) ** 4 / (1 + n) for p, n in zip(own, self.labels, strict=True))
        missing = max(0.0, CARRIED - math.fsum(own))
        fresh = math.fsum(x / (1 + n) for x, n in zip(words, self.terms, strict=True))
        taught = math.fsum(suggested) + self.worth * missing * fresh / (math.fsum(words) or 1.0)
        return taught / (CARRIED + math.fsum(1 - p for p in own if p >= SHOWN))

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
    P = rng.random((30, 12)) * (rng.random((30, 12)) < 0.2)
    X = rng.random((30, 20)) * (rng.random((30, 20)) < 0.2)
    counts = rng.integers(0, 30, 12)
    queue = queue_of(P, counts, X)
    order, gained = queue.order()
    wanted, wanted_gains = BruteForce(P, counts, X).order()
    assert order.tolist() == wanted
    np.testing.assert_allclose(gained, wanted_gains, rtol=1e-9)
    assert order[0] == np.argmax(queue.gains())


ROWS = st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=3, max_size=3)


@given(st.lists(ROWS, min_size=1))
def test_every_document_has_one_place_and_gains_never_grow(rows: list[list[float]]) -> None:
    P = np.array(rows)
    order, gained = queue_of(P, [0, 5, 50], P).order()
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert np.all(np.diff(gained) <= 1e-12)


def test_unexpected_rare_and_new_labels_come_first() -> None:
    P = np.array([[0.2, 0, 0], [0.2, 0, 0], [0, 0.2, 0], [0.9, 0, 0], [0, 0, 0.15]])
    queue = queue_of(P, [0, 100, 0], np.empty((5, 0)))
    found = queue.gains()
    assert found[0] > found[4] > found[2] > found[3]  # common ones, and sure ones, teach less
    order, _ = queue.order()
    assert order.tolist()[:2] == [0, 4]  # another label before a second document of the first


def test_a_document_whose_labels_are_not_suggested_comes_first() -> None:
    P = np.array([[0.9, 0.5, 0.0], [0.2, 0.0, 0.0], [0.0, 0.0, 0.0]])
    order, gained = queue_of(P, [1, 1, 1], np.eye(3)).order()
    assert order.tolist() == [2, 1, 0]
    assert gained[0] == pytest.approx(1.0)  # nothing but missing, new labels: all decisions teach
    common = queue_of(P, [100, 100, 100], np.eye(3)).gains()
    assert common[2] == pytest.approx(0.01)  # where labels are common, what is missing is so too


def test_a_document_that_takes_fewer_decisions_comes_first() -> None:
    P = np.array([[0.2, 0.3], [0.2, 0.29]])  # the second one's other label is not shown
    order, _ = queue_of(P, [0, 10**6], np.empty((2, 0))).order()
    assert order.tolist() == [1, 0]


def test_other_words_come_before_the_same_again() -> None:
    X = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 0]])
    order, _ = queue_of(np.zeros((4, 1)), [3], X).order()
    assert order.tolist() == [0, 2, 1, 3]  # ties in the order of the queue; no words come last


def waiting(number: int, label: str, term: str = "", *, free: bool = True) -> Waiting:
    state = "open" if free else "done"
    terms = [(term, 1.0)] if term else []
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


def test_lessons_are_the_suggestions_and_the_terms_by_their_weights(fitted_run) -> None:
    model = Classifier.load(fitted_run)
    text = "Catch quotas for cod and herring of fishing vessels"
    ((suggested, terms),) = lessons(model, [text])
    ranking = model.predict([text], 12)
    ids = [model.labels[i].id for i in ranking.indices[0] if i >= 0]
    assert [label for label, _ in suggested] == ids
    np.testing.assert_allclose([p for _, p in suggested], ranking.scores[0][: len(ids)], atol=1e-6)
    own = csr_array(model.features.transform([text]))
    wanted = {model.features.terms_[j]: x for j, x in zip(own.indices, own.data, strict=True)}
    assert dict(terms) == pytest.approx(wanted, abs=1e-4)
    weights = [weight for _, weight in terms]
    assert weights == sorted(weights, reverse=True)


def test_reasons_are_the_uncertain_labels_and_say_which_are_rare() -> None:
    labels = LabelSet([Label("a", "wine"), Label("b", "oil"), Label("c", "milk")])
    suggested = [("a", 0.5), ("b", 0.5), ("c", 0.99), ("gone", 0.5)]
    found = reasons(suggested, labels, np.array([50, 2, 0]))
    assert found == [(1, 0.5, True), (0, 0.5, False)]
    suggested = [("a", 0.9), ("b", 0.2), ("c", 0.01)]
    assert reasons(suggested, labels, np.array([0, 0, 0])) == [(1, 0.2, True), (0, 0.9, True)]


def test_missing_labels_are_those_that_documents_carry_less_those_suggested(fitted_run) -> None:
    model = Classifier.load(fitted_run)
    carried = labels_per_document(model)
    assert carried == pytest.approx(model.train_counts.sum() / model.n_train)
    assert missing([("a", 0.25)], carried) == pytest.approx(carried - 0.25)
    assert missing([("a", 1.0)] * 9, carried) == 0.0


def test_what_there_is_to_learn_is_said_in_words() -> None:
    labels = LabelSet([Label("a", "wine")])
    assert said([(0, 0.5, True)], 0.4, labels) == "wine 50% (rare)"
    assert said([], 1.2, labels) == "about 1 more label"
    assert said([], 0.0, labels) == "nothing: all is certain"
