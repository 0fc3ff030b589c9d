"""Decision trees as plain arrays.

Arrays can be read from a file without running any code in it, and checked.
``depl.fusion.boosting`` grows the trees, ``depl.fusion.leaves`` finds the leaves of many rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import DeplError, RunError
from depl.fusion.leaves import Leaves

Floats = NDArray[np.float64]

_DAMAGED = "The trees of the fusion are damaged. Delete its folder and fit again."
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

    def mixed_with(self, others: Trees, share: float) -> Trees:
        """Trees whose log-odds are a mean of both, in which the others have that share."""
        behind = np.int32(len(self.feature))

        def children(name: str) -> NDArray[np.int32]:
            of_others = np.where(others.feature >= 0, getattr(others, name) + behind, 0)
            return np.concatenate([getattr(self, name), of_others.astype(np.int32)])

        return Trees(
            np.concatenate([self.roots, others.roots + behind]),
            np.concatenate([self.feature, others.feature]),
            np.concatenate([self.threshold, others.threshold]),
            np.concatenate([self.missing_left, others.missing_left]),
            children("left"),
            children("right"),
            np.concatenate([(1 - share) * self.value, share * others.value]),
            (1 - share) * self.baseline + share * others.baseline,
        )

    def log_odds(self, X: NDArray[np.float32]) -> Floats:
        """The model's log-odds of every row; the lock is free meanwhile, so threads may share."""
        return self._leaves.added_up(X, float(self.baseline[0]))

    @cached_property
    def _leaves(self) -> Leaves:
        return Leaves.of(
            self.roots,
            self.feature,
            self.threshold,
            self.missing_left,
            self.left,
            self.right,
            self.value,
        )

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in ("roots", *_COLUMNS, "baseline")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], n_features: int) -> Trees:
        """Check and take arrays that were read from disk.

        Compiled code checks nothing, so what would lead it astray or in circles is refused here.
        """
        trees = cls(**{name: tensors[name] for name in ("roots", *_COLUMNS, "baseline")})
        model = cls.constant(0.0).tensors()
        n = trees.feature.size
        at = np.arange(n)
        inner = trees.feature.ravel() >= 0
        sound = (
            all(x.ndim == 1 and x.dtype == model[name].dtype for name, x in trees.tensors().items())
            and all(len(getattr(trees, name)) == n for name in _COLUMNS)
            and len(trees.baseline) == 1
            and bool(np.all((trees.roots >= 0) & (trees.roots < n)))
            and bool(np.all(trees.feature < n_features))
            and all(np.all((x > at) & (x < n), where=inner) for x in (trees.left, trees.right))
        )
        if not sound:
            raise RunError(_DAMAGED)
        try:
            _ = trees._leaves
        except DeplError:
            raise RunError(_DAMAGED) from None
        return trees


def prior(y: NDArray[np.bool_], weight: NDArray[np.float32] | None = None) -> float:
    """Log-odds of being true before anything else is known, smoothed to stay finite."""
    weight = np.ones(len(y), np.float32) if weight is None else weight
    true, false = (float(weight[which].sum(dtype=np.float64)) for which in (y, ~y))
    return float(np.log((true + 0.5) / (false + 0.5)))
