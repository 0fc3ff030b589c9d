"""Boosting against a plain version of itself, scikit-learn, and what it promises."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from depl.fusion.boosting import boost
from depl.fusion.calibration import logistic_line
from depl.fusion.trees import prior

SHAPE = {"iterations": 40, "leaves": 9, "learning_rate": 0.1, "l2": 2.0, "min_leaf": 20}


def table(seed, n, n_features=4, missing=0.3):
    """Rows whose missing values say something, too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    gone = rng.random(X.shape) < missing
    y = X[:, 0] + X[:, 1] * X[:, 2] - gone[:, 0] + rng.normal(size=n) > 0.5
    X[gone] = np.nan
    return X, y


def every_split(X, rows, min_leaf):
    """Feature and who goes left, for every way to split the rows by a value or by its absence."""
    for f in range(X.shape[1]):
        x = X[rows, f]
        for cut in [-np.inf, *np.unique(x[~np.isnan(x)])]:
            for missing_left in (False, True):
                goes = np.where(np.isnan(x), missing_left, x <= cut)
                if min(goes.sum(), (~goes).sum()) >= min_leaf:
                    yield f, goes


class Leaf:
    """Rows, the derivatives of their loss, and the bounds of their common value."""

    def __init__(self, rows, slopes, l2, low=-np.inf, high=np.inf):
        self.rows, self.slopes, self.l2, self.low, self.high = rows, slopes, l2, low, high
        first, second = slopes[rows].sum(axis=0, dtype=float) + np.array([0, l2])
        self.value = min(max(-first / second, low), high)
        self.loss = self.value * first + 0.5 * second * self.value**2

    def split(self, goes, direction=0):
        """Two leaves; None where that would be against the direction."""
        inside = self.low, self.high
        left, right = (Leaf(self.rows[x], self.slopes, self.l2, *inside) for x in (goes, ~goes))
        if direction * (right.value - left.value) < 0:
            return None
        return left, right

    def gain(self, goes, direction):
        parts = self.split(goes, direction)
        return 0.0 if parts is None else self.loss - parts[0].loss - parts[1].loss

    def best_gain(self, X, directions, min_leaf):
        found = (self.gain(x, directions[f]) for f, x in every_split(X, self.rows, min_leaf))
        return max(found, default=0.0)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(2, 6),
    st.integers(1, 6),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
)
def test_each_split_is_the_best_of_all(seed, n, leaves, min_leaf, directions):
    X, y = table(seed, n, 3)
    shape = {"leaves": leaves, "min_leaf": min_leaf, "l2": 0.5, "learning_rate": 0.5}
    trees = boost(X, y, iterations=3, directions=directions, **shape)
    log_odds = np.full(n, prior(y))

    def all_rows():
        p = expit(log_odds)
        slopes = np.column_stack([p - y, p * (1 - p)]).astype(np.float32)
        return Leaf(np.arange(n), slopes, 0.5)

    ends = [*trees.roots[1:], len(trees.feature)]
    for root, end in zip(trees.roots, ends, strict=False):
        tree = {root: all_rows()}
        inner = [i for i in range(root, end) if trees.feature[i] >= 0]
        for i in sorted(inner, key=lambda i: trees.left[i]):  # as they were made
            f = trees.feature[i]
            best = max(x.best_gain(X, directions, min_leaf) for x in tree.values())
            leaf = tree.pop(i)
            x = X[leaf.rows, f]
            goes = np.where(np.isnan(x), trees.missing_left[i], x <= trees.threshold[i])
            assert leaf.gain(goes, directions[f]) == pytest.approx(best, abs=1e-6)
            left, right = leaf.split(goes)
            assert min(len(left.rows), len(right.rows)) >= min_leaf
            middle = (left.value + right.value) / 2
            for side, child in ((-1, left), (1, right)):
                low = middle if side * directions[f] > 0 else leaf.low
                high = middle if side * directions[f] < 0 else leaf.high
                # The value was chosen before the middle was known.
                bounded = Leaf(child.rows, child.slopes, 0.5, low, high)
                assert bounded.value == pytest.approx(child.value)
                tree[(trees.left if side < 0 else trees.right)[i]] = bounded
        if len(tree) < leaves:
            assert max(x.best_gain(X, directions, min_leaf) for x in tree.values()) < 1e-6
        for i, leaf in tree.items():
            assert trees.value[i] == pytest.approx(0.5 * leaf.value, abs=1e-6)
            log_odds[leaf.rows] += trees.value[i]
    np.testing.assert_allclose(trees.log_odds(X), log_odds, atol=1e-12)
    if len(trees.roots) < 3 and 0 < y.sum() < n:
        assert all_rows().best_gain(X, directions, min_leaf) < 1e-6


@pytest.mark.parametrize("directions", [[0, 0, 0, 0], [1, 0, 0, -1]])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
def test_as_good_as_scikit_learn(directions, missing):
    X, y = table(1, 6000, missing=missing)
    model = HistGradientBoostingClassifier(
        max_iter=40,
        max_leaf_nodes=9,
        learning_rate=0.1,
        l2_regularization=2.0,
        monotonic_cst=directions,
        early_stopping=False,
        random_state=0,
    )
    unseen, truth = table(2, 6000, missing=missing)
    theirs = model.fit(X, y).decision_function(unseen)
    ours = boost(X, y, directions=directions, **SHAPE).log_odds(unseen)

    def loss(log_odds):
        return np.logaddexp(0, np.where(truth, -log_odds, log_odds)).mean()

    assert loss(ours) < 1.005 * loss(theirs)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([30, 300, 1000]))
