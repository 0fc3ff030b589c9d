"""The encoder's half of an edited run: vectors of changed labels, and examples as documents."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.labels.computed import Computed
from depl.labels.growing import Column
from depl.neural.index import LabelIndex
from depl.neural.meanings import Meanings
from depl.neural.overlaid_index import OverlaidIndex

if TYPE_CHECKING:
    from depl.neural.retriever import TextRetriever

OWN = -1  # what belongs to the label is the run's own


class OverlaidRetriever:
    """What edits add to a retriever; in a run without an encoder there is never anything.

    Parameters
    ----------
    base : TextRetriever or None
        That of the run as it was fitted.
    n_labels : int
        How many labels the run was fitted with.
    """

    def __init__(self, base: TextRetriever | None, n_labels: int) -> None:
        self._base = base
        size = 0 if base is None else base.retriever.labels.vectors.shape[1]
        none = np.empty((0, size), np.float32)
        self.row = Column(np.full(n_labels, OWN, np.int64))  # of each label in the next two
        self._vectors, self._name_vectors = Column(none), Column(none)
        self._documents = Column(none)
        self._carried = Column(np.empty((0, 2), np.int64))  # pairs of document row and label
        self._examples = Column(none)  # the vectors of these documents

    def set_vectors(self, positions: Sequence[int], computed: Computed) -> None:
        """Take the vectors that were computed for these labels, in this order."""
        if not computed.vectors.shape[1]:
            return
        first = len(self._vectors)
        for i, position in enumerate(positions):
            self.row[position] = first + i
        self._vectors.extend(computed.vectors)
        self._name_vectors.extend(computed.name_vectors)

    def size(self) -> tuple[int, int]:
        """How many documents were added, and how many pairs of one and a label it carries."""
        return len(self._documents), len(self._carried)

    def cut(self, size: tuple[int, int]) -> None:
        """Forget the documents that were added since it had this size."""
        self._documents.cut(size[0])
        self._carried.cut(size[1])
        self._examples.cut(size[1])

    def add_documents(self, computed: Computed, first: int) -> None:
        """Add the examples of labels, the first of which has the position ``first``."""
        if self._base is None or not len(computed.rows):
            return
        n_documents = self._base.retriever.Y.shape[0] + len(self._documents)
        unseen = computed.rows < 0
        rows = np.where(unseen, n_documents + np.cumsum(unseen) - 1, computed.rows)
        example, label = computed.carried.T
        self._documents.extend(computed.documents[unseen])
        self._carried.extend(np.stack([rows[example], first + label], axis=1))
        self._examples.extend(computed.documents[example])

    def meanings(
        self,
        labels: NDArray[np.int64],
        written: NDArray[np.bool_],
        examples: NDArray[np.int64],
        example_owner: NDArray[np.int64],
    ) -> Meanings | None:
        """The vectors of added labels; None without an encoder.

        Parameters
        ----------
        labels : array
            Their positions.
        written : array
            Whether each has a description that a person wrote: that is its meaning, too.
        examples, example_owner : arrays
            Which of all examples are theirs, and of which of these labels.
        """
        if self._base is None:
            return None
        rows = self.row.view()[labels]
        names = np.empty((len(rows), 0), np.float32)
        if self._base.retriever.names is not None:  # else the vectors are of the names
            names = self._name_vectors.numpy()[rows]
        own = self._examples.numpy()[examples]
        return Meanings.of_labels(self._vectors.numpy()[rows], names, written, own, example_owner)

    def whole(self, gone: NDArray[np.bool_]) -> TextRetriever | None:
        """The run's retriever with all of it; ``gone`` says which labels are tombstones."""
        if self._base is None:
            return None
        retriever = copy(self._base.retriever)
        retriever.labels = self._overlaid(retriever.labels, self._vectors, gone)
        if retriever.names is not None:
            retriever.names = self._overlaid(retriever.names, self._name_vectors, gone)
        n_base, extra = len(retriever.documents), self._documents.numpy()
        if len(extra):
            places = np.arange(n_base, n_base + len(extra))
            none = np.empty(0, np.int64)
            retriever.documents = OverlaidIndex(
                retriever.documents, places, extra, gone=none, n=n_base + len(extra)
            )
        retriever.Y = self._carriers(retriever.Y, n_base + len(extra), gone)
        return replace(self._base, retriever=retriever)

    def _overlaid(self, index: LabelIndex, vectors: Column, gone: NDArray[np.bool_]) -> LabelIndex:
        """An index of the labels with all changes, without tombstones."""
        changed = self.row.numpy() != OWN
        if not gone.any() and not changed.any():
            return index
        new = np.flatnonzero(changed & ~gone)
        return OverlaidIndex(
            index,
            new,
            vectors.view()[self.row.view()[new]],
            gone=np.flatnonzero(changed | gone),
            n=len(gone),
        )

    def _carriers(self, Y: csr_array, n_documents: int, gone: NDArray[np.bool_]) -> csr_array:
        """Which document carries which label: examples last, tombstones on no document."""
        shape = (n_documents, len(gone))
        if not len(self._carried) and not gone.any():
            return csr_array((Y.data, Y.indices, Y.indptr), shape=shape)
        rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
        pairs = np.concatenate([np.stack([rows, Y.indices], axis=1), self._carried.numpy()])
        pairs = pairs[~gone[pairs[:, 1]]]
        ones = np.ones(len(pairs), np.float32)
        return csr_array((ones, tuple(pairs.T)), shape=shape)
