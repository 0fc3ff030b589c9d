"""How often training documents have the name of a label in them, and how often they carry it then.

"Analysis" is in every tenth document and hardly ever what one is about; where "Beekeeping" is in a
text, the label is right. For a label with few documents, or none, nothing else tells how much the
match of its name is worth. What it brings is what ``benchmarks/name_use.py`` prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.sparse import _name_kernels
from depl.sparse.names import NameMatch


@dataclass(frozen=True)
class NameUse:
    """Counts of documents, for every label.

    Parameters
    ----------
    said : array of int64, shape (n_labels,)
        Documents that have all words of one of the label's names; -1 where no name has a word that
        counts.
    carried : array of int64, shape (n_labels,)
        Those of them that carry the label.
    """

    said: NDArray[np.int64]
    carried: NDArray[np.int64]

    @classmethod
    def of(cls, names: NameMatch, X: csr_array, Y: csr_array) -> NameUse:
        """Count in documents with these vectors and labels; the names have weights."""
        shares = names.shares()
        sizes = np.bincount(shares.indices, minlength=shares.shape[1])
        said, carried = np.zeros((2, Y.shape[1]), np.int64)
        arrays: list[NDArray[Any]] = []
        for matrix in (X, shares, Y):
            arrays += matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
        arrays += sizes, names.owner, said, carried
        _name_kernels.count_names(*arrays)
        named = np.bincount(names.owner[sizes > 0], minlength=len(said)) > 0
        return cls(np.where(named, said, -1), carried)

    def without(self, other: NameUse) -> NameUse:
        """In the documents of this that are not among the other's."""
        said = np.where(self.said < 0, -1, self.said - other.said)
        return NameUse(said, self.carried - other.carried)

    def facts(self) -> NDArray[np.float32]:
        """What trees can read, (n_labels, 2): ln(1 + said), and the share that carries the label.

        NaN where there is no name.
        """
        said = np.where(self.said < 0, np.nan, self.said)
        return np.stack([np.log1p(said), self.carried / (1 + said)], axis=1).astype(np.float32)
