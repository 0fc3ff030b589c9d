"""The compiled inner loops of the one-vs-all SVM.

A *block* is a few dozen labels solved together. Its weights are a terms x labels array, so
that one pass over a document's terms reads whole cache lines and scores or updates all labels of
the block with vector instructions. The last row of the weights belongs to a constant term of value
1, the bias.

Dual variables are kept with their sign, ``a = y * alpha``; then w = sum_i a_i x_i.
"""

from __future__ import annotations

import numba
import numpy as np

# Everything but the assumption that there is no infinity: a label without weights scores -inf.
_FAST = {"contract", "nsz", "arcp", "reassoc"}


@numba.njit(nogil=True, fastmath=_FAST, cache=True)
def _score(indices, data, first, last, W, f):  # type: ignore[no-untyped-def]
    """Scores of one document, whose terms are those from ``first`` to ``last``, into ``f``.

    Four terms at a time: the scores are then read and written a quarter as often.
    """
    width = len(f)
    row = W[-1]
    for j in range(width):
        f[j] = row[j]
    p = first
    while p + 4 <= last:
        row0, row1, row2, row3 = (
            W[indices[p]],
            W[indices[p + 1]],
            W[indices[p + 2]],
            W[indices[p + 3]],
        )
        v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        for j in range(width):
            f[j] += (v0 * row0[j] + v1 * row1[j]) + (v2 * row2[j] + v3 * row3[j])
        p += 4
    while p < last:
        row = W[indices[p]]
        v = data[p]
        for j in range(width):
            f[j] += v * row[j]
        p += 1


@numba.njit(nogil=True, fastmath=_FAST, cache=True)
def sweep(  # type: ignore[no-untyped-def]
    indptr, indices, data, pos_ptr, pos_col, W, A, norms, order, upper, diagonal, epsilon
):
    """One pass of dual coordinate descent over the documents in ``order``.

    ``diagonal`` has a value for each document: how much its loss counts.

    Returns how many documents changed by more than ``epsilon`` (they are moved to the front of
    ``order``), and the largest change.
    """
    width = W.shape[1]
    f = np.empty(width, np.float32)
    y = np.empty(width, np.float32)
    d = np.empty(width, np.float32)
    zero = np.float32(0.0)
    one = np.float32(1.0)
    moving = 0
    farthest = zero
    for t in range(len(order)):
        i = order[t]
        _score(indices, data, indptr[i], indptr[i + 1], W, f)
        y[:] = -one
        for p in range(pos_ptr[i], pos_ptr[i + 1]):
            y[pos_col[p]] = one
        a = A[i]
        own = diagonal[i]
        curvature = norms[i] + own
        largest = zero
        for j in range(width):
            alpha = a[j] * y[j]
            gradient = y[j] * f[j] - one + alpha * own
            step = min(max(alpha - gradient / curvature, zero), upper) - alpha
            d[j] = step * y[j]
            largest = max(largest, abs(step))
        farthest = max(farthest, largest * curvature)
        if largest * curvature > epsilon:
            order[moving], order[t] = i, order[moving]
            moving += 1
            for j in range(width):
                a[j] += d[j]
            for p in range(indptr[i], indptr[i + 1]):
                row = W[indices[p]]
                v = data[p]
                for j in range(width):
                    row[j] += v * d[j]
            row = W[-1]
            for j in range(width):
                row[j] += d[j]
    return moving, farthest


@numba.njit(nogil=True, fastmath=_FAST, cache=True)
def recall(indptr, indices, data, pos_ptr, pos_col, W, A, rows, diagonal):  # type: ignore[no-untyped-def]
    """The dual variables that some documents have at the optimum W, for the squared hinge."""
    width = W.shape[1]
    f = np.empty(width, np.float32)
    y = np.empty(width, np.float32)
    zero = np.float32(0.0)
    one = np.float32(1.0)
    for t in range(len(rows)):
        i = rows[t]
        _score(indices, data, indptr[i], indptr[i + 1], W, f)
        y[:] = -one
        for p in range(pos_ptr[i], pos_ptr[i + 1]):
            y[pos_col[p]] = one
        a = A[i]
        for j in range(width):
            a[j] = y[j] * max(one - y[j] * f[j], zero) / diagonal[i]


