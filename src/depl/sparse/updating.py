r"""An SVM that learns from further documents.

A label whose weights :math:`w_0` are known takes the new documents in: it gets the weights that
minimise

.. math:: \tfrac12 |w - w_0|^2 + C \sum_i \text{loss}(1 - y_i (w \cdot x_i + b))

where i runs over the new documents only. In the dual, the variables of all other documents stay as
they are. It costs what solving the label on the new documents alone would.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.scratch import column_counts
from depl.core.workers import map_in_threads
from depl.sparse.duals import Duals, Rows, solve_block
from depl.sparse.svm import OneVsAllSVM, cull_small, spread

_WIDE = 64  # labels of a block
_SWEEPS = 30  # at most, over the new documents
_STILL = 1e-2  # they are fitted once none of them changes by more than this
# A label that is solved again is solved to within ten times the tolerance of a fit, which its next
# documents will change more: a third of the time is saved, and weights differ by 1 % from a fit's.
_SLACK, _QUIET, _CALM = 10.0, 1e-2, 0.3
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
        W, gap = solve_block(
            documents,
            csr_array(Y[:, block]),
            rng,
            loss=svm.loss,
            C=svm.C,
            tol=_SLACK * svm.tol,
            still=_QUIET,
            calm=_CALM,
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


def take_in(
    svm: OneVsAllSVM,
    labels: NDArray[np.int64],
    X: csr_array,
    Y: csr_array,
    counts: NDArray[np.int64],
) -> OneVsAllSVM:
    """The SVM with some labels that have taken in new documents.

    Parameters
    ----------
    svm : OneVsAllSVM
        Fitted; these labels have weights.
    labels : array of shape (n,)
        Which labels.
    X, Y : csr_array
        The new documents; Y has a column for each of ``labels``.
    counts : array of shape (n,)
        How many documents carry each of ``labels``, without the new ones.
    """
    # No weight of a term that no new document has changes.
    terms = np.unique(X.indices)
    documents = Rows(csr_array(X[:, terms]))
    there = np.zeros(X.shape[1], bool)
    there[terms] = True
    after = counts + np.asarray(Y.sum(axis=0)).ravel()

    def update(first: int) -> tuple[csr_array, NDArray[np.float32]]:
        block = slice(first, first + _WIDE)
        old = csr_array(svm.weights_[labels[block]])
        duals = Duals.of(documents, csr_array(Y[:, block]), loss=svm.loss, C=svm.C)
        width = old.shape[0]
        duals.W[:-1, :width] = old[:, terms].toarray().T
        duals.W[-1, :width] = svm.bias_[labels[block]] + svm.rare_bonus * np.log(counts[block])
        rng = np.random.default_rng([svm.seed, first])
        order = rng.permutation(X.shape[0])
        for _ in range(_SWEEPS):
            if duals.sweep(order, _STILL)[1] < _STILL:
                break
            order = rng.permutation(order)
        kept = np.where(there[old.indices], 0, old.data)
        same = csr_array((kept, old.indices, old.indptr), shape=old.shape)
        same.eliminate_zeros()
        new = cull_small(duals.W, np.arange(len(terms)), width, svm.cull)
        weights = csr_array(same + spread(new, terms, X.shape[1]))
        return weights, duals.W[-1, :width] - svm.rare_bonus * np.log(after[block])

    solved = list(map_in_threads(update, range(0, len(labels), _WIDE), svm.n_threads))
    if not solved:
        return svm
    weights = csr_array(vstack([w for w, _ in solved], format="csr"))
    return _with(svm, labels, weights, np.concatenate([b for _, b in solved]), svm.gap_[labels])


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
