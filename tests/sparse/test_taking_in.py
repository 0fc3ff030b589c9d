"""Labels that take in new documents, against labels that are solved on all of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from depl.readers.demo_corpus import read_docstrings
from depl.sparse import updating
from depl.sparse.duals import Duals, Rows, solve_block
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.updating import solve_again, take_in

N_NEW = 200
NONE = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def corpus():
    train = read_docstrings().train
    order = np.random.default_rng(0).permutation(len(train))
    X = TfidfFeatures(pairs="no", min_df=2).fit_transform([train.texts[i] for i in order])
    Y = csr_array(train.Y[order])
    some = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]) > 1)
    return X, csr_array(Y[:, some])


@pytest.fixture(scope="module")
def fitted(corpus):
    X, Y = corpus
    return OneVsAllSVM(cull=0.01, tol=1e-4).fit(X[:-N_NEW], Y[:-N_NEW])


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """The corpus is small, and yet its documents are too many to solve labels on all of them."""
    monkeypatch.setattr(updating, "_FEW", 100)


def touched(Y):
    return np.unique(Y[-N_NEW:].indices).astype(np.int64)


def objectives(svm, X, Y, labels):
    """What an SVM makes of each label, on all documents."""
    y = 2 * Y[:, labels].toarray() - 1
    counts = np.asarray(Y[:, labels].sum(axis=0)).ravel()
    b = svm.bias_[labels] + svm.rare_bonus * np.log(counts)
    W = svm.weights_[labels]
    slack = np.maximum(0, 1 - y * ((X @ W.T).toarray() + b))
    square = np.asarray((W * W).sum(axis=1)).ravel() + b**2
    return 0.5 * square + svm.C * (slack**2).sum(axis=0)


def test_a_weight_vector_tells_the_dual_variables(corpus):
    X, Y = corpus
    Y = csr_array(Y[:, :16])
    documents, rng = Rows(X), np.random.default_rng(0)
    W, _ = solve_block(documents, Y, rng, loss="squared_hinge", C=0.7, tol=1e-7, still=1e-7)
    every = np.arange(X.shape[0])
    duals = Duals.around(documents, Y, W, C=0.7, solved=every, weight=1.0)
    assert np.array_equal(duals.W, W)
    found = X.T @ duals.A  # w is the sum of a x
    assert found == pytest.approx(W[:-1], abs=0.01)
    assert duals.A.sum(axis=0) == pytest.approx(W[-1], abs=0.01)
    assert duals.sweep(np.random.default_rng(1).permutation(len(every)), 1e-2)[1] < 0.02


def test_documents_that_stand_for_others_count_more(corpus):
    X, Y = corpus
    Y = csr_array(Y[:, :16])
    W = np.zeros((X.shape[1] + 1, 16), np.float32)
    some = np.arange(10)
    once, thrice = (Duals.around(Rows(X), Y, W, C=0.7, solved=some, weight=w) for w in (1.0, 3.0))
    assert once.A[:10].any()
    assert thrice.A[:10] == pytest.approx(3 * once.A[:10])
    assert not thrice.A[10:].any()
    assert np.array_equal(thrice.diagonal[10:], once.diagonal[10:])


@pytest.mark.parametrize(("some", "share"), [(6_000, 0.15), (600, 0.4)])
def test_new_documents_are_taken_in_as_if_all_were_solved(corpus, fitted, monkeypatch, some, share):
    monkeypatch.setattr(updating, "_SOME", some)
    X, Y = corpus
    labels = touched(Y)
    counts = np.asarray(Y[:-N_NEW].sum(axis=0)).ravel()
    labels = labels[counts[labels] > 0]
    n = X.shape[0] - N_NEW
    after = take_in(fitted, fitted, n, labels, X, csr_array(Y[:, labels]), NONE)
    exact = OneVsAllSVM(cull=0.01, tol=1e-4).fit(X, Y)
    stale, found, best = (objectives(x, X, Y, labels) for x in (fitted, after, exact))
    assert (found - best).sum() < share * (stale - best).sum()
    others = np.setdiff1d(np.arange(Y.shape[1]), labels)
    assert (after.weights_[others] != fitted.weights_[others]).nnz == 0
    assert np.array_equal(after.bias_[others], fitted.bias_[others])


def test_portions_do_not_matter_and_others_keep_what_they_have_learnt(corpus, fitted):
    X, Y = corpus
    n, half = X.shape[0] - N_NEW, X.shape[0] - N_NEW // 2
    labels = touched(Y)
    once = take_in(fitted, fitted, n, labels, X, csr_array(Y[:, labels]), NONE)
    some = np.unique(Y[n:half].indices).astype(np.int64)
    first = take_in(fitted, fitted, n, some, X[:half], csr_array(Y[:half][:, some]), NONE)
    assert (first.weights_[some] != fitted.weights_[some]).nnz
    then = take_in(first, fitted, n, labels, X, csr_array(Y[:, labels]), NONE)
    assert (then.weights_ != once.weights_).nnz == 0
    later = take_in(first, fitted, n, labels[:1], X, csr_array(Y[:, labels[:1]]), NONE)
    kept = np.setdiff1d(some, labels[:1])
    assert (later.weights_[kept] != first.weights_[kept]).nnz == 0


def test_labels_that_nobody_carried_are_learnt_and_those_that_nobody_carries_are_not(corpus):
    X, Y = corpus
    first = Y.toarray()
    first[:-N_NEW, 3] = 0
    first[-2:, 3] = 1
    first[:, 5] = 0
    Y = csr_array(first)
    svm = OneVsAllSVM().fit(X[:-N_NEW], csr_array(Y[:-N_NEW]))
    assert np.isneginf(svm.bias_[[3, 5]]).all()
    labels, n = np.array([3, 5, 7]), X.shape[0] - N_NEW
    after = take_in(svm, svm, n, labels, X, csr_array(Y[:, labels]), NONE)
    exact = OneVsAllSVM().fit(X, Y)
    assert np.isneginf(after.bias_[5])
    assert not after.weights_[[5]].nnz
    found, best = (x.weights_[[3]].toarray()[0] for x in (after, exact))
    assert found @ best > 0.95 * np.linalg.norm(found) * np.linalg.norm(best)
    assert after.bias_[3] == pytest.approx(exact.bias_[3], abs=0.1)
    assert np.isfinite(after.gap_).all()


def test_labels_that_other_documents_say_something_else_of_are_solved_again(corpus, fitted):
    X, Y = corpus
    labels = touched(Y)
    altered, near = labels[:40], labels[40:]
    n = X.shape[0] - N_NEW
    after = take_in(fitted, fitted, n, labels, X, csr_array(Y[:, labels]), altered)
    again = solve_again(fitted, altered, X, csr_array(Y[:, altered]))
    taken = take_in(fitted, fitted, n, near, X, csr_array(Y[:, near]), NONE)
    for some, same in ((altered, again), (near, taken)):
        assert (after.weights_[some] != same.weights_[some]).nnz == 0
        assert np.array_equal(after.bias_[some], same.bias_[some])


def test_threads_change_nothing_and_terms_of_no_document_at_hand_stay(corpus, fitted, monkeypatch):
    monkeypatch.setattr(updating, "_SOME", 50)
    X, Y = corpus
    labels = touched(Y)
    n = X.shape[0] - N_NEW
    runs = []
    for n_threads in (1, 3):
        fitted.n_threads = n_threads
        runs.append(take_in(fitted, fitted, n, labels, X, csr_array(Y[:, labels]), NONE))
    assert (runs[0].weights_ != runs[1].weights_).nnz == 0
    assert np.array_equal(runs[0].bias_, runs[1].bias_)
    assert runs[0].weights_.has_sorted_indices
    before = fitted.weights_.toarray()
    changed = np.abs(runs[0].weights_.toarray() - before).max(axis=0) > 0
    assert changed.any()
    assert not changed.all()


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_few_documents_and_other_losses_are_solved_again(corpus, monkeypatch, loss):
    if loss == "squared_hinge":
        monkeypatch.setattr(updating, "_FEW", 2_000)
    X, Y = corpus[0], csr_array(corpus[1][:, :40])
    svm = OneVsAllSVM(loss=loss).fit(X[:-N_NEW], csr_array(Y[:-N_NEW]))
    labels, n = np.arange(40), X.shape[0] - N_NEW
    after = take_in(svm, svm, n, labels, X, Y, NONE)
    again = solve_again(svm, labels, X, Y)
    assert (after.weights_ != again.weights_).nnz == 0
