"""The compiled loops of the label tree: halving labels, taking documents, beam search.

The weights of all children of a node are a *chunk*: the chunk's terms in ascending order and, for
each, the children that have a weight for it. A document meets a chunk by looking up its own terms,
which are few, in those of the chunk.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def _score_children(  # type: ignore[no-untyped-def]
    indices, data, first, last, terms, entries, places, values, start, end, scores
):
    """Add the document's products with the chunk between ``start`` and ``end`` to ``scores``."""
    low = start
    for p in range(first, last):
        term = indices[p]
        high = end
        while low < high:
            middle = (low + high) // 2
            if terms[middle] < term:
                low = middle + 1
            else:
                high = middle
        if low == end:
            return
        if terms[low] == term:
            for q in range(entries[low], entries[low + 1]):
                scores[places[q]] += data[p] * values[q]


@numba.njit(nogil=True, cache=True)
def beam_search(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    first,
    last,
    children,
    chunks,
    terms,
    entries,
    places,
    values,
    bias,
    labels,
    beam,
    share,
    out_labels,
    out_scores,
):
    """Best labels of the documents ``first`` to ``last``.

    A child with the score s has, given its parent, the log probability -max(0, 1 - s)^2. Nodes are
    followed by their sum along the path; for a label, that of its path counts ``share``. All paths
    from the root to a label have the same length.
    """
    n_nodes = len(children) - 1
    k = out_labels.shape[1]
    widest = 0
    for node in range(n_nodes):
        widest = max(widest, children[node + 1] - children[node])
    scores = np.empty(widest, np.float32)
    here = np.empty(beam, np.int64)
    here_p = np.empty(beam, np.float32)
    below = np.empty(beam, np.int64)
    below_p = np.empty(beam, np.float32)
    one = np.float32(1.0)
    for i in range(first, last):
        best = out_labels[i - first]
        value = out_scores[i - first]
        found = 0
        here[0], here_p[0], n_here = 0, np.float32(0.0), 1
        while n_here > 0:
            n_below = 0
            for h in range(n_here):
                node = here[h]
                c0, c1 = children[node], children[node + 1]
                for c in range(c0, c1):
                    scores[c - c0] = bias[c - 1]
                _score_children(
                    indices, data, indptr[i], indptr[i + 1], terms, entries, places, values,
                    chunks[node], chunks[node + 1], scores,
                )  # fmt: skip
                for c in range(c0, c1):
                    s = scores[c - c0]
                    if s == -np.inf:
                        continue
                    short = max(one - s, np.float32(0.0))
                    p = (here_p[h] if c < n_nodes else share * here_p[h]) - short * short
                    if c < n_nodes:  # keep the best nodes; of equals the first
                        if n_below == beam and p <= below_p[beam - 1]:
                            continue
                        slot = n_below if n_below < beam else beam - 1
                        while slot > 0 and below_p[slot - 1] < p:
                            below_p[slot], below[slot] = below_p[slot - 1], below[slot - 1]
                            slot -= 1
                        below_p[slot], below[slot] = p, c
                        n_below = min(n_below + 1, beam)
                    elif k > 0:  # keep the best labels; of equals those that come first
                        label = labels[c - n_nodes]
                        if found == k and (
                            p < value[k - 1] or (p == value[k - 1] and label > best[k - 1])
                        ):
                            continue
                        slot = found if found < k else k - 1
                        while slot > 0 and (
                            value[slot - 1] < p or (value[slot - 1] == p and best[slot - 1] > label)
                        ):
                            value[slot], best[slot] = value[slot - 1], best[slot - 1]
                            slot -= 1
                        value[slot], best[slot] = p, label
                        found = min(found + 1, k)
            for b in range(n_below):
                here[b], here_p[b] = below[b], below_p[b]
            n_here = n_below


@numba.njit(nogil=True, cache=True)
def count_terms(indptr, indices, rows, n_terms):  # type: ignore[no-untyped-def]
    """How often each term occurs in some rows."""
    counts = np.zeros(n_terms, np.int64)
    for i in rows:
        for p in range(indptr[i], indptr[i + 1]):
            counts[indices[p]] += 1
    return counts


@numba.njit(nogil=True, cache=True)
def take_rows(indptr, indices, data, rows, column):  # type: ignore[no-untyped-def]
    """Some rows, each of whose terms gets another column; as data, indices and row pointers."""
    ends = np.zeros(len(rows) + 1, np.int64)
    for r in range(len(rows)):
        ends[r + 1] = ends[r] + indptr[rows[r] + 1] - indptr[rows[r]]
    taken = np.empty(ends[-1], np.float32)
    columns = np.empty(ends[-1], np.int32)
    for r in range(len(rows)):
        start = indptr[rows[r]]
        for p in range(ends[r + 1] - ends[r]):
            taken[ends[r] + p] = data[start + p]
            columns[ends[r] + p] = column[indices[start + p]]
    return taken, columns, ends


@numba.njit(nogil=True, cache=True)
def halve(indptr, indices, data, n_terms, start, iterations):  # type: ignore[no-untyped-def]
    """Which half of the rows goes together, by spherical 2-means with halves of equal size.

    It begins with one row and the one that is least like it.
    """
    n = len(indptr) - 1
    middle = n // 2
    difference = np.zeros(n_terms, np.float32)
    products = np.empty(n, np.float32)
    for p in range(indptr[start], indptr[start + 1]):
        difference[indices[p]] = data[p]
    _multiply(indptr, indices, data, difference, products)
    farthest = np.argmin(products)
    for p in range(indptr[farthest], indptr[farthest + 1]):
        difference[indices[p]] -= data[p]
    together = np.zeros(n, np.bool_)
    means = np.empty((2, n_terms), np.float32)
    for iteration in range(iterations + 1):
        _multiply(indptr, indices, data, difference, products)
        order = np.argsort(-products, kind="mergesort")
        settled = iteration > 0
        for i in order[:middle]:
            settled = settled and together[i]
        together[:] = False
        for i in order[:middle]:  # one by one: whole arrays take seconds more to compile
            together[i] = True
        if settled:
            break
        means[:] = 0
        for i in range(n):
            mean = means[0] if together[i] else means[1]
            for p in range(indptr[i], indptr[i + 1]):
                mean[indices[p]] += data[p]
        first = second = np.float32(0.0)
        for t in range(n_terms):
            first += means[0, t] * means[0, t]
            second += means[1, t] * means[1, t]
        first = max(np.float32(1e-12), np.sqrt(first))
        second = max(np.float32(1e-12), np.sqrt(second))
        for t in range(n_terms):
            difference[t] = means[0, t] / first - means[1, t] / second
    return together


@numba.njit(nogil=True, cache=True)
def _multiply(indptr, indices, data, vector, products):  # type: ignore[no-untyped-def]
    """The product of each row with a vector."""
    for i in range(len(indptr) - 1):
        total = np.float32(0.0)
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * vector[indices[p]]
        products[i] = total
