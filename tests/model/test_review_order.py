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
from depl.model.review import gains, ordered, reasons, review_order, suggestions


def brute_force(P: np.ndarray, counts: np.ndarray) -> tuple[list[int], list[float]]:
    """Compute every gain again for every place, and take the largest."""
    expected = [float(n) for n in counts]
    left, order, gained = list(range(len(P))), [], []
    while left:
        teaches = [(round(gain(P[d], expected), 12), -d) for d in left]
        best = left[teaches.index(max(teaches))]
        order.append(best)
        gained.append(gain(P[best], expected))
        expected = [e + p for e, p in zip(expected, P[best], strict=True)]
        left.remove(best)
    return order, gained


def gain(row: np.ndarray, expected: list[float]) -> float:
    doubts = [math.sqrt(p * (1 - p)) for p in row]
    return math.fsum(x / (1 + e) for x, e in zip(doubts, expected, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_the_order_is_that_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = rng.random((40, 12)) * (rng.random((40, 12)) < 0.3)
    counts = rng.integers(0, 30, 12)
    order, gained = review_order(csr_array(P), counts)
    wanted, wanted_gains = brute_force(P, counts)
    assert order.tolist() == wanted
    np.testing.assert_allclose(gained, wanted_gains, rtol=1e-9)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=3, max_size=3), min_size=1)
)
def test_every_document_has_one_place_and_gains_never_grow(rows: list[list[float]]) -> None:
    P = csr_array(np.array(rows))
    order, gained = review_order(P, np.array([0, 5, 50]))
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert np.all(np.diff(gained) <= 1e-12)


def test_uncertain_rare_and_new_labels_come_first() -> None:
    counts = np.array([0, 100, 0])
    P = csr_array(np.array([[0.5, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0.99, 0, 0], [0, 0, 0.4]]))
    found = gains(P, counts)
    assert found[0] > found[4] > found[3] > found[2]  # sure ones, then common ones, teach less
    order, _ = review_order(P, counts)
    assert order.tolist()[:2] == [0, 4]  # another label before a second document of the first


def test_what_was_decided_counts_and_what_was_removed_does_not(fitted_run) -> None:
    model = Classifier.load(fitted_run)

    def waiting(number: int, label: str, *, free: bool) -> Waiting:
        state = "open" if free else "done"
        return Waiting(number, str(number), "", [(label, 0.5), ("gone", 0.5)], state, free)

    rare = [waiting(1, "77", free=True), waiting(2, "2077", free=True)]
    assert [x.number for x in ordered(model, rare)] == [1, 2]
    decided = [waiting(n, "77", free=False) for n in range(3, 20)]
    assert [x.number for x in ordered(model, [*rare, *decided])] == [2, 1]


def test_suggestions_are_those_of_the_model(fitted_run) -> None:
    model = Classifier.load(fitted_run)
    text = "Catch quotas for cod and herring of fishing vessels"
    (row,) = suggestions(model, [text])
    ranking = model.predict([text], 12)
    assert [label for label, _ in row] == [model.labels[i].id for i in ranking.indices[0] if i >= 0]
    np.testing.assert_allclose([p for _, p in row], ranking.scores[0][: len(row)], atol=1e-6)


def test_reasons_are_the_uncertain_labels_and_say_which_are_rare() -> None:
    labels = LabelSet([Label("a", "wine"), Label("b", "oil"), Label("c", "milk")])
    found = reasons(
        [("a", 0.5), ("b", 0.5), ("c", 0.99), ("gone", 0.5)], labels, np.array([50, 2, 0])
    )
    assert found == [(1, 0.5, True), (0, 0.5, False)]
