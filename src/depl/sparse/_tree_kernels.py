"""The compiled beam search of the label tree.

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
