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

# Of the documents of the fit, so many are gone through with those of the feedback. On EURLEX57K
# (1,403 labels, 22,500 documents of the fit and 2,046 of feedback) P@5 of the SVM alone on the next
# 2,046 is 69.8 then, in 1.3 s, and 69.9 where it is solved on all documents, in 6.7 s.
_SOME = 6_000
# So few are solved again. With 3,000 documents of TIB-en `depl learn` takes 3.2 s instead of 4.6,
# and P@5 on 3,000 others is 20.7 either way; on EURLEX57K 2.1 s and 2.2, and 56.5 and 56.6.
_FEW = 2_000
# How little is no change, and when to stop, as in ``solve_block``: for labels of few and of many
# documents. With the latter for all labels, P@5 on TIB-en after two portions is 0.2 points lower;
# with the former for all, it is the same on EURLEX57K, and the SVM takes twice the time.
_NEAR_TIGHT, _NEAR_LOOSE = (0.01, 0.5), (0.03, 1.0)
_FIRST, _SWEEPS, _AGAIN = 2, 8, 3  # sweeps over new documents, all, and those that changed


def take_in(
    svm: OneVsAllSVM,
    fitted: OneVsAllSVM,
    n_fitted: int,
    labels: NDArray[np.int64],
    X: csr_array,
    Y: csr_array,
    altered: NDArray[np.int64],
) -> OneVsAllSVM:
    """The SVM with some labels solved for all documents, near their weights from the fit.

    The fit's weights of a label are the optimum for the fit's documents. So near them the loss of
    these documents is known from its curvature, and a sample of them has nearly the curvature of
    all; only the documents of the feedback are gone through completely. From these weights, two or
    three sweeps over 8,000 documents do what takes five to ten over all 24,500 of EURLEX57K from
    the beginning. It begins with the fit's weights every time: from those of the last time, whose
    small weights are dropped and whose sample was another, PSP@5 was 63.9 instead of 64.4 after the
    second portion.

    Parameters
    ----------
    svm : OneVsAllSVM
        What is known now; other labels stay as they are there.
    fitted : OneVsAllSVM
        That of the fit, over the same terms.
    n_fitted : int
        How many documents it was fitted on: the first rows of X.
    labels : array of shape (n,)
        Which labels.
    X, Y : csr_array
        All documents; Y has a column for each of ``labels``.
    altered : array of int
        Labels that documents of the fit carry, or do not carry, otherwise than then. They are
        solved from the beginning: the weights are no optimum for what is known now.
    """
    near = ~np.isin(labels, altered)
    new = np.arange(n_fitted, X.shape[0])
    if svm.loss != "squared_hinge" or svm.solver != "one-vs-all":
        near[:] = False  # the weights do not tell the dual variables, or not of all documents
    if n_fitted <= _FEW or not len(new):
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

    rng = np.random.default_rng([svm.seed, n_fitted])
    drawn = np.sort(rng.permutation(n_fitted)[:_SOME])
    rows = np.concatenate([new, drawn])
    of_old = np.arange(len(new), len(rows))
    before = counts - np.asarray(Y[new].sum(axis=0)).ravel()
    X, Y = csr_array(X[rows]), csr_array(Y[rows])
    carriers = column_counts(X)
    terms = np.argsort(-carriers, kind="stable")[: np.count_nonzero(carriers)]
    place = np.full(X.shape[1], -1)
    place[terms] = np.arange(len(terms))
    shape = (len(rows), len(terms))
    X = csr_array((X.data, place[X.indices].astype(np.int32), X.indptr), shape=shape)
    X.sort_indices()
    documents = Rows(X)
    # Nobody carries a label without weights: then all documents are at -1.
    bias = np.where(np.isfinite(fitted.bias_), fitted.bias_, -1)[labels]
    bias += svm.rare_bonus * np.log(np.maximum(before, 1))

    def solve(first: int) -> _Solved:
        block = order[first : first + _WIDE]
        rng = np.random.default_rng([svm.seed, first])
        own = csr_array(fitted.weights_[labels[block]])
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
            weight=n_fitted / len(drawn),
        )
        tight = counts[block].max() < _MANY
        _settle(duals, len(new), rng, *(_NEAR_TIGHT if tight else _NEAR_LOOSE))
        weights = spread(
            cull_small(duals.W, np.arange(len(terms)), len(block), svm.cull), terms, own.shape[1]
        )
        # Terms that none of these documents has keep their weights.
        rest = csr_array(
            (np.where(here, np.float32(0), own.data), own.indices, own.indptr), own.shape
        )
        rest.eliminate_zeros()
        gap = fitted.gap_[labels[block]]
        final = duals.W[-1, : len(block)] - svm.rare_bonus * np.log(counts[block])
        return csr_array(weights + rest), final.astype(np.float32), gap

    return _replaced(svm, labels, order, solve)


def _settle(duals: Duals, n_new: int, rng: np.random.Generator, still: float, calm: float) -> None:
    """Sweep over the first ``n_new`` documents, then over all, until no step is large."""
    n = len(duals.A)
    for _ in range(_FIRST):
        duals.sweep(rng.permutation(n_new), still)
    for _ in range(_SWEEPS):
        order = rng.permutation(n)
        moving, farthest = duals.sweep(order, still)
        if farthest < calm:
            break
        duals.sweep_again(order[:moving], farthest, rng, still=still, most=_AGAIN)


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


def with_documents(X: csr_array, n: int, places: NDArray[np.int64], rows: csr_array) -> csr_array:
    """The training documents' vectors with those of other texts; n documents in all."""
    if np.array_equal(places, np.arange(X.shape[0], n)):  # nearly always, and half the copies
        return csr_array(vstack([X, rows], format="csr"))
    room = csr_array((n - X.shape[0], X.shape[1]), dtype=X.dtype)
    return with_rows(csr_array(vstack([X, room], format="csr")), places, rows)
