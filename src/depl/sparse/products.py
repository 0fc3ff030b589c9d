"""The rows of a sparse matrix that have the largest products with documents.

The rows are the weights of labels, or other documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.executor import Executor
from depl.core.progress import track
from depl.core.ranking import Ranking
from depl.sparse import _kernels
from depl.sparse.duals import Compressed, Rows, kernel_arrays, unwritable

_CHUNK = 256  # documents a worker ranks at a time


def by_column(matrix: csr_array) -> Compressed:
    """The matrix transposed, as ``best_rows`` reads it."""
    turned = matrix.tocsc()
    return kernel_arrays(turned.indptr, turned.indices, turned.data.astype(np.float32, copy=False))


def best_rows(
    X: csr_array,
    columns: Compressed,
    offsets: NDArray[np.float32],
    k: int,
    executor: Executor,
    what: str,
) -> Ranking:
    """The k rows with the largest products plus offsets, for every document; ties in their order.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_columns)
        The documents.
    columns : arrays
        The rows ``by_column``.
    offsets : array of shape (n_rows,)
        Rows with -inf are left out.
    k : int
        Rows per document.
    executor : Executor
        Does the work.
    what : str
        What the progress bar says.
    """
    ranked = _Ranked(Rows(X), columns, unwritable(offsets), k)
    n = X.shape[0]
    chunks = [(first, min(first + _CHUNK, n)) for first in range(0, n, _CHUNK)]
    if len(chunks) == 1:
        return _rank(ranked, chunks[0])  # a service ranks few texts, often, and needs no thread
    out = Ranking.empty(n, k)
    parts = track(executor.map(_rank, ranked, chunks), what, total=len(chunks))
    for (first, last), part in zip(chunks, parts, strict=True):
        out.indices[first:last], out.scores[first:last] = part.indices, part.scores
    return out


@dataclass(frozen=True)
class _Ranked:
    """What all chunks of a ranking have in common."""

    documents: Rows
    columns: Compressed
    offsets: NDArray[np.float32]
    k: int


def _rank(ranked: _Ranked, chunk: tuple[int, int]) -> Ranking:
    """The best rows for the documents of a chunk."""
    first, last = chunk
    out = Ranking.empty(last - first, ranked.k)
    arrays = *ranked.columns, ranked.offsets, out.indices, out.scores
    _kernels.top_scores(*ranked.documents.arrays, first, last, *arrays)
    return out
