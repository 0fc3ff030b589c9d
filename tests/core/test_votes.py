"""Votes of neighbours, counted by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.core.votes import votes


@given(st.integers(0, 1_000), st.sampled_from([0.0, 1.0, 20.0]), st.integers(1, 6))
def test_shares_are_those_of_the_weights(seed, sharpness, k):
    rng = np.random.default_rng(seed)
    Y = (rng.random((7, 4)) < 0.4).astype(np.float32)
    nearest = Ranking.from_scores(rng.random((3, 7)).astype(np.float32), k)
    found = votes(nearest, csr_array(Y), sharpness=sharpness, k=4)
    for i in range(3):
        documents = [j for j in nearest.indices[i].tolist() if j >= 0]
        weights = np.exp(sharpness * nearest.scores[i][: len(documents)].astype(float))
        share = (weights[:, None] * Y[documents]).sum(axis=0) / weights.sum()
        order = [j for j in np.lexsort((np.arange(4), -share)) if share[j] > 0]
        real = found.indices[i] >= 0
        assert set(found.indices[i][real].tolist()) == set(order)
        np.testing.assert_allclose(found.scores[i][real], np.sort(share[order])[::-1], rtol=1e-4)


def test_a_document_without_neighbours_gets_no_label():
    found = votes(Ranking.empty(2, 3), csr_array(np.ones((4, 2))), sharpness=20.0, k=2)
    assert (found.indices == -1).all()


def test_very_different_similarities_do_not_overflow():
    nearest = Ranking(np.array([[0, 1]], np.int32), np.array([[900.0, -900.0]], np.float32))
    found = votes(nearest, csr_array(np.eye(2)), sharpness=20.0, k=2)
    assert found.indices[0, 0] == 0
    assert found.scores[0, 0] == pytest.approx(1.0)
