"""The label tree against a brute-force product of probabilities, and against one-vs-all."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from depl.core.errors import CorpusError, NotFittedError, RunError
from depl.core.tensors import read_tensors, write_tensors
from depl.sparse import label_tree, tree_shape
from depl.sparse.label_tree import LabelTreeSVM, choose_solver, load_linear, members
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tree_shape import Shape, grow, label_vectors

N_LABELS = 60


@pytest.fixture(scope="module")
def problem() -> tuple[csr_array, csr_array]:
    """400 documents of words that their labels use; label 7 has none."""
    rng = np.random.default_rng(0)
    n_terms = 150
    typical = rng.integers(0, n_terms, size=(N_LABELS, 6))
    Y = np.zeros((400, N_LABELS), np.float32)
    X = np.zeros((400, n_terms), np.float32)
    for i in range(400):
        carried = rng.choice(N_LABELS, size=rng.integers(1, 4), replace=False)
        carried = carried[carried != 7]
        Y[i, carried] = 1
        for label in carried:
            X[i, rng.choice(typical[label], 4)] += 1
        X[i, rng.integers(0, n_terms, 5)] += 0.5
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return csr_array(X), csr_array(Y)


@pytest.fixture(scope="module", autouse=True)
def small_leaves():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_shape, "_HALVINGS", 2)
        patch.setattr(grow, "__kwdefaults__", {"leaf": 5})
        patch.setattr(label_tree, "_CONFUSED", 2)
        yield


@pytest.fixture(scope="module")
def tree(problem, small_leaves) -> LabelTreeSVM:
    return LabelTreeSVM(n_threads=1).fit(*problem)


def parents(shape: Shape) -> np.ndarray:
    """The parent of every node and label but the root, which has none."""
    found = np.full(shape.n_nodes + len(shape.labels), -1)
    for node in range(shape.n_nodes):
        found[shape.children[node] : shape.children[node + 1]] = node
    return found


def followed(tree: LabelTreeSVM, beam: int) -> LabelTreeSVM:
    """The same tree with another beam."""
    other = copy(tree)
    other.beam = beam
    return other


def test_every_label_with_a_document_is_once_in_a_tree_of_equal_depth(problem, tree):
    shape, above = tree.shape_, parents(tree.shape_)
    assert sorted(shape.labels) == [label for label in range(N_LABELS) if label != 7]
    assert (above[1:] >= 0).all()
    depths = set()
    for leaf in range(shape.n_nodes, shape.n_nodes + len(shape.labels)):
        depth, node = 0, leaf
        while node:
            depth, node = depth + 1, above[node]
        depths.add(depth)
    assert depths == {3}  # 59 labels: 16 groups of at most 5, and 4 groups of those
    assert sorted(np.diff(shape.children).tolist()) == [3] * 5 + [4] * 16


def test_halves_bring_together_what_is_alike():
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2, 40)
    kind = np.concatenate([kind, 1 - kind])  # as many of each
    X = np.zeros((80, 20), np.float32)
    for i, k in enumerate(kind):
        X[i, rng.choice(10, 5, replace=False) + 10 * k] = 1
    shape = grow(csr_array(X), np.arange(80), seed=0, leaf=40)
    first, second = np.split(kind[shape.labels], 2)
    assert {tuple(set(first)), tuple(set(second))} == {(0,), (1,)}


def test_members_are_the_documents_with_a_label_below(problem, tree):
    _, Y = problem
    shape, above, dense = tree.shape_, parents(tree.shape_), Y.toarray() > 0
    expected = np.zeros((Y.shape[0], len(above)), bool)
    expected[:, 0] = True
    for place, label in enumerate(shape.labels):
        node = shape.n_nodes + place
        while node > 0:
            expected[:, node] |= dense[:, label]
            node = above[node]
    np.testing.assert_array_equal(members(Y, shape).toarray(), expected)


def test_a_node_is_solved_on_its_documents_and_on_those_mistaken_for_them(problem, tree):
    X, Y = problem
    below, shape = members(Y, tree.shape_).toarray(), tree.shape_
    every = np.vstack([tree.node_weights_.toarray(), tree.weights_.toarray()[shape.labels]])
    # The root has four children; every document goes to its two likeliest and to its own.
    scores = X @ tree.node_weights_.toarray()[:4].T + tree.node_bias_[:4]
    likeliest = np.argsort(np.maximum(0, 1 - scores) ** 2, axis=1, kind="stable")[:, :2]
    learnt = below[:, :5].copy()
    for i, nodes in enumerate(likeliest):
        learnt[i, 1 + nodes] = True
    assert learnt[:, 1:].sum() > below[:, 1:5].sum()
    for node in range(5):
        rows = np.flatnonzero(learnt[:, node])
        c0, c1 = shape.children[node], shape.children[node + 1]
        own = csr_array(below[np.ix_(rows, np.arange(c0, c1))].astype(np.float32))
        expected = OneVsAllSVM(rare_bonus=0.0, tol=1e-5).fit(X[rows], own).weights_.toarray()
        found = every[c0 - 1 : c1 - 1]
        # Both are within their tolerances of the optimum, and small weights are dropped.
        np.testing.assert_allclose(found, expected, atol=0.09)
        assert np.abs(found - expected).mean() < 0.01


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_a_wide_beam_gives_the_product_of_probabilities(problem, tree, monkeypatch, share):
    monkeypatch.setattr(label_tree, "_SHARE", share)
    X, _ = problem
    shape, above = tree.shape_, parents(tree.shape_)
    weights = np.vstack([tree.node_weights_.toarray(), tree.weights_.toarray()[shape.labels]])
    bias = np.concatenate([tree.node_bias_, tree.bias_[shape.labels]])
    probability = np.exp(-(np.maximum(0, 1 - (X @ weights.T + bias)) ** 2))
    expected = np.zeros((X.shape[0], N_LABELS))
    for place, label in enumerate(shape.labels):
        node = above[shape.n_nodes + place]
        path = np.ones(X.shape[0])
        while node > 0:
            path *= probability[:, node - 1]
            node = above[node]
        expected[:, label] = probability[:, shape.n_nodes + place - 1] * path**share
    ranking = followed(tree, beam=N_LABELS).rank(X, N_LABELS)
    assert (np.diff(ranking.scores[:, :59], axis=1) <= 0).all()
    assert (ranking.indices[:, 59] == -1).all()
    found = np.zeros_like(expected)
    np.put_along_axis(found, ranking.indices[:, :59], np.exp(ranking.scores[:, :59]), axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # Of equal scores the label that comes first is first.
    same = np.diff(ranking.scores[:, :59], axis=1) == 0
    assert (np.diff(ranking.indices[:, :59], axis=1)[same] > 0).all()


def test_a_narrow_beam_follows_the_best_nodes_only(problem, tree):
    X, _ = problem
    one, all_of_them = (followed(tree, beam=n).rank(X, 1) for n in (1, N_LABELS))
    assert (one.scores <= all_of_them.scores).all()
    assert 0.3 < (one.indices == all_of_them.indices).mean() < 1
    assert (one.indices >= 0).all()


def test_it_suggests_about_what_one_vs_all_suggests(problem, tree):
    X, Y = problem
    ova = OneVsAllSVM().fit(X, Y)
    right = [
        np.take_along_axis(Y.toarray(), svm.rank(X, 1).indices, axis=1).mean()
        for svm in (ova, tree)
    ]
    assert right[1] > right[0] - 0.05


def test_the_same_bytes_whatever_the_number_of_threads(problem, tree, tmp_path: Path):
    LabelTreeSVM(n_threads=3).fit(*problem).save(tmp_path / "three")
    tree.save(tmp_path / "one")
    for name in ("svm.safetensors", "svm.json", "tree.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "three" / name).read_bytes()


def test_a_saved_tree_ranks_as_before(problem, tree, tmp_path: Path):
    tree.save(tmp_path)
    loaded = load_linear(tmp_path)
    assert isinstance(loaded, LabelTreeSVM)
    before, after = tree.rank(problem[0], 5), loaded.rank(problem[0], 5)
    np.testing.assert_array_equal(after.indices, before.indices)
    np.testing.assert_array_equal(after.scores, before.scores)
    parts = read_tensors(tmp_path / "tree.safetensors", "children", "labels", "weights", "bias")
    write_tensors(tmp_path / "tree.safetensors", parts | {"labels": parts["labels"] + 40})
    with pytest.raises(RunError, match="no tree over the labels"):
        load_linear(tmp_path)


def test_added_and_removed_labels(problem, tree):
    X, _ = problem
    weights = csr_array(X[[0]])  # a label for documents like the first
    more = tree.with_labels(csr_array(weights * 3))
    assert more.rank(X[[0]], 1).indices.tolist() == [[N_LABELS]]
    best = int(tree.rank(X[[1]], 1).indices[0, 0])
    without = tree.with_labels(csr_array((0, X.shape[1]), dtype=np.float32))
    without.bias_ = tree.bias_.copy()
    without.bias_[best] = -np.inf
    assert best not in without.rank(X[[1]], N_LABELS).indices


def test_few_labels_and_none():
    X = csr_array(np.eye(3, dtype=np.float32))
    Y = csr_array(np.array([[1, 0], [1, 0], [0, 0]], np.float32))
    ranking = LabelTreeSVM().fit(X, Y).rank(X, 2)
    assert ranking.indices.tolist() == [[0, -1]] * 3
    with pytest.raises(NotFittedError):
        LabelTreeSVM().rank(X, 1)
    with pytest.raises(CorpusError, match="X has 2 documents and Y has 3"):
        LabelTreeSVM().fit(X[:2], Y)


def test_a_tree_is_chosen_where_one_vs_all_costs_too_much(problem, monkeypatch):
    X, Y = problem
    n_labels = N_LABELS - 1  # one has no document
    assert choose_solver(X, Y) == "one-vs-all"
    monkeypatch.setattr("depl.sparse.label_tree._COSTLY", X.nnz * n_labels - 1)
    assert choose_solver(X, Y) == "one-vs-all"  # few labels: a tree would be no less work
    monkeypatch.setattr("depl.sparse.label_tree._MANY", n_labels - 2)
    assert choose_solver(X, Y) == "tree"
    assert choose_solver(X[:-1], Y) == "one-vs-all"
    assert choose_solver(X, Y[:, 1:]) == "one-vs-all"


def test_label_vectors_have_length_one(problem):
    X, Y = problem
    vectors = label_vectors(X, Y).toarray()
    lengths = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(np.delete(lengths, 7), 1, atol=1e-5)
    summed = Y.toarray().T @ X.toarray()
    np.testing.assert_allclose(vectors[3], summed[3] / np.linalg.norm(summed[3]), atol=1e-5)


def test_levels_and_what_is_above_them():
    shape = Shape(np.array([1, 3, 5, 7, 9, 11, 13, 15]), np.arange(8))
    assert list(shape.levels()) == [(0, 1), (1, 3), (3, 7)]
    above = shape.above(3)
    assert (above.children.tolist(), above.labels.tolist()) == ([1, 3, 5, 7], [0, 1, 2, 3])
