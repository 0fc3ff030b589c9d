"""Dual coordinate descent for a few dozen labels together: the solver of the SVMs.

Sweeps over the documents that still change, a sweep over all documents when those have converged,
and an exact check of every label's duality gap before the block counts as solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.scratch import portions
from depl.sparse import _kernels

_Any = NDArray[Any]
Loss = Literal["squared_hinge", "hinge"]
_Arrays = tuple[_Any, _Any, _Any, _Any, _Any, _Any, _Any]
Compressed = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]

_LINE = 16  # floats in a cache line; blocks are padded to whole lines
_STILL = 3e-3  # a document with a smaller step is skipped until the next full sweep
_CALM = 0.1  # check the gap once no document changes by more than this
_INNER = 0.3  # return to all documents when the largest change has shrunk to this share
_AGAIN = 10  # sweeps at most over the changing documents between two over all of them
MOST_SWEEPS = 60


class Rows:
    """A csr matrix as the kernels take it."""

    def __init__(self, X: csr_array) -> None:
        data = X.data.astype(np.float32, copy=False)
        self.arrays = kernel_arrays(X.indptr, X.indices, data)
        self.n_terms = int(X.shape[1])
        norms = np.concatenate([_squares(some) for some in portions(X)]) + 1.0  # 1: the bias term
        self.norms = unwritable(norms.astype(np.float32))


def _squares(X: csr_array) -> NDArray[np.float32]:
    """The squared length of each row."""
    data = X.data.astype(np.float32, copy=False)
    squares = csr_array((data * data, X.indices, X.indptr), shape=X.shape).sum(axis=1)
    return np.asarray(squares, np.float32).ravel()


def kernel_arrays(
    indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[np.float32]
) -> Compressed:
    """Row or column pointers, indices and values, of the types the kernels are compiled for."""
    wide, narrow = indptr.astype(np.int64), indices.astype(np.int32, copy=False)
    return unwritable(wide), unwritable(narrow), unwritable(data)


def by_column(matrix: csr_array) -> Compressed:
    """The matrix column by column, as the kernels take it."""
    turned = matrix.tocsc()
    return kernel_arrays(turned.indptr, turned.indices, turned.data)


def unwritable(array: NDArray[Any]) -> NDArray[Any]:
    """The array, not to be written to.

    What comes from another process through shared memory is so, too: the kernels are then compiled
    once, for both.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def solve_block(
    documents: Rows,
    Y: csr_array,
    rng: np.random.Generator,
    *,
    loss: Loss,
    C: float,
    tol: float,
    still: float = _STILL,
    calm: float = _CALM,
    ahead: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Solve labels together; returns weights and gaps.

    The weights are terms x labels, with the biases in the last row, and are padded with labels that
    nobody asked for. The documents that carry one of the labels are swept ``ahead`` times before
    the others are.
    """
    n_docs, n_labels = Y.shape
    duals = Duals.of(documents, Y, loss=loss, C=C)
    carriers = np.flatnonzero(np.diff(Y.indptr))
    for _ in range(ahead):
        duals.sweep(rng.permutation(carriers), still)
    gap = np.full(n_labels, np.inf)
    for _ in range(MOST_SWEEPS):
        order = rng.permutation(n_docs)
        moving, farthest = duals.sweep(order, still)
        if farthest < calm:
            gap = duals.gaps()[:n_labels]
            if gap.max() < tol:
                break
            calm, still = 0.7 * farthest, min(still, 0.05 * farthest)
        duals.sweep_again(order[:moving], farthest, rng, still=still, most=_AGAIN)
    return duals.W, gap.astype(np.float32)


@dataclass(frozen=True)
class Duals:
    """Labels that are solved together: weights and dual variables on their way to the optimum.

    Parameters
    ----------
    documents : Rows
        The documents.
    positives : two arrays
        Which document carries which of the labels, as row pointers and columns.
    W : array of shape (n_terms + 1, width), float32
        The weights, with the biases in the last row; padded to whole cache lines.
    A : array of shape (n_documents, width), float32
        The dual variables with the sign of y.
    loss, C
        As in ``OneVsAllSVM``.
    diagonal : array of shape (n_documents,), float32
        What the loss of each document adds to the diagonal of the dual problem.
    """

    documents: Rows
    positives: tuple[NDArray[np.int64], NDArray[np.int32]]
    W: NDArray[np.float32]
    A: NDArray[np.float32]
    loss: Loss
    C: float
    diagonal: NDArray[np.float32]

    @classmethod
    def of(cls, documents: Rows, Y: csr_array, *, loss: Loss, C: float) -> Duals:
        """All zero; Y is documents x labels."""
        width = -(-Y.shape[1] // _LINE) * _LINE
        W = np.zeros((documents.n_terms + 1, width), np.float32)
        A = np.zeros((Y.shape[0], width), np.float32)
        positives = (Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
        diagonal = np.full(Y.shape[0], _diagonal(loss, C))
        return cls(documents, positives, W, A, loss, C, diagonal)

    @classmethod
    def around(
        cls,
        documents: Rows,
        Y: csr_array,
        W: NDArray[np.float32],
        *,
        C: float,
        solved: NDArray[np.int64],
        weight: float,
    ) -> Duals:
        """Those of the squared hinge at weights that are the optimum for some of the documents.

        Parameters
        ----------
        documents, Y
            All documents, and their labels.
        W : array of shape (n_terms + 1, n_labels), float32
            The weights, with the biases in the last row.
        C : float
            As in ``OneVsAllSVM``.
        solved : array of int
            The documents that W is the optimum for, or a sample of them.
        weight : float
            How many documents each of them stands for.
        """
        duals = cls.of(documents, Y, loss="squared_hinge", C=C)
        duals.W[:, : W.shape[1]] = W
        duals.diagonal[solved] /= np.float32(weight)
        _kernels.recall(*duals._arrays, solved, duals.diagonal)
        return duals

    def sweep(self, order: NDArray[np.int64], still: float) -> tuple[int, float]:
        """Visit documents once; how many changed by more than ``still``, and the largest change.

        Those that did are moved to the front of ``order``.
        """
        upper = np.float32(np.inf if self.loss == "squared_hinge" else self.C)
        rest = (self.documents.norms, order, upper, self.diagonal, np.float32(still))
        moved = _kernels.sweep(*self._arrays, *rest)
        return int(moved[0]), float(moved[1])

    def sweep_again(
        self,
        order: NDArray[np.int64],
        farthest: float,
        rng: np.random.Generator,
        *,
        still: float,
        most: int,
    ) -> None:
        """Sweep over the documents that changed, until the changes are much smaller than at first.

        Parameters
        ----------
        order : array of int
            The documents that the last sweep changed by more than ``still``.
        farthest : float
            The largest change in that sweep.
        rng : Generator
            Shuffles the documents before every sweep.
        still, most
            As in ``sweep``; and how many sweeps at most.
        """
        enough = _INNER * farthest
        for _ in range(most):
            if not len(order) or farthest < enough:
                break
            order = rng.permutation(order)
            moving, farthest = self.sweep(order, still)
            order = order[:moving]

    def gaps(self) -> NDArray[np.float64]:
        """Each label's duality gap, as a share of its objective; where all documents count once."""
        squared = self.loss == "squared_hinge"
        rest = (np.float32(self.C), _diagonal(self.loss, self.C), squared)
        primal, dual = _kernels.check(*self._arrays, *rest)
        share: NDArray[np.float64] = (primal - dual) / primal
        return share

    @property
    def _arrays(self) -> _Arrays:
        return (*self.documents.arrays, *self.positives, self.W, self.A)


def _diagonal(loss: Loss, C: float) -> np.float32:
    return np.float32(0.5 / C if loss == "squared_hinge" else 0.0)
