"""How broad a label is of which little is known: a broad one is carried by more documents.

Whatever the document, two properties of the label itself speak for it, each from 0 to 1:

- *common words*: in which share of the training documents the words of its name are, on a
  logarithmic scale;
- *variety*: how little its examples resemble each other, likewise; 0 with fewer than two.

On 3,000 training documents of debtags and 60 labels that a run on 1,500 others did not know, each
with five examples, these lowered the log loss from 0.121 to 0.110; on EURLEX57K it stayed the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.sparse.evidence import Evidence

COLUMNS = ("common words", "variety")

_SHARE = 0.003  # shares of documents far below this are alike
_COSINE = 0.01  # and such cosines


def breadth(evidence: Evidence, idf: NDArray[np.float32]) -> NDArray[np.float32]:
    """The two properties of every label, (n, len(COLUMNS)).

    Parameters
    ----------
    evidence : Evidence
        Names and examples of the labels.
    idf : array of shape (n_terms,)
        Of the terms in the names.
    """
    n = evidence.profiles.shape[0]
    found = np.zeros((n, len(COLUMNS)), np.float32)
    if not n:
        return found
    squares = csr_array(evidence.names.multiply(evidence.names))
    share = np.maximum.reduceat(
        squares @ np.exp(1.0 - idf.astype(np.float64)),
        np.searchsorted(evidence.name_owner, np.arange(n)),
    )
    found[:, 0] = np.log1p(np.clip(share, 0.0, 1.0) / _SHARE) / np.log1p(1.0 / _SHARE)
    several = np.flatnonzero(evidence.counts > 1)
    if len(several):
        cosine = np.clip(_mean_cosines(evidence)[several], 0.0, 1.0)
        found[several, 1] = 1.0 - np.log1p(cosine / _COSINE) / np.log1p(1.0 / _COSINE)
    return np.clip(found, 0.0, 1.0)


def _mean_cosines(evidence: Evidence) -> NDArray[np.float64]:
    """The mean cosine of two of each label's examples."""
    examples, owner = evidence.examples, evidence.example_owner
    n, ones = evidence.profiles.shape[0], np.ones(len(owner), np.float32)
    members = csr_array((ones, (owner, np.arange(len(owner)))), shape=(n, len(owner)))
    # The square of a sum is that of its terms, and every pair twice.
    sums, itself = csr_array(members @ examples), csr_array(examples.multiply(examples))
    pairs = sums.multiply(sums).sum(axis=1) - members @ itself.sum(axis=1)
    counts = evidence.counts
    means: NDArray[np.float64] = np.asarray(pairs, np.float64) / np.maximum(
        counts * (counts - 1), 1
    )
    return means
