r"""Gradient boosting of trees on the log-loss, for tables of a few columns.

The usual histogram algorithm: every column is cut into at most 255 bins, a tree is grown leaf by
leaf where the gain is largest, and only the smaller child of a split is counted; the larger is what
remains of its parent. Missing values have a bin of their own, which may go to either side.

Why not a library? scikit-learn shows the trees of its HistGradientBoostingClassifier only through
private attributes. LightGBM's wheel needs a libgomp.so.1 that slim systems lack. Both grow a tree
with OpenMP threads that meet thousands of times a second, and busy-wait for each other where torch
was imported first. Here a tree is grown by one thread, without the interpreter's lock; the fusion
grows the trees of its folds side by side, and no thread ever waits for another.

``benchmarks/trees.py`` compares the three with the same settings (300 trees of 15 leaves; 3,000 dev
documents, or 1,000 with seven parts; CPU seconds of two fits with one thread, and the wall clock
with two threads, torch imported before, on two cores that had other work as well):

=====================  ============  =====  =====  =====  =====  =========  =====  =====  ======
runs on 15,000 docs    boosting        P@1    P@5  PSP@1  PSP@5  tail F1@5    ECE    CPU    wall
=====================  ============  =====  =====  =====  =====  =========  =====  =====  ======
EURLEX57K, 2 parts     this           88.9   61.0   45.4   60.1       39.8    1.1   11.3    16.6
\                      scikit-learn   89.0   61.1   45.4   60.2       40.0    0.9   19.4    46.4
\                      LightGBM       88.8   61.0   45.6   60.1       39.8    0.9   15.9    27.3
TIB, 2 parts           this           52.5   24.3   34.3   39.6       33.2    1.3   12.2    13.1
\                      scikit-learn   52.4   24.4   34.1   39.6       33.4    1.3   19.0    30.9
\                      LightGBM       52.5   24.3   34.5   39.6       33.3    1.3   18.1    19.8
EURLEX57K, 7 parts     this           89.1   58.9   45.0   64.6       40.3    1.5   12.3    11.3
\                      scikit-learn   89.0   59.0   45.2   64.9       41.3    1.3   21.2    34.7
\                      LightGBM       88.5   59.0   44.8   64.7       40.1    1.6   15.8    25.0
=====================  ============  =====  =====  =====  =====  =========  =====  =====  ======

The scores are equal but for chance: from one random split of the documents to another, the
difference between this and scikit-learn varies by 0.3 points of P@1 (standard deviation), 0.1 of
P@5 and 0.3 to 1.0 of tail F1@5. All three give the same bytes with one and two threads. Compiling
takes four seconds, once after installing; importing scikit-learn's boosting takes more than one,
each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from depl.fusion.trees import Floats, Trees, prior

_BINS = 255  # of present values; with the missing ones a bin fits into a byte
_SAMPLE = 200_000  # rows that the bins are found on
_LEAST_GAIN = 1e-9  # less is a rounding error

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]
Rows = NDArray[np.uint32]
Node = Any  # a record of _NODE; numba knows its fields, mypy does not

_NODE = np.dtype(
    [
        ("first", np.int64),  # its rows are those from first to last of the order
        ("last", np.int64),
        ("cells", np.int64),  # which histogram is its own
        ("lower", np.float64),  # where the constraints keep its value
        ("upper", np.float64),
        ("value", np.float64),
        # The best split, found but not necessarily made:
        ("gain", np.float64),  # 0 where there is none, and once it is made
        ("feature", np.int64),
        ("cut", np.int64),  # the last bin that goes left; 0: missing values alone
        ("missing_left", np.bool_),
        ("left_value", np.float64),
        ("right_value", np.float64),
        ("left", np.int64),  # the children, right after each other; 0 in a leaf
    ],
    align=True,
)


def boost(
    X: NDArray[np.float32],
    y: NDArray[np.bool_],
    *,
    iterations: int,
    leaves: int,
    learning_rate: float,
    l2: float,
    min_leaf: int,
    directions: Sequence[int],
    weight: NDArray[np.float32] | None = None,
) -> Trees:
    """Boost trees on the log-loss of ``y``, in one thread and without randomness.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Finite, or NaN where a value is missing.
    y : array of shape (n,)
        With one class only, the model is the constant of its smoothed frequency.
    iterations : int
        How many trees; fewer where no split is left that gains anything.
    leaves : int
        Most leaves a tree may have, at least 2.
    learning_rate : float
        What a leaf's value is multiplied by.
    l2 : float
        Penalty on the square of a leaf's value, above 0.
    min_leaf : int
        Fewest rows a leaf may hold, at least 1.
    directions : sequence of int
        For every feature: 1 where a larger value never lowers the log-odds, -1 where it never
        raises them, else 0. Missing values may go either way.
    weight : array of shape (n,), optional
        How many rows each stands for; 1 without it.
    """
    weight = np.ones(len(y), np.float32) if weight is None else weight
    baseline = prior(y, weight)
    if y.all() or not y.any():
        return Trees.constant(baseline)
    X = np.ascontiguousarray(X, np.float32)
    n, n_features = X.shape
    edges = [_edges(column) for column in X[:: max(1, n // _SAMPLE)].T]
    n_bins = np.array([len(x) + 1 for x in edges])
    # The threshold of a cut: nothing present is below the first, nothing above the last.
    thresholds = np.full((n_features, _BINS + 1), np.inf)
    thresholds[:, 0] = -np.inf
    bins = np.empty(X.shape, np.uint8)
    for f, found in enumerate(edges):
        thresholds[f, 1 : len(found) + 1] = found
        # Bin 0 holds the missing values, bin b those above cut b - 1 and up to cut b.
        bins[:, f] = np.where(np.isnan(X[:, f]), 0, 1 + np.searchsorted(found, X[:, f]))

    log_odds = np.full(n, baseline)
    slopes = np.empty((n, 2), np.float32)
    order, room = np.empty(n, np.uint32), np.empty(n, np.uint32)
    cells = np.empty((leaves, n_features, n_bins.max() + 1, 3))
    constraints = np.array(directions, np.int64)
    grown = []
    for _ in range(iterations):
        nodes = np.zeros(2 * leaves - 1, _NODE)
        _take_slopes(log_odds, y, weight, slopes)
        order[:] = np.arange(n, dtype=np.uint32)
        size = _grow(bins, n_bins, constraints, slopes, order, room, cells, nodes, min_leaf, l2)
        if size == 1:  # the next tree would find no split either
            break
        nodes = nodes[:size]
        nodes["value"] *= learning_rate
        _step(nodes, order, log_odds)
        grown.append(nodes)
    return _plain(grown, thresholds, baseline)


def _edges(column: NDArray[np.float32]) -> Floats:
    """The values between the bins: half-way between few values, quantiles of many."""
    present = column[~np.isnan(column)]
    values = np.unique(present).astype(np.float64)
    if len(values) > _BINS:
        shares = np.arange(1, _BINS) / _BINS
        return np.unique(np.quantile(present, shares, method="inverted_cdf").astype(np.float64))
    return np.asarray((values[1:] + values[:-1]) / 2)


def _plain(grown: list[NDArray[np.void]], thresholds: Floats, baseline: float) -> Trees:
    """The trees behind each other, with thresholds in place of bins."""
    if not grown:
        return Trees.constant(baseline)
    sizes = [len(x) for x in grown]
    roots = (np.cumsum(sizes) - sizes).astype(np.int32)
    nodes = np.concatenate(grown)
    leaf = nodes["left"] == 0
    left = np.where(leaf, 0, nodes["left"] + np.repeat(roots, sizes)).astype(np.int32)
    return Trees(
        roots,
        np.where(leaf, -1, nodes["feature"]).astype(np.int32),
        np.where(leaf, 0.0, thresholds[nodes["feature"], nodes["cut"]]),
        nodes["missing_left"] & ~leaf,
        left,
        np.where(leaf, 0, left + 1).astype(np.int32),
        np.where(leaf, nodes["value"], 0.0),
        np.array([baseline]),
    )


@numba.njit(nogil=True, cache=True)
def _take_slopes(
    log_odds: Floats,
    y: NDArray[np.bool_],
    weight: NDArray[np.float32],
    slopes: NDArray[np.float32],
) -> None:
    """First and second derivative of every row's loss."""
    for i in range(len(y)):
        p = 1.0 / (1.0 + np.exp(-log_odds[i]))
        slopes[i, 0] = weight[i] * (p - y[i])
        slopes[i, 1] = weight[i] * p * (1.0 - p)


