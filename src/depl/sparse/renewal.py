"""Tf-idf that counts further documents, without the texts of those that it was fitted on.

A row of tf-idf is known up to its length, so another idf only multiplies its columns. What is made
of all documents this way is what ``TfidfFeatures.fit`` makes of their texts, apart from terms that
become too frequent or frequent enough with the documents that were added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.weighting import scale


@dataclass(frozen=True)
class Renewal:
    """From one tf-idf to another that has the same terms first, and other idf.

    Parameters
    ----------
    before : array of float32
        The idf of the first; its terms are the first of ``after``.
    after : TfidfFeatures
        Fitted.
    """

    before: NDArray[np.float32]
    after: TfidfFeatures

    @cached_property
    def factor(self) -> NDArray[np.float32]:
        """The idf of each term in units of the one that it had; 1 for terms that are new."""
        had = self.after.idf_.copy()
        had[: len(self.before)] = self.before
        return self.after.idf_ / had

    def rows(self, X: csr_array) -> csr_array:
        """Vectors by ``before`` as ``after`` makes them."""
        return scale(self._wider(X.copy()), self.factor, self.after.paired())

    def weights(self, W: csr_array) -> csr_array:
        """Linear weights that score the new vectors as they scored the old ones.

        Up to the lengths of the rows, which change little.
        """
        wider = self._wider(W)
        data = (wider.data / self.factor[wider.indices]).astype(np.float32)
        return csr_array((data, wider.indices, wider.indptr), shape=wider.shape)

    def _wider(self, matrix: csr_array) -> csr_array:
        shape = (matrix.shape[0], len(self.after.terms_))
        return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape)
