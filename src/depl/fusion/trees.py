"""Boosted trees, and a line, as plain numbers: fitted by scikit-learn, kept and used without it.

A fitted scikit-learn object can only be kept by pickling it, and loading a pickle runs whatever
code the file asks for. The trees themselves are six columns of numbers. The compiled walk below
gives the same sums as scikit-learn, and starts within microseconds for a single document.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from depl.core.errors import RunError

Floats = NDArray[np.float64]

_FEW = 20_000
_COLUMNS = ("feature", "threshold", "missing_left", "left", "right", "value")


@dataclass(frozen=True)
class Trees:
    """An additive model of decision trees: log-odds = baseline + one leaf's value of every tree.

    Parameters
    ----------
    roots : array of shape (n_trees,), int32
        Where each tree begins in the columns below.
    feature : array of shape (n_nodes,), int32
        The feature a node asks about; -1 in a leaf.
    threshold : array of shape (n_nodes,), float64
        A value up to this goes left, a larger one right.
    missing_left : array of shape (n_nodes,), bool
        Whether NaN goes left.
    left, right : arrays of shape (n_nodes,), int32
        The children, which always stand behind their parent.
    value : array of shape (n_nodes,), float64
        What a leaf adds.
    baseline : array of shape (1,), float64
        The log-odds before any tree.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats
    baseline: Floats

    @classmethod
    def constant(cls, log_odds: float) -> Trees:
        """No tree at all: the same log-odds for everything."""
        none = np.empty(0, np.int32)
        numbers = np.empty(0, np.float64)
        return cls(
            none, none, numbers, np.empty(0, np.bool_), none, none, numbers, np.array([log_odds])
        )

    @classmethod
    def grow(
        cls,
        X: NDArray[np.float32],
        y: NDArray[np.bool_],
        *,
        min_leaf: int,
        seed: int,
        **shape: object,
    ) -> Trees:
        """Boost trees on the log-loss of ``y``.

        Parameters
        ----------
        X : array of shape (n, n_features)
            NaN where a value is missing.
        y : array of shape (n,)
            With one class only, the model is the constant of its smoothed frequency.
        min_leaf : int
            Fewest rows a leaf may hold.
        seed : int
            For the sample that finds the bins of the features.
        **shape
            Other settings of ``HistGradientBoostingClassifier``.
        """
        if y.all() or not y.any():
            return cls.constant(prior(y))
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        unknown = np.isnan(X).all(axis=0)
        if unknown.any():  # scikit-learn cannot bin a column without a single value
            X = np.where(unknown, np.float32(0.0), X)
        model = boosting_class()(
            min_samples_leaf=min_leaf, random_state=seed, early_stopping=False, **shape
        )
        # With few rows the threads of a parallel loop wait for each other longer than they work.
        with threadpool_limits(1 if len(X) < _FEW else None, user_api="openmp"):
            return cls.from_sklearn(model.fit(X, y))

    @classmethod
    def from_sklearn(cls, model: Any) -> Trees:  # noqa: ANN401 - scikit-learn is untyped
        """Copy the trees out of a fitted binary ``HistGradientBoostingClassifier``."""
        nodes = [stage[0].nodes for stage in model._predictors]
        sizes = [len(x) for x in nodes]
        roots = (np.cumsum(sizes) - sizes).astype(np.int32)
        all_nodes = np.concatenate(nodes)
        leaf = all_nodes["is_leaf"].astype(bool)
        start = np.repeat(roots, sizes)
        return cls(
            roots,
            np.where(leaf, -1, all_nodes["feature_idx"]).astype(np.int32),
            np.where(leaf, 0.0, all_nodes["num_threshold"]).astype(np.float64),
            all_nodes["missing_go_to_left"].astype(np.bool_) & ~leaf,
            np.where(leaf, 0, all_nodes["left"] + start).astype(np.int32),
            np.where(leaf, 0, all_nodes["right"] + start).astype(np.int32),
            np.where(leaf, all_nodes["value"], 0.0).astype(np.float64),
            np.array([float(np.ravel(model._baseline_prediction)[0])]),
        )

    def log_odds(self, X: NDArray[np.float32]) -> Floats:
        """The model's log-odds of every row; the lock is free meanwhile, so threads may share."""
        out = np.empty(len(X))
        _walk(
            np.ascontiguousarray(X, np.float32),
            self.roots,
            self.feature,
            self.threshold,
            self.missing_left,
            self.left,
            self.right,
            self.value,
            float(self.baseline[0]),
            out,
        )
        return out

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in ("roots", *_COLUMNS, "baseline")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], n_features: int) -> Trees:
        """Check and take arrays that were read from disk.

        The compiled walk checks nothing, so what would lead it astray or in circles is refused
        here.
        """
        trees = cls(**{name: tensors[name] for name in ("roots", *_COLUMNS, "baseline")})
        model = cls.constant(0.0).tensors()
        n = len(trees.feature)
        at = np.arange(n)
        inner = trees.feature >= 0
        sound = (
            all(x.ndim == 1 and x.dtype == model[name].dtype for name, x in trees.tensors().items())
            and all(len(getattr(trees, name)) == n for name in _COLUMNS)
            and len(trees.baseline) == 1
            and bool(np.all((trees.roots >= 0) & (trees.roots < n)))
            and bool(np.all(trees.feature < n_features))
            and all(np.all((x > at) & (x < n), where=inner) for x in (trees.left, trees.right))
        )
        if not sound:
            raise RunError("The trees of the fusion are damaged. Delete its folder and fit again.")
        return trees


