"""How broad a label is of which little is known: a broad one is carried by more documents.

Whatever the document, three properties of the label itself speak for it, each from 0 to 1:

- *common words*: in which share of the training documents the words of its name are, on a
  logarithmic scale;
- *variety*: how little its examples resemble each other, likewise; 0 with fewer than two;
- *bound*: in which share of the documents it can be, judging by the labels that the SVM sees in
  several of its examples. If four examples of five carry a label that one document in a hundred
  has, then few others can carry the new one. Likewise; 0 without examples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.sparse.evidence import SEEN, Evidence, members_of

COLUMNS = ("common words", "variety", "bound")

_SHARE = 0.003  # shares of documents far below this are alike
_SEVERAL = 1.5  # examples that a label is seen in, to bound another
_COSINE = 0.01  # and such cosines


def breadth(evidence: Evidence, idf: NDArray[np.float32]) -> NDArray[np.float32]:
    """The three properties of every label, (n, len(COLUMNS)).

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
    found[:, 0] = scaled_share(share)
    found[:, 2] = np.where(evidence.counts > 0, scaled_share(evidence.bounds), 0.0)
    several = np.flatnonzero(evidence.counts > 1)
    if len(several):
        cosine = np.clip(_mean_cosines(evidence)[several], 0.0, 1.0)
        found[several, 1] = 1.0 - np.log1p(cosine / _COSINE) / np.log1p(1.0 / _COSINE)
    return np.clip(found, 0.0, 1.0)


def bounds(
    ranking: Ranking, owner: NDArray[np.integer], n: int, shares: NDArray[np.float64]
) -> NDArray[np.float32]:
    """In which share of the documents each of n labels may be at most, (n,); 1 if nothing tells.

    Of the new label's documents, the share p carry some other label, which is in the share s of all
    documents: then the new one is in s / p of them at most.

    Parameters
    ----------
    ranking : Ranking
        Of the examples, by the SVM; a score of -1 or less is no label, one of 0 or more is one.
    owner : array of shape (n_examples,)
        The label of each example.
    shares : array of shape (n_known,)
        The share of the documents that carries each label of the ranking.
    """
    best = ranking.top(SEEN)
    sure = np.where(best.indices >= 0, np.clip(best.scores + 1.0, 0.0, 1.0), 0.0)
    listed = Ranking(np.where(sure > 0, best.indices, -1).astype(np.int32), sure)
    seen = csr_array(members_of(owner, n) @ listed.to_csr(len(shares)))
    of_label = np.repeat(np.arange(n), np.diff(seen.indptr))
    several = seen.data >= _SEVERAL
    counts = np.bincount(owner, minlength=n)[of_label[several]]
    found = np.ones(n)
    at_most = shares[seen.indices[several]] * counts / seen.data[several]
    np.minimum.at(found, of_label[several], at_most)
    return found.astype(np.float32)


def scaled_share(share: NDArray[np.floating]) -> NDArray[np.float64]:
    """A share of the documents on a logarithmic scale from 0 to 1."""
    scaled: NDArray[np.float64] = np.log1p(np.clip(share, 0.0, 1.0) / _SHARE)
    scaled /= np.log1p(1.0 / _SHARE)
    return scaled


def _mean_cosines(evidence: Evidence) -> NDArray[np.float64]:
    """The mean cosine of two of each label's examples."""
    examples, owner = evidence.examples, evidence.example_owner
    members = members_of(owner, evidence.profiles.shape[0])
    # The square of a sum is that of its terms, and every pair twice.
    sums, itself = csr_array(members @ examples), csr_array(examples.multiply(examples))
    pairs = sums.multiply(sums).sum(axis=1) - members @ itself.sum(axis=1)
    counts = evidence.counts
    means: NDArray[np.float64] = np.asarray(pairs, np.float64) / np.maximum(
        counts * (counts - 1), 1
    )
    return means
