"""What speaks for labels that no encoder was trained for: texts that mean the same.

A label of which little is known is compared with a document in three further ways where there is an
encoder, each from 0 to 1:

- *name's meaning*: the cosine of the document's vector with that of the label's name, or of the
  description that a person wrote;
- *examples' meaning*: the cosine with the mean of its examples' vectors;
- *nearest meaning*: the largest cosine with one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("name's meaning", "examples' meaning", "nearest meaning")


@dataclass(frozen=True)
class Meanings:
    """Vectors of the names and examples of n labels, all of length 1.

    Parameters
    ----------
    names : array of shape (n_names, size)
        Of names and descriptions.
    name_owner : array of shape (n_names,)
        The label of each, ascending; every label has one or more.
    examples : array of shape (n_examples, size)
        Of the examples; one that belongs to several labels is there for each.
    example_owner : array of shape (n_examples,)
        The label of each, ascending.
    """

    names: NDArray[np.float32]
    name_owner: NDArray[np.int64]
    examples: NDArray[np.float32]
    example_owner: NDArray[np.int64]

    @classmethod
    def of_labels(
        cls,
        vectors: NDArray[np.float32],
        name_vectors: NDArray[np.float32],
        written: NDArray[np.bool_],
        examples: NDArray[np.float32],
        example_owner: NDArray[np.int64],
    ) -> Meanings:
        """Those of labels, of their names and of what a person wrote.

        Parameters
        ----------
        vectors, name_vectors : arrays of shape (n, size)
            Of the labels, and of their names alone; (n, 0) where the former are of the names.
        written : array of shape (n,)
            Whether each has a description that a person wrote: that is its meaning, too.
        examples, example_owner
            As in the class.
        """
        places = np.arange(len(vectors))
        owner = places
        if name_vectors.shape[1]:
            vectors = np.concatenate([name_vectors, vectors[written]])
            owner = np.concatenate([places, places[written]])
        order = np.argsort(owner, kind="stable")
        return cls(unit_length(vectors[order]), owner[order], examples, example_owner)

    def some(self, labels: slice) -> Meanings:
        """Those of some labels that follow each other."""
        names = slice(*np.searchsorted(self.name_owner, [labels.start, labels.stop]))
        examples = slice(*np.searchsorted(self.example_owner, [labels.start, labels.stop]))
        return Meanings(
            self.names[names],
            self.name_owner[names] - labels.start,
            self.examples[examples],
            self.example_owner[examples] - labels.start,
        )

    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The evidence for every label in every document, (n_documents, n, len(COLUMNS)).

        Parameters
        ----------
        vectors : array of shape (n_documents, size)
            Of the documents, of length 1.
        """
        n = int(self.name_owner.max(initial=-1)) + 1
        found = np.zeros((len(vectors), n, len(COLUMNS)), np.float32)
        if not n or not len(vectors):
            return found
        first = np.searchsorted(self.name_owner, np.arange(n))
        found[..., 0] = np.maximum.reduceat(vectors @ self.names.T, first, axis=1)
        have, first = np.unique(self.example_owner, return_index=True)
        if len(have):
            cosines = vectors @ self.examples.T
            lengths = np.linalg.norm(np.add.reduceat(self.examples, first, axis=0), axis=1)
            sums = np.add.reduceat(cosines, first, axis=1)
            found[:, have, 1] = sums / np.maximum(lengths, 1e-12)
            found[:, have, 2] = np.maximum.reduceat(cosines, first, axis=1)
        return np.clip(found, 0.0, 1.0)


def unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors scaled to length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return scaled
