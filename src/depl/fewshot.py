r"""Linear weights of a new label from a handful of example documents.

Nobody has gone through the training documents to see which of them deserve the new label, so many
of those nearest to its examples do. An SVM that takes all of them for negatives learns to refuse
what it should find. Two ways around that were compared on a slice of EURLEX57K's training
documents, 150 labels held out of training (their recall@5 and macro-F1@5 by the SVM alone):

======================================  ============  ============
\                                        1 example     5 examples
======================================  ============  ============
SVM against all training documents       1.0   3.0     3.8  13.8
SVM without the nearest 5 % of them     10.5   9.5    32.1  25.6
difference of means, whitened           15.7  12.1    29.3  23.8
======================================  ============  ============

So a label with one or two examples gets the difference of means, and one with more the SVM.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.linear import OneVsAllSVM

_SVM_FROM = 3  # examples
# Training documents to tell a label from: 0.04 s of CPU time a label. With 2,000 it is 0.02 s, and
# the macro-F1@5 above 24.6 in place of 25.8.
_NEGATIVES = 5_000
_NEAREST = 0.05  # the share of the training documents that may deserve the label
_LENGTH, _BIAS = 2.0, -1.0  # of the whitened difference: scores in the range of the SVM's
_NOISE = 1e-4  # added to the variance of a term, so that rare terms do not decide alone


def solve(
    X: csr_array,
    examples: csr_array,
    groups: Sequence[NDArray[np.int64]],
    *,
    exclude: NDArray[np.int64],
    seed: int,
    svm: Mapping[str, Any],
) -> tuple[csr_array, NDArray[np.float32]]:
    """Weights and biases of labels that a few documents exemplify.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        The training documents, none of which is known to carry these labels.
    examples : csr_array of shape (n_examples, n_terms)
        The examples of all labels.
    groups : sequence of arrays
        For each label, which examples are its own; none means no weights and a bias of -inf.
    exclude : array
        Training documents that are examples themselves.
    seed : int
        For the draw of negatives.
    svm : mapping
        The settings of ``OneVsAllSVM``.
    """
    drawn = np.random.default_rng(seed).permutation(X.shape[0])[:_NEGATIVES]
    negatives = csr_array(X[np.setdiff1d(drawn, exclude)])
    mean = np.asarray(X.mean(axis=0)).ravel()
    spread = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2 + _NOISE)
    cull = float(svm.get("cull", 0.0))

    def one(group: NDArray[np.int64]) -> tuple[csr_array, float]:
        own = csr_array(examples[group])
        if not len(group):
            return csr_array((1, X.shape[1]), dtype=np.float32), -np.inf
        if len(group) < _SVM_FROM or not negatives.shape[0]:
            return _difference(own, mean, spread, cull), _BIAS
        return _svm(own, negatives, svm)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        solved = list(pool.map(one, groups))
    weights = csr_array(vstack([w for w, _ in solved], format="csr"))
    return weights, np.array([bias for _, bias in solved], np.float32)


def _difference(
    own: csr_array, mean: NDArray[np.floating], spread: NDArray[np.floating], cull: float
) -> csr_array:
    """From all documents to the examples, each term in units of its spread."""
    w = (np.asarray(own.mean(axis=0)).ravel() - mean) / spread
    w *= _LENGTH / max(float(np.linalg.norm(w)), 1e-30)
    return csr_array(np.where(np.abs(w) >= cull, w, 0.0).astype(np.float32)[None, :])


def _svm(
    own: csr_array, negatives: csr_array, settings: Mapping[str, Any]
) -> tuple[csr_array, float]:
    """One SVM, the training documents most like the examples left out."""
    centroid = np.asarray(own.mean(axis=0)).ravel()
    order = np.argsort(-(negatives @ centroid), kind="stable")
    far = np.sort(order[int(np.ceil(_NEAREST * len(order))) :])
    n = own.shape[0]
    both = csr_array(vstack([own, negatives[far]], format="csr"))
    carried = csr_array(
        (np.ones(n, np.float32), (np.arange(n), np.zeros(n, np.int64))), shape=(both.shape[0], 1)
    )
    fitted = OneVsAllSVM(**{**settings, "n_threads": 1}).fit(both, carried)
    return fitted.weights_, float(fitted.bias_[0])
