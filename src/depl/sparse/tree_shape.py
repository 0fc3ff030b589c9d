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


def grow(vectors: csr_array, labels: NDArray[np.int64], seed: int, *, leaf: int = _LEAF) -> Shape:
    """The tree over these labels, whose vectors are the rows of a matrix.

    Examples
    --------
    >>> vectors = csr_array(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]], np.float32))
    >>> shape = grow(vectors, np.arange(4), seed=0, leaf=2)
    >>> shape.children.tolist(), sorted(map(sorted, shape.labels.reshape(2, 2).tolist()))
    ([1, 3, 5, 7], [[0, 2], [1, 3]])
    """
    rng = np.random.default_rng([seed, len(labels)])
    depth = max(0, int(np.ceil(np.log2(max(1, len(labels)) / leaf))))
    kept = set(range(depth, -1, -_HALVINGS)) - {0}
    groups, parents = [labels], [0]  # of each group, its number in the last level that was kept
    children, before = [1], 1
    for level in range(1, depth + 1):
        halves = [_halve(vectors, group, rng) for group in groups]
        groups = [half for pair in halves for half in pair]
        parents = [parent for parent in parents for _ in range(2)]
        if level in kept:
            counts = np.bincount(parents, minlength=before)
            children += (children[-1] + np.cumsum(counts)).tolist()
            parents, before = list(range(len(groups))), len(groups)
    children += (children[-1] + np.cumsum([len(group) for group in groups])).tolist()
    return Shape(np.array(children, np.int64), np.concatenate(groups))


def _halve(
    vectors: csr_array, group: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two halves of a group, each of similar labels."""
    own = csr_array(vectors[group])
    middle = len(group) // 2
    # From one label and the one that is least like it.
    first = own[[rng.integers(len(group))]].toarray()[0]
    difference = first - own[[int(np.argmin(own @ first))]].toarray()[0]
    order = np.argsort(-(own @ difference), kind="stable")
    for _ in range(_ITERATIONS):
        means = [np.asarray(own[half].sum(axis=0)).ravel() for half in np.split(order, [middle])]
        lengths = [max(float(np.linalg.norm(mean)), 1e-12) for mean in means]
        difference = (means[0] / lengths[0] - means[1] / lengths[1]).astype(np.float32)
        again = np.argsort(-(own @ difference), kind="stable")
        settled = set(again[:middle]) == set(order[:middle])
        order = again
        if settled:
            break
    return group[np.sort(order[:middle])], group[np.sort(order[middle:])]
