"""Keywords against a plain sort of the weights."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from depl.sparse.keywords import top_keywords

TERMS = ["1408", "7b", "grape", "naïve", "steel", "wine", "été", "汉字"]

# Few distinct weights, so that ties are the rule.
weights = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 4), st.just(len(TERMS))),
    elements=st.sampled_from([-1.0, 0.0, 0.0, 0.25, 0.5, 0.5, 2.0]),
)


@given(weights, st.integers(1, 10), st.booleans())
def test_keywords_are_the_largest_positive_weights(dense: np.ndarray, n: int, numbers: bool):
    keywords = top_keywords(csr_array(dense), TERMS, n, numbers=numbers)
    assert len(keywords) == len(dense)
    assert keywords.indices.shape == keywords.weights.shape == (len(dense), n)
    for label, row in enumerate(dense.tolist()):
        candidates = [
            (t, w) for t, w in enumerate(row) if w > 0 and (numbers or TERMS[t] != "1408")
        ]
        best = sorted(candidates, key=lambda pair: (-pair[1], pair[0]))[:n]
        assert keywords.of(label) == [(TERMS[t], w) for t, w in best]
        padding = [-1] * (n - len(best))
        assert keywords.indices[label].tolist() == [t for t, _ in best] + padding
        assert keywords.weights[label, len(best) :].tolist() == [0.0] * len(padding)


def test_terms_that_say_nothing_are_left_out():
    dense = np.array([[0.0, 0.0, 0.5, 0.0, 0.9, 0.7, 0.0, 0.0]], np.float32)
    kept = top_keywords(csr_array(dense), TERMS, n=2, without={"steel"})
    assert [term for term, _ in kept.of(0)] == ["wine", "grape"]


def test_twenty_keywords_are_the_default():
    terms = [f"term{i:02}" for i in range(30)]
    dense = np.arange(1, 31, dtype=np.float32)[None, :]
    keywords = top_keywords(csr_array(dense), terms)
    assert [term for term, _ in keywords.of(0)] == terms[:9:-1]


def test_order_of_the_columns_in_memory_does_not_matter():
    shuffled = csr_array(
        (np.array([0.5, 2.0, 0.5], np.float32), np.array([5, 3, 2]), np.array([0, 3])), shape=(1, 8)
    )
    assert top_keywords(shuffled, TERMS).of(0) == [("naïve", 2.0), ("grape", 0.5), ("wine", 0.5)]


def test_label_without_weights_has_no_keywords():
    assert top_keywords(csr_array((1, 8), dtype=np.float32), TERMS).of(0) == []
