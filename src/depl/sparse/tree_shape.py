"""A tree over labels: similar labels under one node, nodes of a level of about equal size.

Labels are halved, again and again, by spherical 2-means with clusters of equal size (as in Parabel
and PECOS), until no group has more than a hundred. Of these levels every fourth is kept, so that a
node has sixteen children: a shallower tree, of Bonsai's kind, loses fewer labels on the way down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from depl.core.executor import Executor, LocalExecutor
from depl.sparse import _tree_kernels
from depl.sparse.duals import unwritable

_LEAF = 100  # labels under one node, at most
_HALVINGS = 4  # between two levels that are kept
_ITERATIONS = 20  # of 2-means


@dataclass(frozen=True)
class Shape:
    """Nodes numbered level by level, the root being 0; after all nodes come the labels.

    Parameters
    ----------
    children : array of shape (n_nodes + 1,), int64
        Node i has the children ``children[i]`` to ``children[i + 1] - 1``.
    labels : array of shape (n_leaves,), int64
        Which label is the child ``n_nodes``, ``n_nodes + 1`` and so on.
    """

    children: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, without the labels."""
        return len(self.children) - 1

    def levels(self) -> Iterator[tuple[int, int]]:
        """The first node of each level and one past its last, from the root down."""
        first, last = 0, 1
        while first < self.n_nodes:
            yield first, last
            first, last = last, int(self.children[last])

    def above(self, first: int) -> Shape:
        """The tree down to the level that begins with this node, whose nodes are its labels."""
        return Shape(self.children[: first + 1], np.arange(int(self.children[first]) - first))


def label_vectors(X: csr_array, Y: csr_array) -> csr_array:
    """What a label is compared by: the sum of its documents' vectors, scaled to length 1."""
    summed = csr_array(Y.T.astype(np.float32) @ X)
    squares = np.asarray(summed.multiply(summed).sum(axis=1)).ravel()
    return csr_array(diags_array(1 / np.sqrt(np.maximum(squares, 1e-12))) @ summed)


def grow(
    vectors: csr_array,
    labels: NDArray[np.int64],
    seed: int,
    executor: Executor | None = None,
    *,
    leaf: int = _LEAF,
) -> Shape:
    """The tree over these labels, whose vectors are the rows of a matrix.

    Examples
    --------
    >>> vectors = csr_array(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]], np.float32))
    >>> shape = grow(vectors, np.arange(4), seed=0, leaf=2)
    >>> shape.children.tolist(), sorted(map(sorted, shape.labels.reshape(2, 2).tolist()))
    ([1, 3, 5, 7], [[0, 2], [1, 3]])
    """
    executor = executor or LocalExecutor(1)
    rng = np.random.default_rng([seed, len(labels)])
    depth = max(0, int(np.ceil(np.log2(max(1, len(labels)) / leaf))))
    kept = set(range(depth, -1, -_HALVINGS)) - {0}
    groups, parents = [labels], [0]  # of each group, its number in the last level that was kept
    children, before = [1], 1
    for level in range(1, depth + 1):
        tasks = [(group, int(rng.integers(len(group)))) for group in groups]
        halves = executor.map(_halve, vectors, tasks)
        groups = [half for pair in halves for half in pair]
        parents = [parent for parent in parents for _ in range(2)]
        if level in kept:
            counts = np.bincount(parents, minlength=before)
            children += (children[-1] + np.cumsum(counts)).tolist()
            parents, before = list(range(len(groups))), len(groups)
    children += (children[-1] + np.cumsum([len(group) for group in groups])).tolist()
    return Shape(np.array(children, np.int64), np.concatenate(groups))


def _halve(
    vectors: csr_array, task: tuple[NDArray[np.int64], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two halves of a group, each of similar labels; the label to begin with is given by number."""
    group, start = task
    own, terms, _ = own_terms(vectors, group)
    arrays = own.indptr.astype(np.int64), own.indices, own.data
    together = _tree_kernels.halve(*arrays, len(terms), start, _ITERATIONS)
    return group[together], group[~together]


def own_terms(
    X: csr_array, rows: NDArray[np.integer]
) -> tuple[csr_array, NDArray[np.int32], NDArray[np.int64]]:
    """Some rows over the terms that they have; these terms, and their columns.

    Columns go from common to rare: what is used most is adjacent in the cache.
    """
    arrays = X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data
    indptr, indices, data = map(unwritable, arrays)
    counts = _tree_kernels.count_terms(indptr, indices, rows, X.shape[1])
    terms = np.flatnonzero(counts).astype(np.int32)
    place = np.argsort(np.argsort(-counts[terms], kind="stable"))
    column = np.empty(X.shape[1], np.int32)
    column[terms] = place
    taken = _tree_kernels.take_rows(indptr, indices, data, rows, column)
    return csr_array(taken, shape=(len(rows), len(terms))), terms, place