@numba.njit(nogil=True, cache=True)
def _step(nodes: NDArray[np.void], order: Rows, log_odds: Floats) -> None:
    """Add the value of its leaf to every row."""
    for node in nodes:
        if node.left == 0:
            for i in order[node.first : node.last]:
                log_odds[i] += node.value


@numba.njit(nogil=True, cache=True)
def _grow(
    bins: Bytes,
    n_bins: Counts,
    directions: Counts,
    slopes: NDArray[np.float32],
    order: Rows,
    room: Rows,
    cells: Floats,
    nodes: NDArray[np.void],
    min_leaf: int,
    l2: float,
) -> int:
    """Grow one tree into ``nodes``, all zeros at first; returns how many there are.

    Afterwards the rows of each leaf are next to each other in ``order``.
    """
    nodes[0].last = len(order)
    nodes[0].lower, nodes[0].upper = -np.inf, np.inf
    _count(bins, slopes, order, cells[0])
    _find_split(nodes[0], cells[0], n_bins, directions, min_leaf, l2)
    size = 1
    while size < len(nodes):
        at = 0
        for x in range(1, size):
            if nodes[x].gain > nodes[at].gain:
                at = x
        parent = nodes[at]
        if parent.gain == 0.0:
            break
        parent.gain = 0.0
        parent.left = size
        left, right = nodes[size], nodes[size + 1]
        size += 2
        rows = order[parent.first : parent.last]
        middle = parent.first + _divide(rows, room, bins, parent)
        left.first, left.last, left.value = parent.first, middle, parent.left_value
        right.first, right.last, right.value = middle, parent.last, parent.right_value
        left.lower, left.upper = parent.lower, parent.upper
        right.lower, right.upper = parent.lower, parent.upper
        # Whatever is split further on either side stays on its side of the middle.
        between = 0.5 * (parent.left_value + parent.right_value)
        if directions[parent.feature] > 0:
            left.upper = right.lower = between
        elif directions[parent.feature] < 0:
            left.lower = right.upper = between
        if size == len(nodes):
            break
        less, more = (left, right) if 2 * middle <= left.first + right.last else (right, left)
        less.cells, more.cells = size // 2, parent.cells
        _count(bins, slopes, order[less.first : less.last], cells[less.cells])
        _subtract(cells[more.cells].ravel(), cells[less.cells].ravel())
        _find_split(left, cells[left.cells], n_bins, directions, min_leaf, l2)
        _find_split(right, cells[right.cells], n_bins, directions, min_leaf, l2)
    return size


