"""Neighbours by words against all cosines, and what their votes are worth where it is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from depl.core.executor import LocalExecutor
from depl.core.votes import votes
from depl.sparse import chunks, neighbours
from depl.sparse.neighbours import WordNeighbours


def unit_rows(n, n_terms, rng):
    X = random_array((n, n_terms), density=0.2, rng=rng, dtype=np.float32, format="csr")
    lengths = np.sqrt((X * X).sum(axis=1))
    lengths[lengths == 0] = 1.0
    return csr_array(X / lengths[:, None]).astype(np.float32)


@given(st.integers(0, 1_000), st.integers(1, 12), st.integers(1, 9))
def test_the_nearest_are_those_of_all_cosines(seed, n_asked, k):
    rng = np.random.default_rng(seed)
    X, asked = unit_rows(9, 15, rng), unit_rows(n_asked, 15, rng)
    Y = csr_array((rng.random((9, 4)) < 0.5).astype(np.float32))
    found = WordNeighbours(X, Y, k=k, sharpness=20.0).nearest(asked)
    cosines = (asked @ X.T).toarray()
    for row, places, scores in zip(cosines, found.indices, found.scores, strict=True):
        expected = np.sort(row[row > 0])[::-1][:k]
        real = places >= 0
        assert len(set(places[real].tolist())) == real.sum() == len(expected)
        np.testing.assert_allclose(scores[real], expected, rtol=1e-5)
        np.testing.assert_allclose(row[places[real]], expected, rtol=1e-5)


@given(st.integers(0, 1_000), st.integers(1, 40))
def test_common_words_are_compared_at_the_end(seed, budget):
    rng = np.random.default_rng(seed)
    X, asked = unit_rows(20, 15, rng), unit_rows(5, 15, rng)
    near = WordNeighbours(X, csr_array((20, 2), dtype=np.float32), k=4, sharpness=20.0)
    cosines = (asked @ X.T).toarray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "_BUDGET", budget)
        patch.setattr(neighbours, "_RESCORED", 20)  # all that share one of the rare words
        found = near.nearest(asked)
    df = np.bincount(X.indices, minlength=15)
    for i, row in enumerate(cosines):
        own = asked[[i]].indices
        own = own[np.argsort(df[own], kind="stable")]
        spent = np.cumsum(df[own])
        looked_up = own[(spent <= budget) | (spent - df[own] == 0)]
        shared = np.flatnonzero((X[:, looked_up] @ np.ones(len(looked_up))) > 0)
        # Terms of the same frequency may be looked up in any order.
        if len(looked_up) < len(own) and df[looked_up[-1]] == df[own[len(looked_up)]]:
            continue
        expected = np.sort(row[shared])[::-1][:4]
        real = found.indices[i] >= 0
        np.testing.assert_allclose(found.scores[i][real], expected, rtol=1e-5)
        np.testing.assert_allclose(row[found.indices[i][real]], expected, rtol=1e-5)


def test_of_equal_documents_the_first_are_nearest():
    X = csr_array(np.tile(np.float32([[0.6, 0.8]]), (5, 1)))
    near = WordNeighbours(X, csr_array(np.eye(5, dtype=np.float32)), k=3, sharpness=20.0)
    assert near.nearest(X[:1]).indices.tolist() == [[0, 1, 2]]


def test_a_text_without_a_known_word_gets_no_label():
    near = WordNeighbours(
        csr_array(np.eye(3, dtype=np.float32)), csr_array(np.ones((3, 2))), k=2, sharpness=20.0
    )
    ranking = near.rank(csr_array((2, 3), dtype=np.float32), 2)
    assert (ranking.indices == -1).all()


def test_neighbours_vote_by_their_cosine(monkeypatch):
    monkeypatch.setattr(chunks, "_CHUNK", 2)  # several chunks, several threads
    rng = np.random.default_rng(7)
    X, asked = unit_rows(30, 12, rng), unit_rows(11, 12, rng)
    Y = csr_array((rng.random((30, 6)) < 0.4).astype(np.float32))
    near = WordNeighbours(X, Y, k=4, sharpness=5.0)
    one_by_one = [near.rank(asked[[i]], 3) for i in range(11)]
    together = near.rank(asked, 3, LocalExecutor(2))
    nearest = near.nearest(asked)
    expected = votes(nearest, Y, sharpness=5.0, k=3)
    np.testing.assert_array_equal(together.indices, expected.indices)
    for i, alone in enumerate(one_by_one):
        np.testing.assert_array_equal(together.indices[i], alone.indices[0])
        np.testing.assert_array_equal(together.scores[i], alone.scores[0])
