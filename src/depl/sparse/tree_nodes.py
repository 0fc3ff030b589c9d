"""The nodes of a label tree: which documents belong to them, and their SVMs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack

from depl.sparse.duals import Loss, Rows, solve_block
from depl.sparse.svm import cull_small, spread
from depl.sparse.tree_shape import Shape, own_terms

# Weaker than those of one-vs-all: on 1,500 documents of EURLEX57K and TIB-en no score is lower by
# more than 0.2 points, and solving takes a third less time.
_STILL = 2e-2  # a document with a smaller step is skipped until the next full sweep
_CALM = 0.5  # check the gap once no document changes by more than this


@dataclass(frozen=True)
class Nodes:
    """What the nodes of a level have in common when they are solved."""

    X: csr_array
    members: csc_array  # documents x (nodes, then labels in the order of the tree)
    learnt: csc_array  # documents x nodes of the level: on which documents each is solved
    first: int  # the first node of the level
    children: NDArray[np.int64]
    loss: Loss
    C: float
    cull: float
    tol: float
    seed: int


def members(Y: csr_array, shape: Shape) -> csc_array:
    """Which document carries a label below each node; all are below the root. Labels come last."""
    below = csc_array(Y.astype(bool)[:, shape.labels])
    levels, first, last = [below], shape.n_nodes, len(shape.children) - 1 + len(shape.labels)
    while first > 1:  # the parents of the nodes from first to last
        parent = np.searchsorted(shape.children, np.arange(first, last), side="right") - 1
        top = int(parent[0])
        join = csr_array(
            (np.ones(len(parent), bool), (np.arange(len(parent)), parent - top)),
            shape=(len(parent), first - top),
        )
        below = csc_array(below @ join)
        levels.insert(0, below)
        first, last = top, first
    root = csc_array(np.ones((Y.shape[0], 1), bool))
    return csc_array(hstack([root, *levels[1:]] if first == 0 else [root, *levels], format="csc"))


def solve_node(
    nodes: Nodes, node: int
) -> tuple[csr_array, NDArray[np.float32], NDArray[np.float32]]:
    """Solve the children of a node on its documents; returns weights, biases and gaps."""
    first, last = int(nodes.children[node]), int(nodes.children[node + 1])
    if last - first == 1:  # no choice
        nothing = csr_array((1, nodes.X.shape[1]), dtype=np.float32)
        return nothing, np.ones(1, np.float32), np.zeros(1, np.float32)
    below, learnt, column = nodes.members, nodes.learnt, node - nodes.first
    documents = np.sort(learnt.indices[learnt.indptr[column] : learnt.indptr[column + 1]])
    X, terms, place = own_terms(nodes.X, documents)
    ends = below.indptr[first : last + 1]
    rows = np.searchsorted(documents, below.indices[ends[0] : ends[-1]])
    columns = np.repeat(np.arange(last - first), np.diff(ends))
    carried = (np.ones(len(rows), bool), (rows, columns))
    Y = csr_array(carried, shape=(len(documents), last - first))
    rng = np.random.default_rng([nodes.seed, node])
    W, gap = solve_block(
        Rows(X),
        Y,
        rng,
        loss=nodes.loss,
        C=nodes.C,
        tol=nodes.tol,
        still=_STILL,
        calm=_CALM,
    )
    weights = cull_small(W, place, last - first, nodes.cull)
    bias = W[-1, : last - first].copy()  # a view would keep all of W in memory
    return spread(weights, terms, nodes.X.shape[1]), bias, gap
