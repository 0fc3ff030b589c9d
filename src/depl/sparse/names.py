"""Labels whose names are in the text: the oldest way to index; it needs no examples.

There are two ways to look. The cosine of a name with the document asks how much of the *document*
the name is about; a long document has a low one with every name. Coverage asks how much of the
*name* is in the document, however long it is. Each finds labels that the other does not: fused with
the SVM, coverage beside the cosine brought 0.2 to 0.5 points of P@5 and 0.3 to 1.3 of PSP@5 on
parts of training data of EURLEX57K, TIB-en and two corpora made from Debian.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.core.tensors import read_tensors, write_tensors
from depl.sparse import _name_kernels
from depl.sparse.duals import kernel_arrays, unwritable

_FILE = "names.safetensors"
_LONGER = 0.02  # of two names that are wholly in a text, the one with more and rarer words is first


class NameMatch:
    """Scores a label by its best-matching name.

    Parameters
    ----------
    names : csr_array of shape (n_names, n_terms)
        Tf-idf of names, rows of length 1 or empty.
    owner : array of shape (n_names,)
        The label each name belongs to, ascending.
    weight : array of shape (n_terms,), optional
        How much a term counts towards the coverage of a name; without it there is no coverage.
    """

    def __init__(
        self,
        names: csr_array,
        owner: NDArray[np.int64],
        weight: NDArray[np.float32] | None = None,
    ) -> None:
        self.names = names
        self.owner = owner
        self.weight = weight
        self._terms = csr_array(names.T)
        self._shares = None if weight is None else csr_array(_shares(names, weight).T)

    def rank(self, X: csr_array, k: int) -> Ranking:
        """The k labels whose names have the largest cosine; those without a match are left out."""
        return self._rank(X, self._terms, k)

    def rank_covered(self, X: csr_array, k: int) -> Ranking:
        """The k labels whose names are covered best; those without a match are left out.

        Coverage is the share of a name that is in the document, by the weights of its terms, and
        slightly more for names of a larger weight.
        """
        assert self._shares is not None, "coverage needs the terms' weights"
        there = csr_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)
        return self._rank(there, self._shares, k)

    def both(self, X: csr_array, k: int) -> dict[str, Ranking]:
        """The parts of a fusion: "names" and, where there are weights, "name coverage"."""
        found = {"names": self.rank(X, k)}
        if self.weight is not None:
            found["name coverage"] = self.rank_covered(X, k)
        return found

    def save(self, folder: Path) -> None:
        """Write the names' vectors, the label of each and the terms' weights."""
        weight = {} if self.weight is None else {"weight": self.weight}
        write_tensors(folder / _FILE, {"names": self.names, "owner": self.owner, **weight})

    @classmethod
    def load(cls, folder: Path) -> NameMatch:
        """Read what ``save`` wrote; runs of earlier versions have no weights."""
        kept = read_tensors(folder / _FILE, "names", "owner")
        names, owner, weight = kept["names"], kept["owner"], kept.get("weight")
        if (
            owner.shape != names.shape[:1]
            or not np.issubdtype(owner.dtype, np.integer)
            or owner.min(initial=0) < 0
            or (np.diff(owner) < 0).any()
            or (weight is not None and weight.shape != names.shape[1:])
        ):
            raise RunError(
                f"{folder / _FILE} is damaged: its {names.shape[0]} names do not belong to labels "
                f"in their order. Delete its folder and fit again."
            )
        return cls(names, owner, weight)

    def _rank(self, X: csr_array, names: csr_array, k: int) -> Ranking:
        out = Ranking.empty(X.shape[0], k)
        documents = kernel_arrays(X.indptr, X.indices, X.data.astype(np.float32, copy=False))
        by_term = kernel_arrays(names.indptr, names.indices, names.data)
        owner = unwritable(self.owner.astype(np.int64, copy=False))
        _name_kernels.best_names(*documents, *by_term, owner, out.indices, out.scores)
        return out


def _shares(names: csr_array, weight: NDArray[np.float32]) -> csr_array:
    """The share of each term in the weight of its name, and slightly more in a heavier name."""
    of_name = np.repeat(np.arange(names.shape[0]), np.diff(names.indptr))
    weights = weight[names.indices]
    total = np.bincount(of_name, weights, minlength=names.shape[0]).astype(np.float64)
    factor = np.divide(1 + _LONGER * total, total, out=np.zeros_like(total), where=total > 0)
    shares = (weights * factor[of_name]).astype(np.float32)
    shares = csr_array((shares, names.indices.copy(), names.indptr.copy()), shape=names.shape)
    shares.eliminate_zeros()
    return shares


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
