"""The one-vs-all SVM against LIBLINEAR, brute force, and itself with other threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from liblinear.liblinearutil import parameter, problem, train
from scipy.sparse import csr_array, csr_matrix

from depl.core.errors import CorpusError, NotFittedError
from depl.readers.demo_corpus import read_docstrings
from depl.sparse.svm import OneVsAllSVM

SOLVER = {"squared_hinge": 1, "hinge": 3}  # LIBLINEAR's dual solvers


def objective(X, y, w, b, C, loss):
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * (w @ w + b * b) + C * np.sum(slack if loss == "hinge" else slack**2)


def liblinear_objective(X, y, C, loss):
    """The objective that LIBLINEAR reaches at a tight tolerance."""
    model = train(
        problem(y.tolist(), csr_matrix(X, dtype=np.float64), bias=1.0),
        parameter(f"-s {SOLVER[loss]} -c {C} -e 1e-6 -B 1 -q"),
    )
    w, _ = model.get_decfun()
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    full = sign * np.append(np.array(w), model.get_decfun()[1])
    return objective(X, y, full[: X.shape[1]], full[X.shape[1]], C, loss)


def random_problem(seed, n=160, n_terms=90, n_labels=70):
    """Sparse documents of length 1 whose labels depend on a few words each."""
    rng = np.random.default_rng(seed)
    dense = rng.random((n, n_terms)) * (rng.random((n, n_terms)) < 0.15)
    dense[:, 0] += 0.05
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    signal = dense[:, rng.integers(0, n_terms, (n_labels, 2))].sum(axis=2)
    cut = np.quantile(signal, rng.uniform(0.6, 0.99, n_labels), axis=0).diagonal()
    Y = (signal > cut).astype(np.float32)
    Y[:, -1] = 0  # a label that no document carries
    return csr_array(dense.astype(np.float32)), csr_array(Y)


@pytest.fixture(scope="module")
def real():
    """tf-idf of the embedded corpus: real words, real labels, mostly rare ones."""
    from depl.sparse.tfidf import TfidfFeatures

    train = read_docstrings().train
    return TfidfFeatures(pairs="no", min_df=2).fit_transform(train.texts), train.Y


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("C", [0.3, 1.0, 8.0])
def test_every_objective_is_within_a_thousandth_of_liblinear(loss, C):
    X, Y = random_problem(seed=1)
    svm = OneVsAllSVM(loss=loss, C=C, cull=0.0, tol=1e-3, rare_bonus=0.0).fit(X, Y)
    for label in range(0, Y.shape[1] - 1, 4):
        y = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        if (y > 0).any():
            ours = objective(X, y, svm.weights_[[label]].toarray()[0], svm.bias_[label], C, loss)
            assert ours <= 1.001 * liblinear_objective(X, y, C, loss)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_real_labels_head_and_tail_are_within_a_thousandth_of_liblinear(real, loss):
    X, Y = real
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    picked = order[np.linspace(0, len(order) - 1, 24).astype(int)]  # most to least frequent
    svm = OneVsAllSVM(loss=loss, C=1.0, cull=0.0, rare_bonus=0.0).fit(X, Y[:, picked])
    for j, label in enumerate(picked):
        y = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        ours = objective(X, y, svm.weights_[[j]].toarray()[0], svm.bias_[j], 1.0, loss)
        assert ours <= 1.001 * liblinear_objective(X, y, 1.0, loss)


def frequent(Y, n):
    """The n most frequent labels."""
    return np.argsort(-np.bincount(Y.indices, minlength=Y.shape[1]), kind="stable")[:n]


def test_the_reported_gap_is_below_the_tolerance_and_bounds_the_distance_to_the_optimum(real):
    X, Y = real
    Y = Y[:, frequent(Y, 96)]
    rough = OneVsAllSVM(C=1.0, tol=0.05, cull=0.0, rare_bonus=0.0).fit(X, Y)
    fine = OneVsAllSVM(C=1.0, tol=1e-4, cull=0.0, rare_bonus=0.0).fit(X, Y)
    assert rough.gap_.max() < 0.05
    assert fine.gap_.max() < 1e-4
    for label in range(0, 60, 6):
        y = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        values = [
            objective(X, y, svm.weights_[[label]].toarray()[0], svm.bias_[label], 1, svm.loss)
            for svm in (rough, fine)
        ]
        assert values[0] * (1 - rough.gap_[label]) <= values[1] * 1.00001


def test_labels_that_are_not_solved_are_told(monkeypatch):
    X, Y = random_problem(seed=1)
    assert OneVsAllSVM(loss="hinge", C=1.0).fit(X, Y).unsolved() == ""
    monkeypatch.setattr("depl.sparse.duals.MOST_SWEEPS", 2)
    svm = OneVsAllSVM(loss="hinge", C=1000.0).fit(X, Y)
    left = np.count_nonzero(svm.gap_ > svm.tol)
    assert left > 0
    solved = np.count_nonzero(np.isfinite(svm.bias_))
    assert svm.unsolved().startswith(f"{left} of {solved} labels are not solved to within 0.001")


def test_the_same_bytes_whatever_the_number_of_threads(real):
    X, Y = real
    Y = Y[:, frequent(Y, 300)]
    one = OneVsAllSVM(n_threads=1).fit(X, Y)
    four = OneVsAllSVM(n_threads=4).fit(X, Y)
    assert one.weights_.data.tobytes() == four.weights_.data.tobytes()
    assert one.weights_.indices.tobytes() == four.weights_.indices.tobytes()
    assert one.bias_.tobytes() == four.bias_.tobytes()
    ranked = [svm.rank(X[:300], 20) for svm in (one, four)]
    assert ranked[0].indices.tobytes() == ranked[1].indices.tobytes()
    assert ranked[0].scores.tobytes() == ranked[1].scores.tobytes()


def test_another_seed_gives_another_way_to_the_same_optimum():
    X, Y = random_problem(seed=2)
    first, second = (OneVsAllSVM(seed=s, cull=0.0, tol=1e-6).fit(X, Y) for s in (0, 1))
    assert first.bias_.tobytes() != second.bias_.tobytes()
    np.testing.assert_allclose(first.weights_.toarray(), second.weights_.toarray(), atol=0.02)


def test_labels_without_documents_have_no_weights_and_are_never_ranked():
    X, Y = random_problem(seed=3)
    svm = OneVsAllSVM().fit(X, Y)
    assert svm.weights_[[-1]].nnz == 0
    assert svm.bias_[-1] == -np.inf
    ranking = svm.rank(X, Y.shape[1])
    assert Y.shape[1] - 1 not in ranking.indices
    assert (ranking.indices[:, -1] == -1).all()


def test_culling_drops_small_weights_and_nothing_else():
    X, Y = random_problem(seed=4)
    whole = OneVsAllSVM(cull=0.0).fit(X, Y).weights_.toarray()
    culled = OneVsAllSVM(cull=0.1).fit(X, Y).weights_
    np.testing.assert_array_equal(culled.toarray(), np.where(np.abs(whole) >= 0.1, whole, 0.0))
    assert (np.abs(culled.data) >= 0.1).all()


def test_the_bonus_raises_rare_labels_against_common_ones_and_touches_no_weight():
    X, Y = random_problem(seed=4)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])[:-1]
    plain = OneVsAllSVM(rare_bonus=0.0).fit(X, Y)
    raised = OneVsAllSVM(rare_bonus=0.1).fit(X, Y)
    np.testing.assert_array_equal(plain.weights_.data, raised.weights_.data)
    np.testing.assert_allclose(
        plain.bias_[:-1] - raised.bias_[:-1], 0.1 * np.log(counts), atol=1e-6
    )


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 12),
    duplicates=st.booleans(),
)
def test_rank_is_a_brute_force_sort_of_the_scores(seed, k, duplicates):
    rng = np.random.default_rng(seed)
    n_labels, n_terms = int(rng.integers(1, 10)), int(rng.integers(1, 8))
    # Few distinct integers: sums are exact, so equal scores really are equal.
    weights = rng.integers(-2, 3, (n_labels, n_terms)).astype(np.float32)
    X = rng.integers(0, 3, (6, n_terms)).astype(np.float32)
    if duplicates:
        weights[:] = weights[0]
    svm = OneVsAllSVM()
    svm.weights_, svm.bias_ = csr_array(weights), np.zeros(n_labels, np.float32)
    svm.bias_[rng.random(n_labels) < 0.2] = -np.inf
    ranking = svm.rank(csr_array(X), k)
    scores = X @ weights.T + svm.bias_
    for i in range(len(X)):
        best = sorted(
            (label for label in range(n_labels) if scores[i, label] > -np.inf),
            key=lambda label: (-scores[i, label], label),
        )[:k]
        padded = best + [-1] * (k - len(best))
        assert ranking.indices[i].tolist() == padded
        assert ranking.scores[i, : len(best)].tolist() == [scores[i, label] for label in best]


def test_a_separable_problem_is_separated():
    X = csr_array(np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]])
    Y = csr_array(np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]], np.float32))
    ranking = OneVsAllSVM(C=10.0).fit(X, Y).rank(X, 2)
    assert ranking.indices[:4, 0].tolist() == [0, 0, 1, 1]
    assert (ranking.scores[:4, 0] > 0).all()
    assert (ranking.scores[4:] < 0).all()


def test_what_cannot_be_done_is_said():
    X, Y = random_problem(seed=5)
    with pytest.raises(CorpusError, match="159 documents"):
        OneVsAllSVM().fit(X[1:], Y)
    with pytest.raises(NotFittedError, match="OneVsAllSVM"):
        OneVsAllSVM().rank(X, 3)
