"""An SVM of which some labels are solved again, because their documents are others than before."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.scratch import column_counts
from depl.core.workers import map_in_threads
from depl.sparse.duals import Duals, Rows, solve_block
from depl.sparse.svm import OneVsAllSVM, cull_small, spread

_Solved = tuple[csr_array, NDArray[np.float32], NDArray[np.float32]]

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

# To take in new documents, this many of the others are gone through. Solving 5,412 labels of TIB-en
# on all 22,518 documents took 11 s, and P@5 on the next 1,879 was 21.3; with 6,000 of them it takes
# 2.2 s and P@5 is 21.3, with 2,500 it takes 1.7 s and P@5 is 20.9.
_SOME = 6_000
_FEW = 2_000  # so few are solved again: that takes no time, and is exact
_STILL, _CALM = 0.03, 1.0  # as in ``solve_block``: the sample is off by more than what these leave
_FIRST, _SWEEPS, _INNER, _SHRUNK = 2, 8, 3, 0.3


def take_in(
    svm: OneVsAllSVM,
    labels: NDArray[np.int64],
    X: csr_array,
    Y: csr_array,
    new: NDArray[np.int64],
    altered: NDArray[np.int64],
) -> OneVsAllSVM:
    """The SVM with some labels solved for further documents, near their weights from before.

    The weights of a label are the optimum for the documents that it was solved on. So near them the
    loss of these documents is known from its curvature, and a sample of them has nearly the
    curvature of all; only the new documents are gone through completely. From these weights, one
    or two sweeps over 8,000 documents do what takes five to ten over all 24,500 of EURLEX57K from
    the beginning.

    Parameters
    ----------
    svm : OneVsAllSVM
        Fitted.
    labels : array of shape (n,)
        Which labels.
    X, Y : csr_array
        All documents; Y has a column for each of ``labels``.
    new : array of int
        Rows of the documents that are new to the SVM.
    altered : array of int
        Those of ``labels`` that other documents carry, or do not carry, otherwise than before. They
        are solved from the beginning: the weights are no optimum for what is known now.
    """
    near = ~np.isin(labels, altered)
    known = np.setdiff1d(np.arange(X.shape[0]), new)
    if svm.loss != "squared_hinge" or svm.solver != "one-vs-all":
        near[:] = False  # the weights do not tell the dual variables, or not of all documents
    if len(known) <= _FEW or not len(new):
        near[:] = False
    if not near.all():
        anew = np.flatnonzero(~near)
        svm = solve_again(svm, labels[anew], X, csr_array(Y[:, anew]))
    if not near.any():
        return svm
    column = np.flatnonzero(near)
    labels, Y = labels[column], csr_array(Y[:, column])
    counts = np.asarray(Y.sum(axis=0)).ravel()
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]

    rng = np.random.default_rng([svm.seed, len(known), len(new)])
    drawn = np.sort(rng.permutation(known)[:_SOME])
    rows = np.concatenate([new, drawn])
    of_old = np.arange(len(new), len(rows))
    before = counts - np.asarray(Y[new].sum(axis=0)).ravel()
    X, Y = csr_array(X[rows]), csr_array(Y[rows])
    carriers = column_counts(X)
    terms = np.argsort(-carriers, kind="stable")[: np.count_nonzero(carriers)]
    place = np.full(X.shape[1], -1)
    place[terms] = np.arange(len(terms))
    documents = Rows(csr_array((X.data, place[X.indices].astype(np.int32), X.indptr), X.shape))
    documents.n_terms = len(terms)
    # Nobody carries a label without weights: then all documents are at -1.
    bias = np.where(np.isfinite(svm.bias_), svm.bias_, -1)[labels]
    bias += svm.rare_bonus * np.log(np.maximum(before, 1))

    def solve(first: int) -> _Solved:
        block = order[first : first + _WIDE]
        rng = np.random.default_rng([svm.seed, first])
        own = csr_array(svm.weights_[labels[block]])
        label = np.repeat(np.arange(len(block)), np.diff(own.indptr))
        at = place[own.indices]
        here = at >= 0
        W = np.zeros((len(terms) + 1, len(block)), np.float32)
        W[at[here], label[here]] = own.data[here]
        W[-1] = bias[block]
        duals = Duals.around(
            documents,
            csr_array(Y[:, block]),
            W,
            C=svm.C,
            solved=of_old,
            weight=len(known) / max(1, len(drawn)),
        )
        _settle(duals, len(new), rng)
        weights = spread(
            cull_small(duals.W, np.arange(len(terms)), len(block), svm.cull), terms, X.shape[1]
        )
        # Terms that none of these documents has keep their weights.
        rest = csr_array(
            (np.where(here, np.float32(0), own.data), own.indices, own.indptr), own.shape
        )
        rest.eliminate_zeros()
        gap = np.where(np.isfinite(svm.gap_), svm.gap_, 0)[labels[block]]
        final = duals.W[-1, : len(block)] - svm.rare_bonus * np.log(counts[block])
        return csr_array(weights + rest), final.astype(np.float32), gap

    return _replaced(svm, labels, order, solve)


def _settle(duals: Duals, n_new: int, rng: np.random.Generator) -> None:
    """Sweep over the first ``n_new`` documents, then over all, until no step is large."""
    n = len(duals.A)
    for _ in range(_FIRST):
        duals.sweep(rng.permutation(n_new), _STILL)
    for _ in range(_SWEEPS):
        order = rng.permutation(n)
        moving, farthest = duals.sweep(order, _STILL)
        if farthest < _CALM:
            break
        at_start = farthest
        for _ in range(_INNER):
            if moving == 0 or farthest < _SHRUNK * at_start:
                break
            order = rng.permutation(order[:moving])
            moving, farthest = duals.sweep(order, _STILL)


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

    def solve(first: int) -> _Solved:
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
        weights = spread(weights, terms, X.shape[1])
        bias = W[-1, : len(block)] - svm.rare_bonus * np.log(counts[block])
        return weights, bias, gap

    return _replaced(svm, labels, order, solve)


def _replaced(
    svm: OneVsAllSVM,
    labels: NDArray[np.int64],
    order: NDArray[np.int64],
    solve: Callable[[int], _Solved],
) -> OneVsAllSVM:
    """The SVM with labels that ``solve`` gives block by block in this order; others without any."""
    solved = list(map_in_threads(solve, range(0, len(order), _WIDE), svm.n_threads))
    others = np.setdiff1d(np.arange(len(labels)), order)
    none = csr_array((len(others), svm.weights_.shape[1]), dtype=np.float32)
    weights = csr_array(vstack([*(w for w, _, _ in solved), none], format="csr"))
    weights.sort_indices()
    bias = np.concatenate([*(b for _, b, _ in solved), np.full(len(others), -np.inf)])
    gap = np.concatenate([*(g for _, _, g in solved), np.zeros(len(others))])
    return _with(svm, labels[np.concatenate([order, others])], weights, bias, gap)


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
