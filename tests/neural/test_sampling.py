"""The label subset of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.core.errors import ConfigError
from depl.core.indicator import indicator
from depl.core.ranking import Ranking
from depl.neural.sampling import LabelSampler


@st.composite
def situations(draw):
    """Documents with labels, a ranking over the labels that training has seen, and a batch."""
    n_labels = draw(st.integers(2, 12))
    carried = st.lists(st.integers(0, n_labels - 1), max_size=4)
    Y = indicator(draw(st.lists(carried, min_size=1, max_size=8)), n_labels)
    seen = sorted(set(Y.indices.tolist()))
    # At most 4 labels are a document's own and at most 4 are asked for: 8 places are enough.
    ranking = Ranking.empty(Y.shape[0], draw(st.integers(8, 12)))
    for row in ranking.indices:
        ranked = draw(st.permutations(seen))[: len(row)]
        row[: len(ranked)] = ranked
    batch = draw(
        st.lists(st.integers(0, Y.shape[0] - 1), min_size=1, max_size=Y.shape[0], unique=True)
    )
    return Y, ranking, np.array(batch)


def hard_negatives(Y, ranking, document, n):
    own = set(Y[[document]].indices.tolist())
    return [j for j in ranking.indices[document].tolist() if j >= 0 and j not in own][:n]


@given(situations(), st.integers(0, 4), st.integers(0, 15), st.integers(0, 9))
def test_a_subset_is_what_it_should_be(situation, n_hard, size, seed):
    Y, ranking, batch = situation
    sampler = LabelSampler(Y, ranking, n_hard=n_hard, size=size)
    subset = sampler.draw(batch, np.random.default_rng(seed))
    targets = sampler.targets(batch, subset)
    seen = set(Y.indices.tolist())
    positives = set(Y[batch].indices.tolist())
    hard = {j for i in batch for j in hard_negatives(Y, ranking, i, n_hard)}
    assert (np.diff(subset) > 0).all()
    assert positives | hard <= set(subset.tolist()) <= seen
    assert len(subset) == max(len(positives | hard), min(size, len(seen)))
    assert (targets == Y[batch].toarray()[:, subset]).all()
    assert targets.dtype == np.float32


@given(situations(), st.integers(1, 4))
def test_hard_negatives_are_the_first_of_the_ranking_that_a_document_does_not_carry(situation, n):
    Y, ranking, _ = situation
    before = ranking.indices.copy()
    sampler = LabelSampler(Y, ranking, n_hard=n, size=0)
    for i, row in enumerate(sampler.hard):
        assert [j for j in row.tolist() if j >= 0] == hard_negatives(Y, ranking, i, n)
    assert (ranking.indices == before).all()


def test_more_hard_negatives_than_the_ranking_holds_are_refused():
    Y = indicator([[0], [1], [2], [3]], 4)
    ranking = Ranking(np.array([[0, 1], [1, 0], [2, 0], [3, 0]], np.int32), np.zeros((4, 2)))
    assert LabelSampler(Y, ranking, n_hard=1, size=0).hard.tolist() == [[1], [0], [0], [0]]
    with pytest.raises(ConfigError, match=r"2 hard negatives .* holds 1 labels"):
        LabelSampler(Y, ranking, n_hard=2, size=0)


def test_all_wrong_labels_are_hard_where_there_are_no_more():
    Y = indicator([[0], [1]], 5)
    ranking = Ranking(np.array([[0, 1], [1, 0]], np.int32), np.zeros((2, 2)))
    sampler = LabelSampler(Y, ranking, n_hard=4, size=0)
    assert [[j for j in row if j >= 0] for row in sampler.hard.tolist()] == [[1], [0]]


def test_a_label_may_be_hard_for_one_document_and_right_for_another():
    Y = indicator([[0], [1]], 3)
    ranking = Ranking(np.array([[1, 0], [0, 1]], np.int32), np.zeros((2, 2), np.float32))
    sampler, batch = LabelSampler(Y, ranking, n_hard=1, size=2), np.array([1, 0])
    subset = sampler.draw(batch, np.random.default_rng(0))
    targets = sampler.targets(batch, subset)
    assert subset.tolist() == [0, 1]
    assert targets.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("n_hard", [0, 2])
def test_without_hard_negatives_the_rest_is_random_and_even(n_hard):
    Y = indicator([[j] for j in range(20)], 25)
    ranking = None if n_hard else Ranking.empty(20, 3)
    sampler = LabelSampler(Y, ranking, n_hard=n_hard, size=6)
    assert sampler.hard is None
    rng = np.random.default_rng(1)
    drawn = np.concatenate([sampler.draw(np.array([0]), rng) for _ in range(2_000)])
    counts = np.bincount(drawn, minlength=25)
    assert counts[0] == 2_000
    assert (counts[20:] == 0).all()  # no training document carries them
    # 5 of the other 19 each time: 526 expected, standard deviation 20
    assert (np.abs(counts[1:20] - 2_000 * 5 / 19) < 100).all()


def test_the_generator_alone_decides():
    Y = indicator([[j] for j in range(50)], 50)
    sampler = LabelSampler(Y, None, n_hard=0, size=10)
    batch = np.array([3, 7])
    subsets = [sampler.draw(batch, np.random.default_rng(s)).tolist() for s in (4, 4, 5)]
    assert subsets[0] == subsets[1] != subsets[2]
