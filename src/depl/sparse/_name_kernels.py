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
            last = found == k and (s < score[k - 1] or (s == score[k - 1] and label > best[k - 1]))
            if better or last:
                continue
            slot = found if found < k else k - 1
            while slot > 0 and (
                score[slot - 1] < s or (score[slot - 1] == s and best[slot - 1] > label)
            ):
                score[slot], best[slot] = score[slot - 1], best[slot - 1]
                slot -= 1
            score[slot], best[slot] = s, label
            found = min(found + 1, k)
        for m in range(n):
            met[matched[m]] = False
            sums[matched[m]] = np.float32(0.0)
