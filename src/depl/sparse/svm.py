"""One-vs-all linear SVM for many labels (the sparse classifier of section 3.2 of the paper).

For every label l with at least one training document this minimises::

    1/2 |w|^2 + C sum_i loss(1 - y_i (w . x_i + b)),   loss(z) = max(0, z)^2  or  max(0, z)

where b is the weight of a constant feature of value 1, so it is regularised like the rest (that is
liblinear's ``-s 1 -B 1`` and ``-s 3 -B 1``). Labels are solved in blocks of 64 by dual coordinate
descent (``depl.sparse.duals``), until an exact check of every label's duality gap says so. A block
depends only on its labels and the seed, so neither the number of threads nor that of machines
changes the result.

Two corrections follow the optimisation, both chosen on slices of EURLEX57K's and TIB-en's training
documents, where each raised P, PSP and tail macro-F1 together: small weights are noise and are
dropped, and the scores of rare labels, whose few positives cannot pull w far against the
regulariser, are raised against those of common ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from depl.core.errors import CorpusError, NotFittedError, RunError
from depl.core.executor import Executor, LocalExecutor
from depl.core.progress import track
from depl.core.ranking import Ranking
from depl.core.scratch import GrowingMatrix, column_counts, portions
from depl.core.storage import read_settings, write_json
from depl.core.tensors import read_tensors, write_tensors
from depl.sparse import _kernels
from depl.sparse.chunks import Chunk, rank_in_chunks
from depl.sparse.duals import (
    MOST_SWEEPS,
    Compressed,
    Loss,
    Rows,
    by_column,
    solve_block,
    unwritable,
)

Solver = Literal["one-vs-all", "tree"]

_SETTINGS = ("loss", "C", "cull", "rare_bonus", "tol", "seed")

# Labels per block. The wider, the less time is spent iterating over a document's terms; beyond 64
# labels (EURLEX57K: 8.5 MB of weights) a block exceeds the cache, and 128 are no faster per label.
# Few labels are split into narrower blocks, so that no core waits long for another.
_WIDE, _NARROW = 64, 32
_FEW = 1_000


class OneVsAllSVM:
    """One linear SVM per label, with sparse weights.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        The paper's is the hinge; its square is what most linear solvers use.
    C : float
        Weight of the loss against the regulariser.
    cull : float
        Weights smaller than this in absolute value are dropped.
    rare_bonus : float
        A label with n training documents scores w . x + b - rare_bonus ln n; 0 is the plain SVM.
    tol : float
        Each label is solved until its relative duality gap is below this: its objective is then
        within this share of the optimum, whatever the optimum is.
    seed : int
        For the order in which documents are visited.
    n_threads : int or None
        None means one per core. The result does not depend on it.

    Attributes
    ----------
    weights_ : csr_array of shape (n_labels, n_terms), float32
        Empty for labels without a training document.
    bias_ : array of shape (n_labels,), float32
        Bonus included; -inf for labels without a training document: the SVM cannot suggest them.
    gap_ : array of shape (n_labels,), float32
        The relative duality gap each label was left with; 0 for labels without weights.
    """

    solver: Solver = "one-vs-all"
    _slack = 1.0  # the gap that counts as solved, in ``tol``

    def __init__(
        self,
        *,
        loss: Loss = "squared_hinge",
        C: float = 0.7,
        cull: float = 0.05,
        rare_bonus: float = 0.025,
        tol: float = 1e-3,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.cull = cull
        self.rare_bonus = rare_bonus
        self.tol = tol
        self.seed = seed
        self.n_threads = n_threads
        self._turned: tuple[csr_array, Compressed] | None = None

    def fit(self, X: csr_array, Y: csr_array, executor: Executor | None = None) -> Self:
        """Solve every label; X is documents x terms, Y documents x labels.

        The blocks are solved by the executor; None: by ``n_threads`` threads.
        """
        if X.shape[0] != Y.shape[0]:
            raise CorpusError(f"X has {X.shape[0]} documents and Y has {Y.shape[0]}.")
        executor = executor or LocalExecutor(self.n_threads)
        by_label = Y.tocsc()
        counts = np.diff(by_label.indptr)
        order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        blocks = _blocks(order)
        problem = _Problem.of(self, X, by_label, blocks)
        self.bias_ = np.full(Y.shape[1], -np.inf, np.float32)
        self.gap_ = np.zeros(Y.shape[1], np.float32)
        rows: list[csr_array] = []
        solved = executor.map(_solve, problem, range(len(blocks)))
        for block, (weights, bias, gap) in zip(
            blocks, track(solved, "svm blocks", total=len(blocks)), strict=True
        ):
            self.bias_[block] = bias - self.rare_bonus * np.log(counts[block])
            self.gap_[block] = gap
            rows.append(weights)
        self.weights_ = _place_rows(rows, blocks, (Y.shape[1], X.shape[1]))
        return self

    def rank(self, X: csr_array, k: int, executor: Executor | None = None) -> Ranking:
        """The k best labels of every document, among those that have weights.

        The documents are ranked by the executor; None: by ``n_threads`` threads.
        """
        if not hasattr(self, "weights_"):
            raise NotFittedError(self)
        ranked = _Ranked(Rows(X), self._by_term(), unwritable(self.bias_), k)
        executor = executor or LocalExecutor(self.n_threads)
        return rank_in_chunks(_rank, ranked, X.shape[0], k, executor, "svm ranking")

    def unsolved(self) -> str:
        """How many labels stopped before they were solved, and how far; empty if none did."""
        tol = self.tol * self._slack
        far = self.gap_[self.gap_ > tol]
        if not len(far):
            return ""
        worst = f"by up to {far.max():.1%}" if np.isfinite(far.max()) else "how far is not known"
        return (
            f"{len(far):,} of {np.count_nonzero(np.isfinite(self.bias_)):,} labels are not solved "
            f"to within {tol:g} of their optimum after {MOST_SWEEPS} sweeps ({worst}); "
            f"a smaller C, or the loss squared_hinge, is easier to solve"
        )

    def with_labels(self, weights: csr_array) -> Self:
        """The same SVM with further labels, which have these weights, no bias and no gap.

        Where none of them has a weight, nothing is copied, nor transposed again.
        """
        svm, own = copy(self), self.weights_
        if weights.nnz:
            svm.weights_ = csr_array(vstack([own, weights], format="csr"))
        else:
            indptr = np.append(own.indptr, np.full(weights.shape[0], own.indptr[-1]))
            shape = (own.shape[0] + weights.shape[0], own.shape[1])
            arrays = own.data, own.indices, indptr.astype(own.indptr.dtype)
            svm.weights_ = csr_array(arrays, shape=shape)
            svm._turned = svm.weights_, self._by_term()
        none = np.zeros(weights.shape[0], np.float32)
        svm.bias_, svm.gap_ = np.append(self.bias_, none), np.append(self.gap_, none)
        return svm

    def over_other_terms(self, convert: Callable[[csr_array], csr_array]) -> Self:
        """The same SVM with all its weights converted: those of all labels are given at once."""
        svm = copy(self)
        svm.weights_ = convert(self.weights_)
        return svm

    def save(self, folder: Path) -> None:
        """Write weights, biases, duality gaps and the settings."""
        solved = {"weights": self.weights_, "bias": self.bias_, "gap": self.gap_}
        write_tensors(folder / "svm.safetensors", solved)
        write_json(folder / "svm.json", {name: getattr(self, name) for name in _SETTINGS})

    @classmethod
    def load(cls, folder: Path, n_threads: int | None = None) -> Self:
        """Read what ``save`` wrote."""
        svm = cls(**read_settings(folder / "svm.json", _SETTINGS), n_threads=n_threads)
        path = folder / "svm.safetensors"
        solved = read_tensors(path, "weights", "bias", "gap")
        svm.weights_, svm.bias_, svm.gap_ = solved["weights"], solved["bias"], solved["gap"]
        if not svm.weights_.shape[0] == len(svm.bias_) == len(svm.gap_):
            raise RunError(
                f"{path} is damaged: its weights, biases and gaps are of different numbers of "
                f"labels. Delete its folder and fit again."
            )
        return svm

    def _by_term(self) -> Compressed:
        """The weights term by term, as ranking reads them; transposed once per ``weights_``.

        Ranking a single text takes less time than transposing them.
        """
        if self._turned is None or self._turned[0] is not self.weights_:
            self._turned = self.weights_, by_column(self.weights_)
        return self._turned[1]


def _rearranged(X: csr_array, place: NDArray[np.int64]) -> csr_array:
    """The matrix with every column at another place."""
    moved = GrowingMatrix()
    for some in portions(X):
        columns = place[some.indices].astype(np.int32)
        rows = csr_array((some.data.copy(), columns, some.indptr), shape=some.shape)
        rows.sort_indices()
        moved.append(rows)
    return moved.whole(X.shape[1])


@dataclass(frozen=True)
class _Problem:
    """What all blocks of a fit have in common."""

    documents: Rows
    place: NDArray[np.int64]  # of each term in X among those of ``documents``
    by_label: csc_array
    blocks: Sequence[NDArray[np.int64]]
    loss: Loss
    C: float
    cull: float
    tol: float
    seed: int

    @classmethod
    def of(
        cls,
        svm: OneVsAllSVM,
        X: csr_array,
        by_label: csc_array,
        blocks: Sequence[NDArray[np.int64]],
    ) -> _Problem:
        # Terms from common to rare: the rows of W that are used most are then adjacent in the
        # cache, which makes a solve a sixth faster than in alphabetical order.
        place = np.argsort(np.argsort(-column_counts(X), kind="stable"))
        documents = Rows(_rearranged(X, place))
        settings = (svm.loss, svm.C, svm.cull, svm.tol, svm.seed)
        return cls(documents, place, by_label, blocks, *settings)


@dataclass(frozen=True)
class _Ranked:
    """What all chunks of a ranking have in common."""

    documents: Rows
    by_term: Compressed
    bias: NDArray[np.float32]
    k: int


def _rank(ranked: _Ranked, chunk: Chunk) -> Ranking:
    """The best labels of the documents of a chunk."""
    first, last = chunk
    out = Ranking.empty(last - first, ranked.k)
    _kernels.top_scores(
        *ranked.documents.arrays, first, last, *ranked.by_term, ranked.bias, out.indices, out.scores
    )
    return out


def _solve(
    problem: _Problem, number: int
) -> tuple[csr_array, NDArray[np.float32], NDArray[np.float32]]:
    """Solve the labels of a block; returns weights, biases and gaps."""
    Y = csr_array(problem.by_label[:, problem.blocks[number]])
    rng = np.random.default_rng([problem.seed, number])
    W, gap = solve_block(problem.documents, Y, rng, loss=problem.loss, C=problem.C, tol=problem.tol)
    bias = W[-1, : len(gap)].copy()  # a view would keep all of W in memory
    return cull_small(W, problem.place, len(gap), problem.cull), bias, gap


def _blocks(order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Distribute labels, given from common to rare, over blocks of about equal size.

    Labels of similar frequency share a block, so that rare ones do not wait for common ones. The
    most common ones, which take longest, are half a block, so that no core is left alone with them.
    """
    width = _WIDE if len(order) > _FEW else _NARROW
    first, rest = order[: width // 2], order[width // 2 :]
    n_blocks = -(-len(rest) // width)
    return [b for b in (first, *np.array_split(rest, max(1, n_blocks))) if len(b)]


def cull_small(
    W: NDArray[np.float32], place: NDArray[np.int64], n_labels: int, threshold: float
) -> csr_array:
    """Weights of at least this size (labels x terms); the row of each term in W is its place."""
    kept = _kernels.cull(W, place, n_labels, np.float32(threshold))
    return csr_array(kept, shape=(n_labels, len(place)))


def _place_rows(
    rows: Sequence[csr_array], blocks: Sequence[NDArray[np.int64]], shape: tuple[int, int]
) -> csr_array:
    """One matrix of all blocks' rows, each at the place of its label."""
    lengths = np.zeros(shape[0], np.int64)
    for weights, block in zip(rows, blocks, strict=True):
        lengths[block] = np.diff(weights.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], np.float32)
    for weights, block in zip(rows, blocks, strict=True):
        for r, label in enumerate(block):
            source = slice(weights.indptr[r], weights.indptr[r + 1])
            target = slice(indptr[label], indptr[label + 1])
            indices[target] = weights.indices[source]
            data[target] = weights.data[source]
    return csr_array((data, indices, indptr), shape=shape)


def spread(weights: csr_array, terms: NDArray[np.integer], n_terms: int) -> csr_array:
    """Weights of some terms as weights of all."""
    arrays = weights.data, terms[weights.indices].astype(np.int32), weights.indptr
    return csr_array(arrays, shape=(weights.shape[0], n_terms))
