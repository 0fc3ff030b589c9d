"""What speaks for labels that no SVM was trained for: their names, and a few example documents.

A label of which little is known is compared with a document in eight ways, each from 0 to 1:

- *name*: the cosine of its best-matching name with the document, as in ``names``;
- *name words*: how much of that name is in the document. In a long document the cosine of a name
  is small even where all of it is there;
- *examples*: the cosine of the mean of its examples with the document;
- *what sets them apart*: the same, with the difference between this mean and that of all documents,
  each term in units of its spread;
- *nearest example*: the largest cosine of one of them;
- *labels alike*: whether the SVM, which knows other labels, sees the same labels in the examples
  and in the document; a rare one that they share says more. Other labels have taught it which words
  matter;
- *name in title*: the cosine of its best-matching name with the document's title;
- *examples in title*: that of the mean of its examples. What the title names, a document is about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking

COLUMNS = (
    *("name", "name words", "examples", "apart", "nearest example", "labels alike"),
    *("name in title", "examples in title"),
)
ALIKE = COLUMNS.index("labels alike")
NEAREST = COLUMNS.index("nearest example")

SEEN = 50  # of the SVM's best labels, those that make up what it sees in a document


@dataclass(frozen=True)
class Evidence:
    """Names and examples of n labels, ready to be compared with documents.

    Parameters
    ----------
    names : csr_array of shape (n_names, n_terms)
        Tf-idf of their names, rows of length 1 or empty.
    name_owner : array of shape (n_names,)
        The label of each name, ascending; every label has one or more.
    examples : csr_array of shape (n_examples, n_terms)
        Tf-idf of their examples; one that belongs to several labels is there for each.
    example_owner : array of shape (n_examples,)
        The label of each example, ascending.
    weights : csr_array of shape (n, n_terms)
        What sets their examples apart, of length 1 or empty.
    profiles : csr_array of shape (n, n_other_labels)
        The mean ``profiles`` of each label's examples, of length 1 or empty.
    bounds : array of shape (n,)
        In which share of the documents each label may be at most, by ``breadth.bounds``.
    """

    names: csr_array
    name_owner: NDArray[np.int64]
    examples: csr_array
    example_owner: NDArray[np.int64]
    weights: csr_array
    profiles: csr_array
    bounds: NDArray[np.float32]

    def some(self, labels: slice) -> Evidence:
        """That of some labels that follow each other."""
        first, last = labels.start, labels.stop
        names = slice(*np.searchsorted(self.name_owner, [first, last]))
        examples = slice(*np.searchsorted(self.example_owner, [first, last]))
        return Evidence(
            names=csr_array(self.names[names]),
            name_owner=self.name_owner[names] - first,
            examples=csr_array(self.examples[examples]),
            example_owner=self.example_owner[examples] - first,
            weights=csr_array(self.weights[labels]),
            profiles=csr_array(self.profiles[labels]),
            bounds=self.bounds[labels],
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many examples each label has."""
        return np.bincount(self.example_owner, minlength=self.profiles.shape[0])

    def of(self, X: csr_array, profiles: csr_array, titles: csr_array) -> NDArray[np.float32]:
        """The evidence for every label in every document, (n_documents, n, len(COLUMNS)).

        Parameters
        ----------
        X : csr_array of shape (n_documents, n_terms)
            Their tf-idf.
        profiles : csr_array of shape (n_documents, n_other_labels)
            What the SVM sees in them, by ``profiles``.
        titles : csr_array of shape (n_documents, n_terms)
            The tf-idf of their titles; rows of documents without one are empty.
        """
        n = self.profiles.shape[0]
        found = np.zeros((X.shape[0], n, len(COLUMNS)), np.float32)
        if not n or not X.shape[0]:
            return found
        there = csr_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)
        first = np.searchsorted(self.name_owner, np.arange(n))
        squares = csr_array(self.names.multiply(self.names))
        found[..., 0] = np.maximum.reduceat((X @ self.names.T).toarray(), first, axis=1)
        found[..., 1] = np.maximum.reduceat((there @ squares.T).toarray(), first, axis=1)
        found[..., 6] = np.maximum.reduceat((titles @ self.names.T).toarray(), first, axis=1)
        counts = self.counts
        have = np.flatnonzero(counts)
        if len(have):
            cosines = (X @ self.examples.T).toarray()
            first = np.searchsorted(self.example_owner, have)
            means = unit_rows(csr_array(members_of(self.example_owner, n) @ self.examples))
            found[..., 2] = (X @ means.T).toarray()
            found[..., 3] = (X @ self.weights.T).toarray()
            found[:, have, 4] = np.maximum.reduceat(cosines, first, axis=1)
            found[..., 5] = (profiles @ self.profiles.T).toarray()
            found[..., 7] = (titles @ means.T).toarray()
        return np.clip(found, 0.0, 1.0)


def rarity(counts: NDArray[np.integer], n_documents: int) -> NDArray[np.float64]:
    """How much it says that two documents share a label which so many of all documents carry."""
    shares = np.maximum(counts, 0.5) / max(1, n_documents)
    rarities: NDArray[np.float64] = -np.log(np.minimum(shares, 1.0))
    return rarities


def profiles(ranking: Ranking, rarities: NDArray[np.floating]) -> csr_array:
    """What the SVM sees in documents, by its ranking of their labels: rows of length 1 or empty.

    The score of a document that has nothing to do with a label is about -1. ``rarities`` has the
    ``rarity`` of every label that the SVM knows.
    """
    best = ranking.top(SEEN)
    raised = np.maximum(np.where(best.indices >= 0, best.scores, -1.0) + 1.0, 0.0)
    listed = Ranking(np.where(raised > 0, best.indices, -1).astype(np.int32), raised)
    seen = listed.to_csr(len(rarities))
    seen.data *= rarities[seen.indices]
    return unit_rows(seen)


def mean_profiles(
    ranking: Ranking, owner: NDArray[np.integer], n: int, rarities: NDArray[np.floating]
) -> csr_array:
    """The profiles of some labels' examples, added up and of length 1.

    Parameters
    ----------
    ranking : Ranking
        Of the examples, by the SVM.
    owner : array of shape (n_examples,)
        The label of each.
    n : int
        How many labels have examples or none.
    rarities : array of shape (n_known,)
        The ``rarity`` of every label that the SVM knows.
    """
    return unit_rows(csr_array(members_of(owner, n) @ profiles(ranking, rarities)))


def members_of(owner: NDArray[np.integer], n: int) -> csr_array:
    """Which examples each of n labels has, (n, n_examples): times their rows it adds those up."""
    places = owner, np.arange(len(owner))
    return csr_array((np.ones(len(owner), np.float32), places), shape=(n, len(owner)))


def over_columns(matrix: csr_array, n: int) -> csr_array:
    """The matrix over n columns, as many as it has or more: the others are empty."""
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], n))


def unit_rows(matrix: csr_array) -> csr_array:
    """The matrix with rows of length 1; empty ones stay empty."""
    squares = np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel()
    scale = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
    data = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
    arrays = data.astype(np.float32), matrix.indices, matrix.indptr
    return csr_array(arrays, shape=matrix.shape)
