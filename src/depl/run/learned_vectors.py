"""What an encoder makes of what a run has learnt: vectors that join its indexes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.tensors import read_tensors, write_tensors
from depl.neural.overlaid_index import with_vectors

if TYPE_CHECKING:
    from depl.neural.retriever import Retriever

_FILE = "encoded.safetensors"


@dataclass(frozen=True)
class LearnedVectors:
    """Vectors of the documents of the feedback and of the labels that were learnt.

    Parameters
    ----------
    documents : array of shape (n, size)
        The vectors of the documents of the feedback, of length 1.
    labels : array of shape (m,)
        Positions of the labels whose texts are others than in the fit.
    label_vectors : array of shape (m, size)
        The vectors of these texts, as in the index of labels.
    """

    documents: NDArray[np.float32]
    labels: NDArray[np.int64]
    label_vectors: NDArray[np.float32]

    def taken_in(self, retriever: Retriever, places: NDArray[np.int64], Y: csr_array) -> Retriever:
        """The retriever of the fit with these vectors in its indexes.

        ``places`` are the positions of the documents of the feedback; Y is that of all documents.
        """
        new = copy(retriever)
        n_documents, n_labels = Y.shape
        new.documents = with_vectors(new.documents, places, self.documents, n_documents)
        new.labels = with_vectors(new.labels, self.labels, self.label_vectors, n_labels)
        new.Y = Y
        return new

    def save(self, folder: Path) -> None:
        """Write all of it into one file."""
        write_tensors(folder / _FILE, dict(vars(self)))

    @classmethod
    def load(cls, folder: Path) -> LearnedVectors | None:
        """Read what ``save`` wrote; None where it wrote nothing."""
        path = folder / _FILE
        if not path.exists():
            return None
        return cls(**read_tensors(path, *cls.__dataclass_fields__))