def test_constrained_features_never_turn_back(seed, leaves, n):
    X, y = table(seed, n)
    shape = SHAPE | {"leaves": leaves, "min_leaf": 2}
    trees = boost(X, y, directions=[1, -1, 0, 1], **shape)
    for f, sign in ((0, 1), (1, -1), (3, 1)):
        steps = np.linspace(-4, 4, 50, dtype=np.float32)
        rows = np.repeat(X[:10], len(steps), axis=0)
        rows[:, f] = np.tile(steps, len(rows) // len(steps))
        curves = trees.log_odds(rows).reshape(-1, len(steps))
        assert np.all(sign * np.diff(curves, axis=1) >= -1e-12)


@pytest.mark.parametrize("direction", [-1, 0, 1])
@pytest.mark.parametrize("present", [False, True])
def test_missing_values_alone_can_tell(direction, present):
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.3
    X = rng.normal(size=(500, 1)).astype(np.float32)
    X[y != present] = np.nan
    trees = boost(X, y, directions=[direction], **SHAPE)
    log_odds = trees.log_odds(X)
    assert log_odds[y].min() > log_odds[~y].max() + 2


def test_values_missing_only_later_go_with_the_majority():
    X = np.repeat(np.array([[0.0], [1.0]], np.float32), [30, 70], axis=0)
    y = np.arange(100) >= 35
    trees = boost(X, y, directions=[0], **SHAPE)
    zero, one, missing = trees.log_odds(np.array([[0.0], [1.0], [np.nan]], np.float32))
    assert zero < one
    assert missing == one


def test_columns_without_a_value_or_with_one_only_do_no_harm():
    X, y = table(3, 400)
    idle = np.column_stack([np.full(400, np.nan), np.ones(400), X]).astype(np.float32)
    plain = boost(X, y, directions=[0] * 4, **SHAPE)
    padded = boost(idle, y, directions=[1, 1, 0, 0, 0, 0], **SHAPE)
    assert np.array_equal(plain.log_odds(X), padded.log_odds(idle))


def test_many_values_are_cut_into_bins_of_equal_size():
    rng = np.random.default_rng(0)
    X = np.exp(3 * rng.normal(size=(20_000, 1))).astype(np.float32)
    chance = expit(np.log(X[:, 0]))
    trees = boost(X, rng.random(20_000) < chance, directions=[1], **SHAPE)
    assert len(np.unique(trees.threshold)) <= 255
    assert np.abs(expit(trees.log_odds(X)) - chance).mean() < 0.02


@pytest.mark.parametrize("leaves", range(2, 9))
def test_a_row_of_weight_3_counts_as_three(leaves):
    # Not by hypothesis: it finds rows that two features part alike, where a rounding error decides.
    rng = np.random.default_rng(leaves)
    n = 25 * leaves
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = rng.random(n) < expit(X[:, 0])
    weight = rng.integers(1, 4, n)
    options = {"iterations": 5, "leaves": leaves, "learning_rate": 0.3, "l2": 1.0, "min_leaf": 1}
    options["directions"] = [0, 0, 0]
    weighed = boost(X, y, weight=weight.astype(np.float32), **options).log_odds(X)
    repeated = boost(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options).log_odds(X)
    np.testing.assert_allclose(weighed, repeated, atol=1e-4)


def test_same_rows_give_the_same_bytes():
    X, y = table(5, 3000)
    first, second = (boost(X, y, directions=[0] * 4, **SHAPE).tensors() for _ in range(2))
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes()


def test_nothing_to_learn_makes_a_constant():
    X = np.zeros((7, 2), np.float32)
    for y in (np.zeros(7, bool), np.arange(7) < 3):
        trees = boost(X, y, directions=[0, 0], **SHAPE)
        assert len(trees.roots) == 0
        np.testing.assert_allclose(trees.log_odds(X), prior(y))
    assert prior(np.zeros(7, bool)) == pytest.approx(math.log(0.5 / 7.5))


# The line


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 300),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.floats(0.5, 50),
)
def test_line_is_scikit_learns(seed, n, scale, steepness):
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(3, 1, n)
    right = rng.random(n) < expit(steepness * (scores / scale - 3.5))
    slope, offset = logistic_line(scores, right)
    middle, spread = scores.mean(), scores.std() or 1.0
    x = np.append((scores - middle) / spread, [0, 0])[:, None]
    model = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000)
    model.fit(x, np.append(right, [True, False]))
    expected = max(model.coef_.item(), 1e-3)
    assert slope * spread == pytest.approx(expected, abs=1e-4)
    assert offset + slope * middle == pytest.approx(model.intercept_.item(), abs=1e-4)


@pytest.mark.parametrize("right", [[], [True], [False] * 4, [True, False]])
def test_line_is_finite_and_rises_whatever_the_pairs(right):
    slope, offset = logistic_line(np.full(len(right), 7.0), np.array(right, bool))
    assert slope > 0
    assert math.isfinite(offset)
    expected = (sum(right) + 1) / (len(right) + 2)
    assert slope * 7 + offset == pytest.approx(logit(expected), abs=0.01)


# What is loaded


def test_fitting_needs_no_boosting_library():
    script = """
import sys
import numpy as np
from scipy.sparse import csr_array
from depl.core.ranking import Ranking
from depl.fusion.fusion import Fusion
truth = np.random.default_rng(0).random((60, 9)) < 0.3
part = Ranking.from_scores(truth + np.random.default_rng(1).normal(size=truth.shape), 5)
Fusion(iterations=3).fit({"a": part}, csr_array(truth.astype(np.float32)), np.ones(9, int), 60)
print(*{"sklearn", "lightgbm"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
