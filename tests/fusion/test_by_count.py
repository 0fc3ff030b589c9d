"""Lines that depend on a label's frequency, against scikit-learn and what was drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from depl.core.ranking import Ranking
from depl.fusion.by_count import COUNTS, FIRST, FURTHER, ByCount

TRUE = {0: (0.6, -0.5), 3: (0.8, -0.3), 30: (1.0, 0.1), 300: (1.2, 0.3)}
numbers = st.floats(-3, 3)


def documents(n, counts, seed=0, width=FIRST):
    """Suggestions of labels with these counts, right as often as the lines of ``TRUE`` say."""
    rng = np.random.default_rng(seed)
    indices = np.argsort(rng.random((n, len(counts))), axis=1)[:, :width].astype(np.int32)
    z = rng.normal(0, 2, indices.shape).astype(np.float32)
    lines = np.array([TRUE[c] for c in counts])[indices]
    right = rng.random(z.shape) < expit(lines[..., 0] * z + lines[..., 1])
    Y = np.zeros((n, len(counts)), np.float32)
    np.put_along_axis(Y, indices.astype(np.int64), right.astype(np.float32), axis=1)
    return Ranking(indices, z), csr_array(Y)


def fit(ranking, Y, counts):
    return ByCount.fit(ranking, Y, np.array([counts]), np.zeros(len(ranking), np.int64))


def test_it_finds_the_lines_that_truth_was_drawn_with():
    counts = np.repeat(COUNTS, 3)
    found = fit(*documents(40_000, counts), counts)
    expected = np.array([TRUE[c] for c in COUNTS])
    assert found.slopes == pytest.approx(expected[:, 0], abs=0.05)
    assert found.offsets == pytest.approx(expected[:, 1], abs=0.05)


def test_with_one_frequency_it_is_logistic_regression():
    counts = np.repeat(30, 8)
    ranking, Y = documents(4_000, counts)
    found = fit(ranking, Y, counts)
    right = np.take_along_axis(Y.toarray(), ranking.indices.astype(np.int64), axis=1).ravel() > 0
    peer = LogisticRegression(C=1e6).fit(ranking.scores.reshape(-1, 1), right)
    at = COUNTS.index(30)
    assert found.slopes[at] == pytest.approx(peer.coef_[0, 0], abs=0.01)
    assert found.offsets[at] == pytest.approx(peer.intercept_[0], abs=0.01)
    # Of the others nothing is known but what all labels have in common.
    assert min(found.slopes) >= 0.9
    assert max(np.abs(found.offsets)) <= 0.2


def test_a_few_suggestions_change_little_and_none_nothing():
    counts = np.repeat(3, 6)
    few = fit(*documents(2, counts), counts)
    z = np.linspace(-3, 3, 13)
    moved = expit(few.corrected(z, np.log1p(np.full(13, 300)))) - expit(z)
    assert 0 < np.abs(moved).max() < 0.1
    assert fit(Ranking.empty(3, 4), csr_array((3, 6)), counts) == ByCount()


def test_counts_are_those_of_the_fold_and_what_follows_counts_less():
    counts = np.array([[3] * 12, [300] * 12])
    ranking, Y = documents(6_000, counts[0], width=12)
    fold = np.arange(6_000) % 2
    one, other = (
        fit(Ranking(ranking.indices[fold == f], ranking.scores[fold == f]), Y[fold == f], counts[f])
        for f in (0, 1)
    )
    both = ByCount.fit(ranking, Y, counts, fold)
    assert both.slopes[1] == pytest.approx(one.slopes[1], abs=0.03)
    assert both.slopes[3] == pytest.approx(other.slopes[3], abs=0.03)
    # Whatever stands behind the further suggestions does not count.
    Y = Y.toarray()
    for j in ranking.indices[:, FURTHER:].T:
        Y[np.arange(6_000), j] = 1 - Y[np.arange(6_000), j]
    assert ByCount.fit(ranking, csr_array(Y), counts, fold) == both
    for j in ranking.indices[:, FIRST:FURTHER].T:
        Y[np.arange(6_000), j] = 0
    less = ByCount.fit(ranking, csr_array(Y), counts, fold)
    for j in ranking.indices[:, :FIRST].T:
        Y[np.arange(6_000), j] = 0
    none = ByCount.fit(ranking, csr_array(Y), counts, fold)
    assert both.offsets[1] > less.offsets[1] > none.offsets[1]


@given(st.integers(0, 5_000))
def test_between_two_counts_lines_change_with_the_log_of_the_count(count):
    by_count = ByCount((1.0, 2.0, 4.0, 3.0), (0.0, 1.0, -1.0, 2.0))
    x = np.log1p(np.array([count]))
    assert by_count.slope(x)[0] == pytest.approx(np.interp(x[0], np.log1p(COUNTS), (1, 2, 4, 3)))
    line = by_count.corrected(np.array([0.0, 1.0]), np.repeat(x, 2))
    assert line[1] - line[0] == pytest.approx(by_count.slope(x)[0])


@given(st.floats(0.2, 3), numbers, numbers, st.integers(0, 1_000))
def test_what_is_left_after_a_correction(slope, offset, z, count):
    by_count = ByCount((0.5, 1.0, 1.5, 0.8), (-1.0, 0.5, 0.0, 0.3))
    x = np.log1p(np.array([count]))
    whole = by_count.after(slope, offset).corrected(np.array([slope * z + offset]), x)
    assert whole[0] == pytest.approx(slope * by_count.corrected(np.array([z]), x)[0] + offset)


def test_lines_must_be_as_many_as_counts():
    with pytest.raises(ValueError, match="4 slopes"):
        ByCount((1.0,), (0.0,))
