"""Labels whose names are in the text: the oldest way to index; it needs no examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.core.storage import read_tensors, write_tensors

_FILE = "names.safetensors"
_CHUNK = 512  # documents whose matches are in memory together


class NameMatch:
    """Scores a label by the cosine of its best-matching name with the document.

    Parameters
    ----------
    names : csr_array of shape (n_names, n_terms)
        Tf-idf of names, rows of length 1 or empty.
    owner : array of shape (n_names,)
        The label each name belongs to, ascending.
    """

    def __init__(self, names: csr_array, owner: NDArray[np.int64]) -> None:
        self.names = names
        self.owner = owner
        self._terms = csr_array(names.T)

    def rank(self, X: csr_array, k: int) -> Ranking:
        """The k best-matching labels of every document; those without a match are left out."""
        return Ranking.concatenate(
            [self._rank(X[i : i + _CHUNK], k) for i in range(0, max(1, X.shape[0]), _CHUNK)]
        )

    def save(self, folder: Path) -> None:
        """Write the names' vectors, and the label of each."""
        write_tensors(folder / _FILE, {"names": self.names, "owner": self.owner})

    @classmethod
    def load(cls, folder: Path) -> NameMatch:
        """Read what ``save`` wrote."""
        kept = read_tensors(folder / _FILE, "names", "owner")
        names, owner = kept["names"], kept["owner"]
        if (
            owner.shape != names.shape[:1]
            or not np.issubdtype(owner.dtype, np.integer)
            or owner.min(initial=0) < 0
            or (np.diff(owner) < 0).any()
        ):
            raise RunError(
                f"{folder / _FILE} is damaged: its {names.shape[0]} names do not belong to labels "
                f"in their order. Delete its folder and fit again."
            )
        return cls(names, owner)

    def _rank(self, X: csr_array, k: int) -> Ranking:
        matches = csr_array(X @ self._terms)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(matches.indptr))
        labels, scores = self.owner[matches.indices], matches.data
        # Keep a label's best name and drop its others.
        order = np.lexsort((-scores, labels, rows))
        rows, labels, scores = rows[order], labels[order], scores[order]
        best = np.ones(len(rows), bool)
        best[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
        return Ranking.from_pairs(rows[best], labels[best], scores[best], X.shape[0], k)


def names_and_owners(
    names: Sequence[str], alt_names: Sequence[Sequence[str]]
) -> tuple[list[str], NDArray[np.int64]]:
    """All names of all labels, and the label of each.

    Examples
    --------
    >>> names_and_owners(["wine", "mead"], [[], ["honey wine"]])
    (['wine', 'mead', 'honey wine'], array([0, 1, 1]))
    """
    every = [(name, *others) for name, others in zip(names, alt_names, strict=True)]
    owner = np.repeat(np.arange(len(every)), [len(group) for group in every])
    return [name for group in every for name in group], owner
