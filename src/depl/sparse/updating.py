"""An SVM of which some labels are solved again, because their documents are others than before."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.scratch import column_counts
from depl.core.workers import map_in_threads
from depl.sparse.duals import Rows, solve_block
from depl.sparse.svm import OneVsAllSVM, cull_small, spread

_WIDE = 64  # labels of a block
# A label that is solved again is solved to within ten times the tolerance of a fit, which its next
# documents will change more: a third of the time is saved, and weights differ by 1 % from a fit's.
_TIGHT = (10.0, 1e-2, 0.3)  # in tolerances; how little is no change; when to look
# Where many documents carry a label, three times that halves the time; where few do, it costs 5 %
# of what is gained (TIB-en).
_MANY, _LOOSE = 10, (30.0, 3e-2, 0.5)
# Labels that are solved again are rare: beginning with their few documents spares one sweep over
# all documents in six.
_AHEAD = 3


def solve_again(
    svm: OneVsAllSVM, labels: NDArray[np.int64], X: csr_array, Y: csr_array
) -> OneVsAllSVM:
    """The SVM with some labels solved from the beginning.

    Parameters
    ----------
    svm : OneVsAllSVM
        Fitted.
    labels : array of shape (n,)
        Which labels.
    X, Y : csr_array
        All documents; Y has a column for each of ``labels``.
    """
    counts = np.asarray(Y.sum(axis=0)).ravel()
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    carriers = column_counts(X)
    # Common terms first, as in a fit; terms that only names of labels have are in no document.
    terms = np.argsort(-carriers, kind="stable")[: np.count_nonzero(carriers)]
    documents = Rows(csr_array(X[:, terms]))

    def solve(first: int) -> tuple[csr_array, NDArray[np.float32], NDArray[np.float32]]:
        block = order[first : first + _WIDE]
        rng = np.random.default_rng([svm.seed, first])
        slack, still, calm = _TIGHT if counts[block].max() < _MANY else _LOOSE
        W, gap = solve_block(
            documents,
            csr_array(Y[:, block]),
            rng,
            loss=svm.loss,
            C=svm.C,
            tol=slack * svm.tol,
            still=still,
            calm=calm,
            ahead=_AHEAD,
        )
        weights = cull_small(W, np.arange(len(terms)), len(block), svm.cull)
        bias = W[-1, : len(block)] - svm.rare_bonus * np.log(counts[block])
        return weights, bias, gap

    solved = list(map_in_threads(solve, range(0, len(order), _WIDE), svm.n_threads))
    bias = np.full(len(labels), -np.inf, np.float32)
    gap = np.zeros(len(labels), np.float32)
    weights = csr_array((len(labels), X.shape[1]), dtype=np.float32)
    if solved:
        bias[order] = np.concatenate([b for _, b, _ in solved])
        gap[order] = np.concatenate([g for _, _, g in solved])
        own = csr_array(vstack([w for w, _, _ in solved], format="csr"))
        weights = with_rows(weights, order, spread(own, terms, X.shape[1]))
        weights.sort_indices()
    return _with(svm, labels, weights, bias, gap)


def _with(
    svm: OneVsAllSVM,
    labels: NDArray[np.int64],
    weights: csr_array,
    bias: NDArray[np.float32],
    gap: NDArray[np.float32],
) -> OneVsAllSVM:
    """The SVM with other weights, biases and gaps of some labels."""
    new = copy(svm)
    new.weights_ = with_rows(svm.weights_, labels, weights)
    new.bias_, new.gap_ = svm.bias_.copy(), svm.gap_.copy()
    new.bias_[labels], new.gap_[labels] = bias, gap
    return new


def with_rows(matrix: csr_array, places: NDArray[np.int64], rows: csr_array) -> csr_array:
    """The matrix with other rows at some places."""
    source = np.arange(matrix.shape[0])
    source[places] = matrix.shape[0] + np.arange(len(places))
    return csr_array(csr_array(vstack([matrix, rows], format="csr"))[source])
