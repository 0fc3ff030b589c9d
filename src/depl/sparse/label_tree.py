"""The SVM of many labels over a tree, where one-vs-all would cost documents x labels.

Every node of a tree over the labels (``depl.sparse.tree_shape``) has an SVM per child, which is a
node of the next level or a label. It is solved on the node's own documents, those that carry a
label below it, and on those that the levels above take to it by mistake: each document goes to the
ten nodes that are likeliest for it. So the negatives of a label are the documents that may be
mistaken for its own, and the cost grows with documents x ln(labels), not with documents x labels.

A child with the score s has, given its parent, the probability exp(-max(0, 1 - s)^2), as usual for
a squared hinge. The best labels are found by a beam search for the likeliest nodes. A label's score
is the logarithm of its own probability and a tenth of that of its path: since its negatives are
those that come to its node, its own SVM knows most. On 1,500 documents of EURLEX57K that gives
P@1 52.7 and P@5 32.6 (one-vs-all: 53.0 and 32.6), where the whole path gives 50.2 and 29.7, and
documents with a label below the node alone 47.4 and 29.4; on TIB-en 19.3 and 8.6 (19.5 and 8.8)
against 17.1 and 6.8. These dev documents also decided on the tenth and the ten, so the figures are
a little too good. A label's own SVM gives its keywords and explanations, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from depl.core.errors import CorpusError, NotFittedError, RunError
from depl.core.executor import Executor, LocalExecutor
from depl.core.progress import track
from depl.core.ranking import Ranking
from depl.core.tensors import read_tensors, write_tensors
from depl.sparse import _tree_kernels
from depl.sparse.chunks import Chunk, rank_in_chunks
from depl.sparse.duals import Rows, unwritable
from depl.sparse.svm import OneVsAllSVM, Solver
from depl.sparse.tree_nodes import Nodes, members, solve_node
from depl.sparse.tree_shape import Shape, grow, label_vectors

_FILE = "tree.safetensors"
_COSTLY = 4e11  # terms of all documents x labels: some 20 minutes of a core by one-vs-all
_MANY = 4_000  # labels; with fewer, the nodes of a tree together are not much less work
# Nodes of a level that are followed. On 3,000 held-out training documents of TIB-en 20, 40 and 80
# gave 29.59, 29.87 and 30.06 PSP@5; all nodes gave 30.04.
_BEAM = 80
_CONFUSED = 10  # nodes of a level that a training document is taken to, beside its own
_SHARE = 0.1  # of the path's log probability in a label's score

_Chunks = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def choose_solver(X: csr_array, Y: csr_array) -> Solver:
    """A tree where one-vs-all costs too much; X is documents x terms, Y documents x labels."""
    n_labels = np.count_nonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    return "tree" if n_labels > _MANY and X.nnz * n_labels > _COSTLY else "one-vs-all"


def linear_model(
    solver: Solver = "one-vs-all",
    **settings: Any,  # noqa: ANN401 - whatever OneVsAllSVM takes
) -> OneVsAllSVM:
    """The SVM to fit: one-vs-all or over a tree."""
    return LabelTreeSVM(**settings) if solver == "tree" else OneVsAllSVM(**settings)


def load_linear(folder: Path, n_threads: int | None = None) -> OneVsAllSVM:
    """Read what either of them has saved."""
    kind = LabelTreeSVM if (folder / _FILE).exists() else OneVsAllSVM
    return kind.load(folder, n_threads)


class LabelTreeSVM(OneVsAllSVM):
    """A linear SVM per label and per node of a tree over the labels, with sparse weights.

    It takes the parameters of ``OneVsAllSVM``, and has its attributes: they are about labels.

    Attributes
    ----------
    shape_ : Shape
        The tree, over the labels with a training document.
    node_weights_ : csr_array of shape (n_nodes - 1, n_terms), float32
        Of all nodes but the root.
    node_bias_ : array of shape (n_nodes - 1,), float32
        Of all nodes but the root.
    """

    solver: Solver = "tree"
    beam = _BEAM
    _slack = 10.0  # a node is solved when its gap is below ten times ``tol``
    _chunked: tuple[csr_array, _Chunks] | None = None

    def fit(self, X: csr_array, Y: csr_array, executor: Executor | None = None) -> Self:
        """Grow the tree and solve every node; X is documents x terms, Y documents x labels.

        The nodes are solved by the executor; None: by ``n_threads`` threads.
        """
        if X.shape[0] != Y.shape[0]:
            raise CorpusError(f"X has {X.shape[0]} documents and Y has {Y.shape[0]}.")
        executor = executor or LocalExecutor(self.n_threads)
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        self.shape_ = shape = grow(label_vectors(X, Y), np.flatnonzero(counts), self.seed, executor)
        below = members(Y, shape)
        settings = (self.loss, self.C, self.cull, self.tol * self._slack, self.seed)
        rows: list[csr_array] = []
        biases: list[NDArray[np.float32]] = []
        gaps: list[NDArray[np.float32]] = []
        for first, last in shape.levels():
            learnt = csc_array(below[:, first:last])
            if first > 0:
                upper = shape.above(first)
                chunks = _arranged(_stacked(rows, X.shape[1]), upper.children)
                bias = np.concatenate(biases)
                found = _search(X, upper, chunks, bias, _CONFUSED, _CONFUSED, executor)
                taken = Ranking(found.indices, np.ones_like(found.scores)).to_csr(last - first)
                learnt = csc_array(learnt + taken.astype(bool))
            problem = Nodes(X, below, learnt, first, shape.children, *settings)
            solved = executor.map(solve_node, problem, range(first, last))
            for weights, bias, gap in track(solved, "svm nodes", total=last - first):
                rows.append(weights)
                biases.append(bias)
                gaps.append(gap)
        inner = shape.n_nodes - 1
        every, bias = _stacked(rows, X.shape[1]), np.concatenate(biases)
        self.node_weights_, self.node_bias_ = csr_array(every[:inner]), bias[:inner]
        back = np.full(Y.shape[1], len(shape.labels))
        back[shape.labels] = np.arange(len(shape.labels))
        none = csr_array((1, X.shape[1]), dtype=np.float32)
        self.weights_ = csr_array(csr_array(_stacked([every[inner:], none], X.shape[1]))[back])
        self.bias_ = np.full(Y.shape[1], -np.inf, np.float32)
        self.gap_ = np.zeros(Y.shape[1], np.float32)
        self.bias_[shape.labels] = bias[inner:] - self.rare_bonus * np.log(counts[shape.labels])
        self.gap_[shape.labels] = np.concatenate(gaps)[inner:]
        return self

    def rank(self, X: csr_array, k: int, executor: Executor | None = None) -> Ranking:
        """The k best labels of every document that the beam search finds.

        The documents are ranked by the executor; None: by ``n_threads`` threads.
        """
        if not hasattr(self, "weights_"):
            raise NotFittedError(self)
        own = self.bias_[self.shape_.labels]
        bias = np.concatenate([self.node_bias_, own]).astype(np.float32)
        out = _search(
            X,
            self.shape_,
            self._chunks(),
            bias,
            self.beam,
            k,
            executor or LocalExecutor(self.n_threads),
        )
        return self._with_added(out, X, k)

    def over_other_terms(self, convert: Callable[[csr_array], csr_array]) -> Self:
        """The same SVM with all its weights converted."""
        svm = super().over_other_terms(convert)
        svm.node_weights_ = convert(self.node_weights_)
        return svm

    def save(self, folder: Path) -> None:
        """Write weights, biases, duality gaps, the tree and the settings."""
        super().save(folder)
        tree = {
            "children": self.shape_.children,
            "labels": self.shape_.labels,
            "weights": self.node_weights_,
            "bias": self.node_bias_,
        }
        write_tensors(folder / _FILE, tree)

    @classmethod
    def load(cls, folder: Path, n_threads: int | None = None) -> Self:
        """Read what ``save`` wrote."""
        svm = super().load(folder, n_threads)
        path = folder / _FILE
        tree = read_tensors(path, "children", "labels", "weights", "bias")
        svm.shape_ = shape = Shape(tree["children"], tree["labels"])
        svm.node_weights_, svm.node_bias_ = tree["weights"], tree["bias"]
        n, (n_labels, n_terms) = shape.n_nodes, svm.weights_.shape
        right = (
            n > 0
            and shape.children[0] == 1
            and shape.children[-1] == n + len(shape.labels)
            and bool((np.diff(shape.children) > 0).all())
            and svm.node_weights_.shape == (n - 1, n_terms)
            and len(svm.node_bias_) == n - 1
            and 0 <= shape.labels.min(initial=0) <= shape.labels.max(initial=0) < n_labels
        )
        if not right:
            raise RunError(
                f"{path} is damaged: it is no tree over the labels. Delete its folder and fit "
                f"again."
            )
        return svm

    def _chunks(self) -> _Chunks:
        """The weights as the beam search reads them; arranged once per ``weights_``."""
        if self._chunked is None or self._chunked[0] is not self.weights_:
            own = csr_array(self.weights_[self.shape_.labels])
            every = _stacked([self.node_weights_, own], own.shape[1])
            self._chunked = self.weights_, _arranged(every, self.shape_.children)
        return self._chunked[1]

    def _with_added(self, ranking: Ranking, X: csr_array, k: int) -> Ranking:
        """The ranking with the labels that were added to the run since, which are in no tree."""
        outside = np.isfinite(self.bias_)
        outside[self.shape_.labels] = False
        if not outside.any():
            return ranking
        added = np.flatnonzero(outside)
        scores = X @ self.weights_[added].T.toarray() + self.bias_[added]
        own = Ranking.from_scores(-(np.maximum(1 - scores, 0) ** 2), k)
        named = np.where(own.indices >= 0, added[own.indices], -1).astype(np.int32)
        return ranking.merged(Ranking(named, own.scores), k)


@dataclass(frozen=True)
class _Ranked:
    """What all chunks of a ranking have in common."""

    documents: Rows
    tree: tuple[NDArray[Any], ...]
    labels: NDArray[np.int64]
    beam: int
    k: int


def _search(
    X: csr_array,
    shape: Shape,
    chunks: _Chunks,
    bias: NDArray[np.float32],
    beam: int,
    k: int,
    executor: Executor,
) -> Ranking:
    """The k best labels of every document that a beam search finds."""
    X = X if X.has_sorted_indices else X.sorted_indices()
    tree = (unwritable(shape.children), *chunks, unwritable(bias))
    ranked = _Ranked(Rows(X), tree, unwritable(shape.labels), beam, k)
    return rank_in_chunks(_rank, ranked, X.shape[0], k, executor, "svm ranking")


def _rank(ranked: _Ranked, chunk: Chunk) -> Ranking:
    """The best labels of the documents of a chunk."""
    first, last = chunk
    out = Ranking.empty(last - first, ranked.k)
    children, chunks, terms, entries, places, values, bias = ranked.tree
    _tree_kernels.beam_search(
        *ranked.documents.arrays,
        first,
        last,
        children,
        chunks,
        terms,
        entries,
        places,
        values,
        bias,
        ranked.labels,
        ranked.beam,
        np.float32(_SHARE),
        out.indices,
        out.scores,
    )
    return out


def _arranged(weights: csr_array, children: NDArray[np.int64]) -> _Chunks:
    """Weights of all children, which follow the root, chunk by chunk and in it term by term."""
    child = np.repeat(np.arange(1, weights.shape[0] + 1), np.diff(weights.indptr))
    parent = np.searchsorted(children, child, side="right") - 1
    order = np.lexsort((child, weights.indices, parent))
    parent, term = parent[order], weights.indices[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(parent) != 0) | (np.diff(term) != 0)
    starts = np.flatnonzero(fresh)
    chunks = np.searchsorted(parent[starts], np.arange(len(children)))
    entries = np.append(starts, len(order)).astype(np.int64)
    places = (child[order] - children[parent]).astype(np.int32)
    found = (chunks, term[starts].astype(np.int32), entries, places, weights.data[order])
    one, two, three, four, five = map(unwritable, found)
    return one, two, three, four, five


def _stacked(rows: list[csr_array], n_terms: int) -> csr_array:
    """One matrix of the rows of several."""
    lengths = [np.diff(x.indptr) for x in rows]
    indptr = np.concatenate([[0], *lengths]).cumsum()
    data = np.concatenate([x.data for x in rows]).astype(np.float32, copy=False)
    indices = np.concatenate([x.indices for x in rows]).astype(np.int32, copy=False)
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_terms))
