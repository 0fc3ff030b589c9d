"""PfastreXML (Jain, Prabhu and Varma, KDD 2016): trees that favour rare labels, and a re-ranking.

A tree splits the documents of a node in two so that the labels of each half, ranked by their weight
there, have the highest propensity-scored nDCG: sides and rankings are improved in turns. A sparse
linear separator (L1-regularised logistic regression) then learns the sides, and what it says splits
the node. A leaf keeps the propensity-weighted mean of its documents' labels. Trees are averaged.

Then every candidate is re-ranked by a classifier that needs few documents, the distance to the mean
of the label's documents::

    score(l) = alpha log P_trees(l) + (1 - alpha) log P_tail(l)
    P_tail(l) = 1 / (1 + exp(gamma |x - mean_l|^2))

Published settings: 50 trees, at most 10 documents a leaf, 100 labels a leaf, C = 1, alpha 0.8,
gamma 30, and the propensities of the field (A = 0.55, B = 1.5). As in the authors' program, DCG is
not divided by the best that a document could have, and the sides of a node have equal weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from depl.core.ranking import Ranking
from depl.core.workers import map_in_threads
from depl.evaluation.metrics import inverse_propensities

_ROUNDS = 100  # turns of sides and rankings, at most
_GAIN = 1e-6  # of the mean DCG of a document in one more turn, at least
_PASSES, _OFTEN = 60, 5  # over a node's terms, and how often over those without a weight
_NONE = -1


@numba.njit(nogil=True, cache=True)
def best_sides(indptr, labels, rows, weights, sides, place):  # type: ignore[no-untyped-def]
    """Move documents to the side where their labels rank higher, while that helps; in place.

    Both sides rank all labels of the node; those that a side does not have come last there.
    ``place`` is -1 for every label, before and after.
    """
    here = np.empty(len(weights), labels.dtype)
    n_labels = 0
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if place[labels[p]] < 0:
                place[labels[p]] = n_labels
                here[n_labels] = labels[p]
                n_labels += 1
    before = -1.0
    for _ in range(_ROUNDS):
        sums = np.zeros((2, n_labels))
        for i in range(len(rows)):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                sums[sides[i], place[labels[p]]] += weights[labels[p]]
        discounts = np.zeros((2, n_labels))
        quality = 0.0
        for side in range(2):
            order = np.argsort(-sums[side], kind="mergesort")
            for rank in range(n_labels):
                discounts[side, order[rank]] = 1.0 / np.log2(2.0 + rank)
                quality += discounts[side, order[rank]] * sums[side, order[rank]]
        for i in range(len(rows)):
            gain = 0.0
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                j = place[labels[p]]
                gain += weights[labels[p]] * (discounts[1, j] - discounts[0, j])
            if gain != 0.0:
                sides[i] = 1 if gain > 0 else 0
        if quality / len(rows) - before < _GAIN:
            break
        before = quality / len(rows)
    place[here[:n_labels]] = -1


@numba.njit(nogil=True, cache=True)
def separator(indptr, terms, values, rows, sides, place, C):  # type: ignore[no-untyped-def]
    """L1-regularised logistic regression of the sides; terms, their weights, and the offset.

    A document counts C over the share of its side. Coordinate descent with the bound 1/4 on the
    curvature needs no line search. ``place`` is -1 for every term, before and after.
    """
    seen = 0
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            if place[terms[p]] < 0:
                place[terms[p]] = seen
                seen += 1
    used = np.empty(seen, np.int64)
    starts = np.zeros(seen + 1, np.int64)
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            used[place[terms[p]]] = terms[p]
            starts[place[terms[p]] + 1] += 1
    starts = np.cumsum(starts)
    fill = starts[:-1].copy()
    document = np.empty(starts[-1], np.int32)
    value = np.empty(starts[-1], values.dtype)
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = place[terms[p]]
            document[fill[j]], value[fill[j]] = i, values[p]
            fill[j] += 1
    place[used] = -1
    sign = 2.0 * sides - 1.0
    share = sides.sum() / len(rows)
    cost = np.empty(len(rows))
    for i in range(len(rows)):
        cost[i] = C / max(share if sides[i] == 1 else 1.0 - share, 1e-12)
    bend = np.full(seen, 1e-12)  # the bound on a term's curvature
    for j in range(seen):
        for p in range(starts[j], starts[j + 1]):
            bend[j] += 0.25 * cost[document[p]] * value[p] * value[p]
    margin = np.zeros(len(rows))
    pull = 0.5 * cost * sign  # minus the slope of a document's loss: changes with its margin alone
    weight = np.zeros(len(used))
    offset = 0.0
    for turn in range(_PASSES):
        every = turn % _OFTEN == 0  # else only the terms that have a weight: few, by the L1 norm
        step = pull.sum() / (0.25 * cost.sum())
        offset += step
        margin += step
        pull = cost * sign / (1.0 + np.exp(sign * margin))
        largest = abs(step)
        for j in range(len(used)):
            if not every and weight[j] == 0.0:
                continue
            slope = 0.0
            for p in range(starts[j], starts[j + 1]):
                slope -= pull[document[p]] * value[p]
            wanted = weight[j] - slope / bend[j]
            shrunk = max(abs(wanted) - 1.0 / bend[j], 0.0) * np.sign(wanted)
            step = shrunk - weight[j]
            if step != 0.0:
                weight[j] = shrunk
                largest = max(largest, abs(step))
                for p in range(starts[j], starts[j + 1]):
                    i = document[p]
                    margin[i] += step * value[p]
                    pull[i] = cost[i] * sign[i] / (1.0 + np.exp(sign[i] * margin[i]))
        if every and largest < 1e-2:
            break
    kept = np.flatnonzero(weight)
    return used[kept], weight[kept], offset, margin


@numba.njit(nogil=True, cache=True)
def _descend(x, children, offsets, indptr, terms, weights):  # type: ignore[no-untyped-def]
    """The leaf of a document, given dense; as minus one less than its number."""
    node = 0
    while node >= 0:
        score = offsets[node]
        for p in range(indptr[node], indptr[node + 1]):
            score += weights[p] * x[terms[p]]
        node = children[node, 1 if score > 0 else 0]
    return -node - 1


@dataclass
class Tree:
    """Nodes with two children each (a leaf i is the child -i - 1), and leaves with labels."""

    children: list[list[int]] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)
    terms: list[NDArray[np.int64]] = field(default_factory=list)
    weights: list[NDArray[np.float64]] = field(default_factory=list)
    leaves: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = field(default_factory=list)

    def arrays(self) -> tuple[Any, ...]:
        """The nodes as ``_descend`` takes them."""
        sizes = [len(x) for x in self.terms]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        terms = np.concatenate([np.empty(0, np.int64), *self.terms])
        weights = np.concatenate([np.empty(0), *self.weights])
        children = np.array(self.children, np.int64).reshape(-1, 2)
        return children, np.array(self.offsets), indptr, terms, weights


class PfastreXML:
    """The ensemble and the re-ranking.

    Parameters
    ----------
    trees, leaf_documents, leaf_labels, C, alpha, gamma
        As published.
    seed : int
        Decides where documents start: at random sides.
    n_threads : int or None
        Trees that grow at the same time; None means one per core.
    """

    def __init__(
        self,
        *,
        trees: int = 50,
        leaf_documents: int = 10,
        leaf_labels: int = 100,
        C: float = 1.0,
        alpha: float = 0.8,
        gamma: float = 30.0,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.trees, self.leaf_documents, self.leaf_labels = trees, leaf_documents, leaf_labels
        self.C, self.alpha, self.gamma = C, alpha, gamma
        self.seed, self.n_threads = seed, n_threads

    def fit(self, X: csr_array, Y: csr_array) -> PfastreXML:
        """Grow the trees, and average the documents of every label."""
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        self.inverse_ = inverse_propensities(counts, Y.shape[0])
        self.shape_ = Y.shape[1], X.shape[1]
        # The order in which trees are ready does not matter: each has a seed of its own.
        grown = map_in_threads(lambda t: self._grow(X, Y, t), range(self.trees), self.n_threads)
        self.trees_ = list(grown)
        share = diags_array(1.0 / np.maximum(counts, 1))
        self.means_ = csr_array(share @ Y.T.astype(np.float64) @ X)
        self.lengths_ = np.asarray(self.means_.multiply(self.means_).sum(axis=1)).ravel()
        return self

    def _grow(self, X: csr_array, Y: csr_array, number: int) -> Tree:
        rng = np.random.default_rng([self.seed, number])
        tree, places = Tree(), [np.full(n, _NONE) for n in self.shape_]
        todo = [(np.arange(Y.shape[0]), _NONE, 0)]
        while todo:
            rows, parent, side = todo.pop()
            large = len(rows) > self.leaf_documents
            split = self._split(X, Y, rows, rng, places) if large else None
            if split is None:
                tree.leaves.append(self._leaf(Y, rows))
                name = -len(tree.leaves)
            else:
                halves, terms, weights, offset = split
                name = len(tree.children)
                tree.children.append([0, 0])
                tree.offsets.append(offset)
                tree.terms.append(terms)
                tree.weights.append(weights)
                todo += [(half, name, s) for s, half in enumerate(halves)]
            if parent != _NONE:
                tree.children[parent][side] = name
        return tree

    def _split(
        self,
        X: csr_array,
        Y: csr_array,
        rows: NDArray[np.int64],
        rng: np.random.Generator,
        places: list[NDArray[np.int64]],
    ) -> tuple[Any, ...] | None:
        """Both halves and the separator; None where it keeps all documents together."""
        sides = rng.integers(0, 2, len(rows))
        best_sides(Y.indptr, Y.indices, rows, self.inverse_, sides, places[0])
        terms, weights, offset, margin = separator(
            X.indptr, X.indices, X.data, rows, sides, places[1], self.C
        )
        right = margin > 0
        if right.all() or not right.any():
            return None
        return (rows[~right], rows[right]), terms, weights, offset

    def _leaf(
        self, Y: csr_array, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The labels of a leaf with the most weight, and their weights."""
        labels, carried = np.unique(Y[rows].indices, return_counts=True)
        weights = carried * self.inverse_[labels] / len(rows)
        best = np.argsort(-weights, kind="stable")[: self.leaf_labels]
        return labels[best].astype(np.int64), weights[best]

    def rank(self, X: csr_array, k: int) -> Ranking:
        """The k best labels of every document."""
        out = Ranking.empty(X.shape[0], k)
        nodes = [tree.arrays() for tree in self.trees_]
        x, found = np.zeros(self.shape_[1]), np.zeros(self.shape_[0])
        for i in range(X.shape[0]):
            here = slice(X.indptr[i], X.indptr[i + 1])
            x[X.indices[here]] = X.data[here]
            for tree, arrays in zip(self.trees_, nodes, strict=True):
                leaf = _descend(x, *arrays) if len(arrays[0]) else 0
                labels, weights = tree.leaves[leaf]
                found[labels] += weights / self.trees
            labels = np.flatnonzero(found)
            far = self._distances(labels, x, float(X.data[here] @ X.data[here]))
            tail = -np.logaddexp(0.0, self.gamma * far)
            scores = self.alpha * np.log(found[labels]) + (1 - self.alpha) * tail
            best = np.argsort(-scores, kind="stable")[:k]
            out.indices[i, : len(best)] = labels[best]
            out.scores[i, : len(best)] = scores[best]
            found[labels], x[X.indices[here]] = 0.0, 0.0
        return out

    def _distances(
        self, labels: NDArray[np.int64], x: NDArray[np.float64], length: float
    ) -> NDArray[np.float64]:
        """Squared distances of a document to the means of some labels."""
        found: NDArray[np.float64] = length + self.lengths_[labels] - 2 * (self.means_[labels] @ x)
        return found
