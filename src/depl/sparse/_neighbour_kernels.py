"""Compiled search for the documents with the most similar words."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def nearest(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    first,
    last,
    t_indptr,
    t_documents,
    t_values,
    d_indptr,
    d_terms,
    d_values,
    budget,
    rescored,
    out_documents,
    out_scores,
):
    """The documents with the largest products with the texts ``first`` to ``last``.

    ``t_*`` are the documents term by term, ``d_*`` the same document by document. The terms of a
    text are looked up from the rarest on, as long as the budget of entries lasts; if it does not,
    the products of the best ``rescored`` documents are computed again with all terms.
    """
    k = out_documents.shape[1]
    n, n_terms = len(d_indptr) - 1, len(t_indptr) - 1
    sums = np.empty(n, np.float32)
    text = np.zeros(n_terms, np.float32)
    heap = np.empty(max(rescored, k), np.int64)
    for i in range(first, last):
        terms = indices[indptr[i] : indptr[i + 1]]
        values = data[indptr[i] : indptr[i + 1]]
        sizes = np.empty(len(terms), np.int64)
        for a in range(len(terms)):
            sizes[a] = t_indptr[terms[a] + 1] - t_indptr[terms[a]]
        for d in range(n):
            sums[d] = 0.0
        used, whole = 0, True
        for a in np.argsort(sizes):
            if used > 0 and used + sizes[a] > budget:
                whole = False
                break
            used += sizes[a]
            for p in range(t_indptr[terms[a]], t_indptr[terms[a] + 1]):
                sums[t_documents[p]] += values[a] * t_values[p]
        size = _gather(sums, heap, k if whole else rescored)
        if not whole:
            for a in range(len(terms)):
                text[terms[a]] = values[a]
            for j in range(size):
                d = heap[j]
                product = np.float32(0.0)
                for p in range(d_indptr[d], d_indptr[d + 1]):
                    product += text[d_terms[p]] * d_values[p]
                sums[d] = product
            for a in range(len(terms)):
                text[terms[a]] = 0.0
        _sort(sums, heap[:size], out_documents[i - first], out_scores[i - first])


@numba.njit(nogil=True, cache=True)
def _gather(sums, heap, room):  # type: ignore[no-untyped-def]
    """The documents with the largest sums above 0, in no order; of equals the first. How many."""
    size = 0
    for d in range(len(sums)):
        s = sums[d]
        if s <= 0.0 or (size == room and s <= sums[heap[0]]):
            continue
        if size < room:  # from the end of the heap up
            j = size
            size += 1
            while j > 0 and _behind(sums, d, heap[(j - 1) // 2]):
                heap[j] = heap[(j - 1) // 2]
                j = (j - 1) // 2
        else:  # in place of the last, which is on top, and down
            j = 0
            while 2 * j + 1 < size:
                c = 2 * j + 1
                if c + 1 < size and _behind(sums, heap[c + 1], heap[c]):
                    c += 1
                if not _behind(sums, heap[c], d):
                    break
                heap[j] = heap[c]
                j = c
        heap[j] = d
    return size


@numba.njit(nogil=True, cache=True)
def _behind(sums, one, other):  # type: ignore[no-untyped-def]
    """Whether a document comes after another: by its sum, and of equals by its position."""
    return sums[one] < sums[other] or (sums[one] == sums[other] and one > other)


@numba.njit(nogil=True, cache=True)
def _sort(sums, found, documents, scores):  # type: ignore[no-untyped-def]
    """The best of some documents, from the best on."""
    k, filled = len(documents), 0
    for d in found:
        if filled == k and _behind(sums, d, documents[k - 1]):
            continue
        slot = filled if filled < k else k - 1
        while slot > 0 and _behind(sums, documents[slot - 1], d):
            documents[slot] = documents[slot - 1]
            scores[slot] = scores[slot - 1]
            slot -= 1
        documents[slot] = d
        scores[slot] = sums[d]
        filled = min(filled + 1, k)
