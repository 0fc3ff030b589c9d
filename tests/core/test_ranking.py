"""Rankings against a plain sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from depl.core.corpus import Label, LabelSet
from depl.core.ranking import Ranking

# Few distinct values, so that ties are the rule; -inf is "not a candidate".
tied = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 3.0, np.inf])
scores = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=7),
    elements=tied | st.floats(-1e6, 1e6),
)


def by_sorting(row: np.ndarray, k: int) -> list[tuple[int, float]]:
    """Higher first, ties by label position; padded."""
    row = row.astype(np.float32).tolist()
    candidates = [(j, s) for j, s in enumerate(row) if s != -np.inf]
    best = sorted(candidates, key=lambda pair: (-pair[1], pair[0]))[:k]
    return best + [(-1, -np.inf)] * (k - len(best))


@given(scores, st.integers(0, 9))
def test_best_labels_are_those_of_a_plain_sort(dense: np.ndarray, k: int):
    ranking = Ranking.from_scores(dense, k)
    assert len(ranking) == len(dense)
    assert ranking.k == k
    assert ranking.indices.dtype == np.int32
    assert ranking.scores.dtype == np.float32
    for i, row in enumerate(dense):
        pairs = list(zip(ranking.indices[i].tolist(), ranking.scores[i].tolist(), strict=True))
        assert pairs == by_sorting(row, k)


def test_scores_are_left_as_they_were():
    dense = np.array([[0.5, 0.5, 0.1]], np.float32)
    ranking = Ranking.from_scores(dense, 3)
    ranking.scores[:] = 9
    assert dense.tolist() == [[0.5, 0.5, pytest.approx(0.1)]]


@given(scores, st.integers(0, 9), st.integers(0, 9))
def test_top_of_a_ranking_is_the_ranking_of_fewer(dense: np.ndarray, wide: int, narrow: int):
    if narrow > wide:
        # What was cut before cannot come back: the rest is padding.
        expected = [by_sorting(row, wide) + [(-1, -np.inf)] * (narrow - wide) for row in dense]
    else:
        expected = [by_sorting(row, narrow) for row in dense]
    top = Ranking.from_scores(dense, wide).top(narrow)
    assert top.k == narrow
    got = [list(zip(i, s, strict=True)) for i, s in zip(top.indices, top.scores, strict=True)]
    assert got == expected


@given(scores, st.integers(1, 5), st.integers(0, 7))
def test_batches_put_together_are_the_whole(dense: np.ndarray, k: int, cut: int):
    parts = [Ranking.from_scores(dense[:cut], k), Ranking.from_scores(dense[cut:], k)]
    whole = Ranking.from_scores(dense, k)
    together = Ranking.concatenate(parts)
    np.testing.assert_array_equal(together.indices, whole.indices)
    np.testing.assert_array_equal(together.scores, whole.scores)


def test_rows_name_the_labels_and_leave_padding_out():
    labels = LabelSet([Label("a", "apples"), Label("b", "beer")])
    dense = np.array([[0.25, 0.5], [-np.inf, 2.0], [-np.inf, -np.inf]])
    assert Ranking.from_scores(dense, 3).rows(labels) == [
        [(labels[1], 0.5), (labels[0], 0.25)],
        [(labels[1], 2.0)],
        [],
    ]


def test_empty_ranking_holds_padding_alone():
    empty = Ranking.empty(2, 3)
    assert empty.indices.tolist() == [[-1] * 3] * 2
    assert empty.scores.tolist() == [[-np.inf] * 3] * 2
    assert empty.rows(LabelSet([])) == [[], []]


@pytest.mark.parametrize(
    ("indices", "scores"), [((2, 3), (2, 2)), ((3,), (3,)), ((1, 2, 3), (1, 2, 3))]
)
def test_arrays_of_other_shapes_are_refused(indices, scores):
    with pytest.raises(ValueError, match=r"two arrays of one shape \(n, k\)"):
        Ranking(np.zeros(indices, np.int32), np.zeros(scores, np.float32))
