"""The leaves of many rows against a plain walk down the trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.core.errors import DeplError
from depl.fusion.leaves import MOST_LEAVES
from depl.fusion.trees import Trees

GRID = np.array([-1.5, -1.0, 0.0, 0.25, 1.0], np.float32)  # thresholds and values meet there


def grown(rng, n_leaves, n_features):
    """The columns of a tree that was split at random, with as many leaves."""
    nodes, leaves = [[-1, 0.0, False, 0, 0, rng.normal()]], [0]
    while len(leaves) < n_leaves:
        at = leaves.pop(rng.integers(len(leaves)))
        threshold = rng.choice([*GRID, -np.inf, np.inf, rng.normal()])
        children = len(nodes), len(nodes) + 1
        nodes[at] = [rng.integers(n_features), threshold, rng.random() < 0.5, *children, 0.0]
        nodes += [[-1, 0.0, False, 0, 0, rng.normal()] for _ in children]
        leaves += children
    return nodes


def made(rng, sizes, n_features):
    trees = [grown(rng, size, n_features) for size in sizes]
    roots = np.cumsum([0, *map(len, trees)])[:-1]
    for root, tree in zip(roots, trees, strict=True):
        for node in tree:
            node[3], node[4] = (node[3] + root, node[4] + root) if node[0] >= 0 else (0, 0)
    columns = zip(*(node for tree in trees for node in tree), strict=True)
    kinds = (np.int32, float, bool, np.int32, np.int32, float)
    arrays = [np.array(x, kind) for x, kind in zip(columns, kinds, strict=True)]
    return Trees(roots.astype(np.int32), *arrays, np.array([rng.normal()]))


def walked(trees, x):
    total = float(trees.baseline[0])
    for node in trees.roots:
        while trees.feature[node] >= 0:
            number = float(x[trees.feature[node]])
            left = trees.missing_left[node] if np.isnan(number) else number <= trees.threshold[node]
            node = trees.left[node] if left else trees.right[node]
        total += float(trees.value[node])
    return total


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, MOST_LEAVES), max_size=6),
    n=st.integers(0, 9),
)
def test_every_row_gets_what_a_walk_adds_up(seed, sizes, n):
    rng = np.random.default_rng(seed)
    trees = made(rng, sizes, 3) if sizes else Trees.constant(0.5)
    X = rng.choice([*GRID, np.float32(np.nan), np.float32(rng.normal())], (n, 3))
    X = X.astype(np.float32)
    assert trees.log_odds(X).tolist() == [walked(trees, x) for x in X]


@pytest.mark.parametrize("n_leaves", [15, 16, 17, 32, 33, 64])
def test_trees_at_the_limits_of_a_number(n_leaves):
    rng = np.random.default_rng(n_leaves)
    trees = made(rng, [n_leaves] * 20, 4)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    assert trees.log_odds(X).tolist() == [walked(trees, x) for x in X]


def test_a_tree_with_too_many_leaves():
    trees = made(np.random.default_rng(0), [3, MOST_LEAVES + 1], 2)
    with pytest.raises(DeplError, match="more than 64 leaves"):
        trees.log_odds(np.zeros((1, 2), np.float32))
