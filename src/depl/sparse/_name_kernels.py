"""The compiled loop that matches documents with the names of labels."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def best_names(  # type: ignore[no-untyped-def]
    indptr, indices, data, n_indptr, n_indices, n_data, owner, out_labels, out_scores
):
    """The labels with the best products of their names with each document; by label where equal.

    ``n_*`` are the names term by term, ``owner`` is the label of each name, ascending.
    """
    k = out_labels.shape[1]
    if k == 0:
        return
    sums = np.zeros(len(owner), np.float32)
    met = np.zeros(len(owner), np.bool_)
    matched = np.empty(len(owner), np.int64)
    for i in range(len(indptr) - 1):
        n = 0
        for p in range(indptr[i], indptr[i + 1]):
            term, value = indices[p], data[p]
            for q in range(n_indptr[term], n_indptr[term + 1]):
                name = n_indices[q]
                if not met[name]:
                    met[name] = True
                    matched[n] = name
                    n += 1
                sums[name] += value * n_data[q]
        best, score = out_labels[i], out_scores[i]
        found = 0
        for m in range(n):
            name = matched[m]
            label, s = owner[name], sums[name]
            # Only a label's best name counts; of equal ones the first.
            other, better = name - 1, False
            while not better and other >= 0 and owner[other] == label:
                better = met[other] and sums[other] >= s
                other -= 1
            other = name + 1
            while not better and other < len(owner) and owner[other] == label:
                better = met[other] and sums[other] > s
                other += 1
            if not better:
                found = _insert(best, score, found, label, s)
        for m in range(n):
            met[matched[m]] = False
            sums[matched[m]] = np.float32(0.0)


@numba.njit(nogil=True, cache=True)
def whole_names(  # type: ignore[no-untyped-def]
    ends, terms, starts, by_first, n_ends, n_terms, owner, weight, out_labels, out_scores
):
    """The labels with the heaviest names whose terms are in a row in each document.

    ``by_first`` are names in the order of their first terms, from ``starts`` of the term on;
    ``n_ends`` and ``n_terms`` are the terms of all names.
    """
    k = out_labels.shape[1]
    if k == 0:
        return
    heaviest = np.zeros(owner.max() + 1 if len(owner) else 0, np.float32)
    met = np.empty(len(heaviest), np.int64)
    for i in range(len(ends) - 1):
        n = 0
        for p in range(ends[i], ends[i + 1]):
            term = terms[p]
            if term < 0 or term >= len(starts) - 1:
                continue
            for q in range(starts[term], starts[term + 1]):
                name = by_first[q]
                size = n_ends[name + 1] - n_ends[name]
                label = owner[name]
                if p + size > ends[i + 1] or weight[name] <= heaviest[label]:
                    continue
                same = 1
                while same < size and terms[p + same] == n_terms[n_ends[name] + same]:
                    same += 1
                if same < size:
                    continue
                if heaviest[label] == 0:
                    met[n] = label
                    n += 1
                heaviest[label] = weight[name]
        found = 0
        for m in range(n):
            label = met[m]
            found = _insert(out_labels[i], out_scores[i], found, label, heaviest[label])
            heaviest[label] = np.float32(0.0)


@numba.njit(nogil=True, cache=True)
def _insert(best, score, found, label, s):  # type: ignore[no-untyped-def]
    """Put a label among the best, by score and then by label; returns how many there are."""
    k = len(best)
    if found == k and (s < score[k - 1] or (s == score[k - 1] and label > best[k - 1])):
        return found
    slot = found if found < k else k - 1
    while slot > 0 and (score[slot - 1] < s or (score[slot - 1] == s and best[slot - 1] > label)):
        score[slot], best[slot] = score[slot - 1], best[slot - 1]
        slot -= 1
    score[slot], best[slot] = s, label
    return min(found + 1, k)


@numba.njit(nogil=True, cache=True)
def count_names(  # type: ignore[no-untyped-def]
    indptr, indices, n_indptr, n_indices, y_indptr, y_indices, sizes, owner, said, carried
):
    """Documents that have all terms of a name of each label, and those of them that carry it.

    ``n_*`` are the names of each term, which have ``sizes`` terms; ``y_*`` the documents' labels.
    """
    met = np.zeros(len(sizes), np.int64)
    last = np.full(len(said), -1, np.int64)
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            for q in range(n_indptr[indices[p]], n_indptr[indices[p] + 1]):
                name = n_indices[q]
                met[name] += 1
                if met[name] == sizes[name] and last[owner[name]] != i:
                    last[owner[name]] = i
                    said[owner[name]] += 1
        for p in range(indptr[i], indptr[i + 1]):
            for q in range(n_indptr[indices[p]], n_indptr[indices[p] + 1]):
                met[n_indices[q]] = 0
        for p in range(y_indptr[i], y_indptr[i + 1]):
            carried[y_indices[p]] += last[y_indices[p]] == i