@numba.njit(nogil=True, cache=True)
def _count(bins: Bytes, slopes: NDArray[np.float32], rows: Rows, cells: Floats) -> None:
    """Both derivatives and the number of rows, summed for every bin of every feature."""
    cells[:] = 0.0
    for i in rows:
        first, second = np.float64(slopes[i, 0]), np.float64(slopes[i, 1])
        for f in range(bins.shape[1]):
            b = bins[i, f]
            cells[f, b, 0] += first
            cells[f, b, 1] += second
            cells[f, b, 2] += 1.0


@numba.njit(nogil=True, cache=True)
def _subtract(whole: Floats, part: Floats) -> None:
    for i in range(len(whole)):  # takes numba a second less to compile than whole -= part
        whole[i] -= part[i]


@numba.njit(nogil=True, cache=True)
def _divide(rows: Rows, room: Rows, bins: Bytes, node: Node) -> int:
    """Bring the rows that go left to the front, each side in its order; returns how many.

    Every row is written to both sides and one of them moves on: a branch would be guessed wrongly
    half the time, which took four times as long.
    """
    goes_left = np.zeros(256, np.uint8)
    goes_left[0] = node.missing_left
    for b in range(1, node.cut + 1):
        goes_left[b] = 1
    f = node.feature
    n_left, n_right = np.uint64(0), np.uint64(0)
    for i in rows:
        goes = goes_left[bins[i, f]]
        rows[n_left] = i
        room[n_right] = i
        n_left += np.uint64(goes)
        n_right += np.uint64(1 - goes)
    for j in range(n_right):
        rows[n_left + j] = room[j]
    return int(n_left)


@numba.njit(nogil=True, cache=True)
def _find_split(
    node: Node, cells: Floats, n_bins: Counts, directions: Counts, min_leaf: int, l2: float
) -> None:
    """Write the split with the largest gain into the node; the first of equals."""
    g, h, n = 0.0, 0.0, 0.0
    for b in range(n_bins[0] + 1):
        g, h, n = g + cells[0, b, 0], h + cells[0, b, 1], n + cells[0, b, 2]
    before = _loss(_value(g, h, node, l2), g, h, l2)
    best = _LEAST_GAIN
    for f in range(len(n_bins)):
        missing = cells[f, 0, 2]
        for missing_left in (False, True):
            if missing_left and missing == 0.0:
                break
            left_g, left_h, left_n = 0.0, 0.0, 0.0
            for b in range(n_bins[f] + 1):
                if b > 0 or missing_left:
                    left_g += cells[f, b, 0]
                    left_h += cells[f, b, 1]
                    left_n += cells[f, b, 2]
                if left_n < min_leaf:
                    continue
                if n - left_n < min_leaf:
                    break
                left = _value(left_g, left_h, node, l2)
                right = _value(g - left_g, h - left_h, node, l2)
                if directions[f] * (right - left) < 0.0:
                    continue
                after = _loss(left, left_g, left_h, l2) + _loss(right, g - left_g, h - left_h, l2)
                if before - after > best:
                    best = before - after
                    node.gain, node.feature, node.cut = best, f, b
                    node.left_value, node.right_value = left, right
                    # Where none was missing, what is missing later goes with the majority.
                    node.missing_left = missing_left if missing > 0.0 else 2.0 * left_n > n


@numba.njit(nogil=True, cache=True)
def _value(g: float, h: float, node: Node, l2: float) -> float:
    """The best value that the constraints allow a leaf with these sums of derivatives."""
    return float(min(max(-g / (h + l2), node.lower), node.upper))


@numba.njit(nogil=True, cache=True)
def _loss(value: float, g: float, h: float, l2: float) -> float:
    """What a value changes the loss by, to the second order."""
    return value * (g + 0.5 * (h + l2) * value)