def boosting_class() -> Any:  # noqa: ANN401 - scikit-learn is untyped
    """scikit-learn's boosting, slow to import.

    Its threads synchronise thousands of times a second, and by default they busy-wait. Where other
    programs need the cores, each then waits for one that is not running: two fits side by side on
    two cores took 25 times as long as one. With threads that sleep, they take as long as one. The
    OpenMP library reads the setting once, when it is loaded: whoever imports scikit-learn for
    another reason calls this first.
    """
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    finally:
        if before is None:
            del os.environ["OMP_WAIT_POLICY"]
    return HistGradientBoostingClassifier


def prior(y: NDArray[np.bool_]) -> float:
    """Log-odds of being true before anything else is known, smoothed to stay finite."""
    true = int(y.sum())
    return float(np.log((true + 0.5) / (len(y) - true + 0.5)))


def logistic_line(scores: NDArray[np.floating], right: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset that turn a score into the log-odds of being right.

    One pseudo pair of each kind in the middle keeps the line finite whatever the pairs are; the
    slope stays above 0, so that the order of the scores is kept.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    scores = np.asarray(scores, np.float64)
    middle = float(scores.mean()) if len(scores) else 0.0
    spread = float(scores.std()) if len(scores) else 0.0
    spread = spread if spread > 0 else 1.0
    x = np.append((scores - middle) / spread, [0.0, 0.0])
    line = LogisticRegression(C=1.0).fit(x[:, None], np.append(right, [True, False]))
    slope = max(float(line.coef_[0, 0]), 1e-3) / spread
    return slope, float(line.intercept_[0]) - slope * middle


@numba.njit(nogil=True, cache=True)
def _walk(
    X: NDArray[np.float32],
    roots: NDArray[np.int32],
    feature: NDArray[np.int32],
    threshold: Floats,
    missing_left: NDArray[np.bool_],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    value: Floats,
    baseline: float,
    out: Floats,
) -> None:
    """Add up the leaves that every row falls into, tree by tree as scikit-learn does."""
    for i in range(len(X)):
        total = baseline
        for t in range(len(roots)):
            node = roots[t]
            while feature[node] >= 0:
                x = X[i, feature[node]]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            total += value[node]
        out[i] = total
