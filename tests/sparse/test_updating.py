"""Labels that take in new documents, against a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from depl.sparse.svm import OneVsAllSVM
from depl.sparse.updating import take_in

N_LABELS, N_TERMS, N_NEW = 3, 9, 12


@pytest.mark.parametrize("cull", [0.0, 0.3])
def test_weights_move_as_little_as_they_can_to_get_new_documents_right(cull):
    rng = np.random.default_rng(0)
    svm = OneVsAllSVM(cull=cull, C=0.8)
    W = rng.normal(size=(N_LABELS, N_TERMS)).astype(np.float32)
    svm.weights_ = csr_array(np.where(np.abs(W) >= cull, W, 0))
    svm.bias_ = rng.normal(size=N_LABELS).astype(np.float32)
    svm.gap_ = np.zeros(N_LABELS, np.float32)
    X = rng.random((N_NEW, N_TERMS)) * (rng.random((N_NEW, N_TERMS)) < 0.5)
    X[:, 4] = 0  # a term that no new document has
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = (rng.random((N_NEW, 2)) < 0.4).astype(np.float32)
    labels, counts = np.array([0, 2]), np.array([10, 40])
    new = take_in(svm, labels, csr_array(X.astype(np.float32)), csr_array(Y), counts)

    rows = np.hstack([X, np.ones((N_NEW, 1))])
    for column, label in enumerate(labels):
        bonus = svm.rare_bonus * np.log(counts[column])
        start = np.append(svm.weights_.toarray()[label], svm.bias_[label] + bonus).astype(float)
        y = 2 * Y[:, column] - 1

        def objective(w, start=start, y=y):
            short = np.maximum(0, 1 - y * (rows @ w))
            return 0.5 * ((w - start) ** 2).sum() + svm.C * (short**2).sum()

        best = minimize(objective, start, tol=1e-10).x
        size = np.abs(best[:-1])
        sure = np.abs(size - cull) > 0.02  # of being dropped, or not
        expected = best[:-1] * (size >= cull)
        found = new.weights_.toarray()[label]
        assert found[sure] == pytest.approx(expected[sure], abs=0.01)
        assert found[4] == svm.weights_.toarray()[label, 4]
        bonus = svm.rare_bonus * np.log(counts[column] + Y[:, column].sum())
        assert new.bias_[label] == pytest.approx(best[-1] - bonus, abs=0.01)
    assert (new.weights_[[1]] != svm.weights_[[1]]).nnz == 0
    assert new.bias_[1] == svm.bias_[1]
