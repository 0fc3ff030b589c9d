"""Labels whose names are in the text: the oldest way to index; it needs no examples.

There are three ways to look. The cosine of a name with the document asks how much of the *document*
the name is about; a long document has a low one with every name. Coverage asks how much of the
*name* is in the document, however long it is. Each finds labels that the other does not: fused with
the SVM, coverage beside the cosine brought 0.2 to 0.5 points of P@5 and 0.3 to 1.3 of PSP@5 on
parts of training data of EURLEX57K, TIB-en and two corpora made from Debian. Both know which words
there are, but not where: *whole names* are those whose words are in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.core.tensors import read_tensors, write_tensors
from depl.sparse import _name_kernels
from depl.sparse.duals import kernel_arrays, unwritable
from depl.sparse.sequences import Sequences
from depl.sparse.tfidf import TfidfFeatures

Parts = dict[str, Ranking]

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
    order : Sequences, optional
        The terms of each name in order; without them, or without weights, no whole names are found.
    """

    def __init__(
        self,
        names: csr_array,
        owner: NDArray[np.int64],
        weight: NDArray[np.float32] | None = None,
        order: Sequences | None = None,
    ) -> None:
        self.names = names
        self.owner = owner
        self.weight = weight
        self.order = order
        self._terms = csr_array(names.T)
        self._looked_up: list[NDArray[Any]] | None = None
        self._shares = None if weight is None else csr_array(_shares(names, weight).T)

    def rank(self, X: csr_array, k: int) -> Ranking:
        """The k labels whose names have the largest cosine; those without a match are left out."""
        return self._rank(X, self._terms, k)

    def rank_covered(self, X: csr_array, k: int) -> Ranking:
        """The k labels whose names are covered best; those without a match are left out.

        Coverage is the share of a name that is in the document, by the weights of its terms, and
        slightly more for names of a larger weight.
        """
        there = csr_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)
        return self._rank(there, self.shares(), k)

    def rank_whole(self, words: Sequences, k: int) -> Ranking:
        """The k labels with the heaviest names that are in the text word by word.

        The words of grammar in between do not count.
        """
        assert self.weight is not None, "whole names need the terms' weights"
        out = Ranking.empty(len(words), k)
        arrays = [words.ends, words.terms, *self._whole_names(), out.indices, out.scores]
        _name_kernels.whole_names(*arrays)
        return out

    def shares(self) -> csr_array:
        """How much each term counts towards the coverage of each name, (n_terms, n_names)."""
        assert self._shares is not None, "coverage needs the terms' weights"
        return self._shares

    def parts(self, texts: Sequence[str], X: csr_array, features: TfidfFeatures, k: int) -> Parts:
        """The parts of a fusion: "names", and "name coverage" and "whole names" where they can be.

        Parameters
        ----------
        texts : sequence of str
            The documents.
        X : csr_array
            Their vectors.
        features : TfidfFeatures
            What made them.
        k : int
            Labels per document.
        """
        found = {"names": self.rank(X, k)}
        if self.weight is not None:
            found["name coverage"] = self.rank_covered(X, k)
        if self.weight is not None and self.order is not None:
            found["whole names"] = self.rank_whole(features.words_in_order(texts), k)
        return found

    def save(self, folder: Path) -> None:
        """Write the names' vectors and terms, the label of each name and the terms' weights."""
        more: dict[str, NDArray[Any]] = {} if self.weight is None else {"weight": self.weight}
        if self.order is not None:
            more |= {"ends": self.order.ends, "terms": self.order.terms}
        write_tensors(folder / _FILE, {"names": self.names, "owner": self.owner, **more})

    @classmethod
    def load(cls, folder: Path) -> NameMatch:
        """Read what ``save`` wrote; runs of earlier versions have no weights or no order."""
        kept = read_tensors(folder / _FILE, "names", "owner")
        names, owner, weight = kept["names"], kept["owner"], kept.get("weight")
        order = Sequences(kept["ends"], kept["terms"]) if "ends" in kept else None
        if (
            owner.shape != names.shape[:1]
            or not np.issubdtype(owner.dtype, np.integer)
            or owner.min(initial=0) < 0
            or (np.diff(owner) < 0).any()
            or (weight is not None and weight.shape != names.shape[1:])
            or (order is not None and not _goes_with(order, names))
        ):
            raise RunError(
                f"{folder / _FILE} is damaged: its {names.shape[0]} names do not belong to labels "
                f"in their order. Delete its folder and fit again."
            )
        return cls(names, owner, weight, order)

    def _whole_names(self) -> list[NDArray[Any]]:
        """Names by their first terms, with their labels and weights, as the kernel takes them."""
        if self._looked_up is None:
            assert self.order is not None, "whole names need the order of their words"
            assert self.weight is not None
            ends, terms = self.order.ends, self.order.terms
            of_name = np.repeat(np.arange(len(self.order)), np.diff(ends))
            weights = np.bincount(of_name, self.weight[terms], minlength=len(self.order))
            # A name with a word that no text can have is in none.
            wanting = np.bincount(of_name, terms < 0, minlength=len(self.order)) > 0
            there = np.flatnonzero((np.diff(ends) > 0) & ~wanting)
            first = terms[ends[:-1][there]]
            by_first = there[np.argsort(first, kind="stable")]
            starts = np.searchsorted(np.sort(first), np.arange(len(self.weight) + 1))
            owner = self.owner.astype(np.int64, copy=False)
            arrays: list[NDArray[Any]] = [starts, by_first, ends, terms, owner]
            self._looked_up = [unwritable(x) for x in (*arrays, weights.astype(np.float32))]
        return self._looked_up

    def _rank(self, X: csr_array, names: csr_array, k: int) -> Ranking:
        out = Ranking.empty(X.shape[0], k)
        documents = kernel_arrays(X.indptr, X.indices, X.data.astype(np.float32, copy=False))
        by_term = kernel_arrays(names.indptr, names.indices, names.data)
        owner = unwritable(self.owner.astype(np.int64, copy=False))
        _name_kernels.best_names(*documents, *by_term, owner, out.indices, out.scores)
        return out


def _goes_with(order: Sequences, names: csr_array) -> bool:
    """Whether this can be the order of the words of these names."""
    return (
        order.ends.shape == (names.shape[0] + 1,)
        and order.ends[0] == 0
        and order.ends[-1] == len(order.terms)
        and not (np.diff(order.ends) < 0).any()
        and order.terms.max(initial=0) < names.shape[1]
    )


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
