"""The choice of C on a slice of the training documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

from depl.sparse import label_tree
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tuning import choose_C

N_DOCUMENTS, N_LABELS = 120, 12


@pytest.fixture(scope="module")
def problem() -> tuple[csr_array, csr_array]:
    """Two labels a document; each label has a word of its own, the other words are noise."""
    rng = np.random.default_rng(0)
    Y = np.zeros((N_DOCUMENTS, N_LABELS), np.float32)
    for row in Y:
        row[rng.choice(N_LABELS, 2, replace=False)] = 1
    X = np.hstack([Y, rng.random((N_DOCUMENTS, 20)) < 0.2]).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return csr_array(X), csr_array(Y)


@pytest.mark.parametrize("grid", [(1e-7, 1.0), (1.0, 1e-7)])
def test_sensible_value_wins_over_an_absurd_one(problem, grid):
    C, scores = choose_C(*problem, grid, 0.2, seed=0)
    assert C == 1.0
    assert [row["C"] for row in scores] == list(grid)
    by_C = {row["C"]: row for row in scores}
    # Both labels of every document are found: 2 of 5 right, and all that PSP can ask for.
    assert by_C[1.0]["P@5"] == pytest.approx(40)
    assert by_C[1.0]["PSP@5"] == pytest.approx(100)
    assert by_C[1e-7]["P@5"] < 30


def test_same_seed_gives_the_same_scores_whatever_the_threads(problem):
    first = choose_C(*problem, (0.01, 0.1, 1.0), 0.2, seed=3, n_threads=1)
    again = choose_C(*problem, (0.01, 0.1, 1.0), 0.2, seed=3, n_threads=2)
    assert first == again


def test_first_of_equally_good_values_wins(problem):
    # With such values all weights are culled: only the labels' frequencies are left.
    C, scores = choose_C(*problem, (1e-8, 1e-7), 0.2, seed=0)
    assert scores[0]["P@5"] == scores[1]["P@5"]
    assert C == 1e-8


def test_documents_of_the_slice_are_not_learnt_from(problem, monkeypatch):
    X, Y = problem
    marked = csr_array(hstack([X, csr_array(np.eye(N_DOCUMENTS, dtype=np.float32))]))
    learnt_from: list[set[int]] = []
    scored_on: list[set[int]] = []

    def marks(X: csr_array) -> set[int]:
        return {int(j) - 32 for j in X.indices if j >= 32}

    class Spy(OneVsAllSVM):
        def fit(self, X, Y, executor=None):
            learnt_from.append(marks(X))
            return super().fit(X, Y, executor)

        def rank(self, X, k, executor=None):
            scored_on.append(marks(X))
            return super().rank(X, k, executor)

    monkeypatch.setattr(label_tree, "OneVsAllSVM", Spy)
    choose_C(marked, Y, (0.5, 1.0), 0.25, seed=0)
    assert learnt_from[0] == learnt_from[1]
    assert scored_on[0] == scored_on[1]
    assert len(scored_on[0]) == N_DOCUMENTS // 4
    assert not learnt_from[0] & scored_on[0]
    assert learnt_from[0] | scored_on[0] == set(range(N_DOCUMENTS))


def test_other_settings_reach_the_svm(problem, monkeypatch):
    made: list[OneVsAllSVM] = []

    class Spy(OneVsAllSVM):
        def fit(self, X, Y, executor=None):
            made.append(self)
            return super().fit(X, Y, executor)

    monkeypatch.setattr(label_tree, "OneVsAllSVM", Spy)
    choose_C(*problem, (0.5,), 0.2, seed=7, loss="hinge", cull=0.2, C=99.0)
    [svm] = made
    assert (svm.loss, svm.cull, svm.seed, svm.C) == ("hinge", 0.2, 7, 0.5)