@numba.njit(nogil=True, fastmath=_FAST, cache=True)
def check(  # type: ignore[no-untyped-def]
    indptr, indices, data, pos_ptr, pos_col, W, A, C, diagonal, squared
):
    """Each label's exact primal and dual objective; changes nothing."""
    n = len(indptr) - 1
    width = W.shape[1]
    f = np.empty(width, np.float32)
    y = np.empty(width, np.float32)
    primal = np.zeros(width, np.float64)
    dual = np.zeros(width, np.float64)
    zero = np.float32(0.0)
    one = np.float32(1.0)
    half = np.float32(0.5)
    for i in range(n):
        _score(indices, data, indptr[i], indptr[i + 1], W, f)
        y[:] = -one
        for p in range(pos_ptr[i], pos_ptr[i + 1]):
            y[pos_col[p]] = one
        a = A[i]
        for j in range(width):
            alpha = a[j] * y[j]
            loss = max(one - y[j] * f[j], zero)
            if squared:
                loss = loss * loss
            primal[j] += loss
            dual[j] += alpha - half * alpha * alpha * diagonal
    for j in range(width):
        primal[j] *= C
    for t in range(W.shape[0]):
        row = W[t]
        for j in range(width):
            half_square = half * row[j] * row[j]
            primal[j] += half_square
            dual[j] -= half_square
    return primal, dual


@numba.njit(nogil=True, fastmath=_FAST, cache=True)
def top_scores(  # type: ignore[no-untyped-def]
    indptr, indices, data, first, last, w_indptr, w_labels, w_values, bias, out_labels, out_scores
):
    """Best labels of the documents ``first`` to ``last``; ``w_*`` are the weights term by term."""
    n_labels = len(bias)
    k = out_labels.shape[1]
    if k == 0:  # nowhere to write: value[k - 1] would be before the array
        return
    scores = np.empty(n_labels, np.float32)
    for i in range(first, last):
        for label in range(n_labels):  # scores[:] = bias would take seconds more to compile
            scores[label] = bias[label]
        for p in range(indptr[i], indptr[i + 1]):
            v = data[p]
            t = indices[p]
            for q in range(w_indptr[t], w_indptr[t + 1]):
                scores[w_labels[q]] += v * w_values[q]
        best = out_labels[i - first]
        value = out_scores[i - first]
        filled = 0
        for label in range(n_labels):
            s = scores[label]
            if s == -np.inf or (filled == k and s <= value[k - 1]):
                continue
            # Insert behind all equal scores: ties stay in label order.
            slot = filled if filled < k else k - 1
            while slot > 0 and value[slot - 1] < s:
                value[slot] = value[slot - 1]
                best[slot] = best[slot - 1]
                slot -= 1
            value[slot] = s
            best[slot] = label
            filled = min(filled + 1, k)


@numba.njit(nogil=True, cache=True)
def cull(W, place, n_labels, threshold):  # type: ignore[no-untyped-def]
    """The weights of at least this size, label by label, and in each by term.

    ``place`` has the row of each term.
    """
    indptr = np.zeros(n_labels + 1, np.int64)
    for t in range(len(place)):
        row = W[place[t]]
        for j in range(n_labels):
            indptr[j + 1] += abs(row[j]) >= threshold
    for j in range(n_labels):
        indptr[j + 1] += indptr[j]
    terms = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1], np.float32)
    ends = indptr[:-1].copy()
    for t in range(len(place)):
        row = W[place[t]]
        for j in range(n_labels):
            if abs(row[j]) >= threshold:
                terms[ends[j]] = t
                values[ends[j]] = row[j]
                ends[j] += 1
    return values, terms, indptr
