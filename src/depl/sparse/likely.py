"""Documents of the run that probably carry a label of which little is known.

Nobody has labelled the training documents with a new label, and some of them are about it. By its
name and examples each of them carries it with some probability, and these say two things more, each
from 0 to 1:

- *share*: how many documents probably carry it, on a logarithmic scale: a label that fits many of
  them is common;
- *likely documents*: the cosine of a document with what sets the most probable ones, and the
  examples, apart from all others. They have words that no name and none of the examples has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from depl.sparse.breadth import scaled_share

COLUMNS = ("share", "likely documents")

_LEAST = 3  # documents that stand for a label, however rare it seems


@dataclass(frozen=True)
class Likely:
    """What the likely documents of n labels tell.

    Parameters
    ----------
    shares : array of shape (n,)
        The share of the documents that probably carries each label.
    weights : csr_array of shape (n, n_terms)
        What sets its likely documents and its examples apart, of length 1 or empty.
    """

    shares: NDArray[np.float32]
    weights: csr_array

    @classmethod
    def unknown(cls, n: int, n_terms: int) -> Likely:
        """No likely documents of any label."""
        return cls(np.zeros(n, np.float32), csr_array((n, n_terms), dtype=np.float32))

    @classmethod
    def concatenate(cls, parts: Sequence[Likely]) -> Likely:
        """Those of several groups of labels, one or more, one after the other."""
        weights = csr_array(vstack([x.weights for x in parts], format="csr"))
        return cls(np.concatenate([x.shares for x in parts]), weights)

    def of(self, X: csr_array) -> NDArray[np.float32]:
        """The evidence for every label in every document, (n_documents, n, len(COLUMNS)).

        ``X`` has their tf-idf, perhaps over terms more than ``weights``.
        """
        found = np.empty((X.shape[0], len(self.shares), len(COLUMNS)), np.float32)
        found[..., 0] = scaled_share(self.shares)
        known = csr_array(X[:, : self.weights.shape[1]])
        found[..., 1] = (known @ self.weights.T).toarray()
        return np.clip(found, 0.0, 1.0)


def likely_documents(probabilities: NDArray[np.floating]) -> csr_array:
    """For each label its most probable documents, as many as probably carry it: (n, n_documents).

    Parameters
    ----------
    probabilities : array of shape (n_documents, n)
        That a document carries a label; 0 keeps it out.
    """
    m, n = probabilities.shape
    sums = probabilities.sum(axis=0, dtype=np.float64)
    wanted = np.minimum(np.maximum(np.ceil(sums - 1e-9), _LEAST), m).astype(np.int64)
    order = np.argsort(-probabilities, axis=0, kind="stable")
    first = np.arange(m)[:, None] < wanted
    labels = np.broadcast_to(np.arange(n), (m, n))[first]
    documents = order[first]
    chosen = probabilities[documents, labels].astype(np.float32)
    there = chosen > 0
    places = documents[there], labels[there]
    return csr_array(csc_array((chosen[there], places), shape=(m, n)).T)
