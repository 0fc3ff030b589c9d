"""Nearest labels of a vector: exact search block by block, or graphs for very many labels.

Both return a ``Ranking`` by dot product. Vectors that have been scaled to length 1 are compared by
cosine, as in ``DualEncoder.similarity``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import RunError, explain_os_errors
from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.core.tensors import read_tensors, write_tensors
from depl.neural.graphs import Graphs

# From this many labels on, approximate search is worthwhile. Below, exact search of a single
# document (384 dimensions) takes less than 20 ms on one core, and misses nothing.
APPROXIMATE_FROM = 100_000

# A block of scores is 512 x 16,384 float32, 32 MB, however many documents and labels there are;
# each thread has one.
_DOCUMENTS = 512
_LABELS = 16_384

_VECTORS = "vectors.safetensors"


class LabelIndex:
    """Label vectors, ready to be searched. Made by ``build`` or ``load``.

    Attributes
    ----------
    vectors : array of shape (n_labels, size), float32
        One row per label, in the order of the label set.

    Examples
    --------
    >>> index = LabelIndex.build(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]))
    >>> index.search(np.array([[0.0, 1.0]]), k=2)
    Ranking(1 document, 2 labels each; first: 2 1.00, 1 0.80)
    """

    def __init__(self, vectors: NDArray[np.float32], graphs: Graphs | None = None) -> None:
        self.vectors = vectors
        self._graphs = graphs

    @classmethod
    def build(cls, vectors: NDArray[np.floating], approximate: bool = False) -> LabelIndex:
        """Index these label vectors.

        Parameters
        ----------
        vectors : array of shape (n_labels, size)
            One row per label. For approximate search they should have the same length: a graph
            search is poor at finding labels that score by their length.
        approximate : bool
            Build graphs of neighbours (``Graphs``, the extra ``faiss``), which find nearly all of
            the best labels without looking at every one; ``recall`` measures the share.
        """
        array = np.ascontiguousarray(vectors, dtype=np.float32)
        if array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError(
                f"Label vectors must be one array (n_labels, size) of finite numbers; got the "
                f"shape {array.shape} with {int((~np.isfinite(array)).sum())} that are not finite."
            )
        return cls(array, Graphs.build(array) if approximate else None)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def approximate(self) -> bool:
        """Whether search uses graphs, and so may miss a label."""
        return self._graphs is not None

    def search(
        self,
        queries: NDArray[np.floating],
        k: int,
        *,
        scale: float = 1.0,
        bias: float = 0.0,
        documents: int = _DOCUMENTS,
        labels: int = _LABELS,
        executor: Executor | None = None,
    ) -> Ranking:
        """The k labels with the highest ``scale * (query . label) + bias`` for every query.

        Parameters
        ----------
        queries : array of shape (n_documents, size)
            Document vectors.
        k : int
            Labels per document; rows are padded where there are fewer.
        scale, bias : float
            What turns dot products into logits, such as an encoder's ``logit_scale`` and
            ``logit_bias``. The scale must be positive.
        documents, labels : int
            Size of a block. Memory is bounded by ``documents x labels`` scores.
        executor : Executor or None
            Its workers search a part of the labels each, where the search is exact; None: this
            machine. The result is the same.
        """
        if queries.ndim != 2 or queries.shape[1] != self.vectors.shape[1]:
            raise ValueError(
                f"Queries must be an array (n, {self.vectors.shape[1]}) to be compared with these "
                f"labels; got the shape {queries.shape}."
            )
        if scale <= 0:
            raise ValueError(f"The scale must be positive, or the worst label wins; got {scale}.")
        from depl.neural.threads import map_single_threaded  # with torch, which encoded the queries

        out = Ranking.empty(len(queries), k)
        if k == 0 or len(self) == 0:
            return out
        if executor is not None and not self.approximate and len(self) > labels:
            size = -(-len(self) // (labels * executor.workers)) * labels  # of a part, in blocks
            parts = ((i, self.vectors[i : i + size]) for i in range(0, len(self), size))
            asked = _Asked(queries, k, scale, bias, documents, labels)
            for found in executor.map(_search_part, asked, parts, compiled=False, ahead=1):
                out = out.merged(found, k)
            return out

        def fill(first: int) -> None:
            rows = slice(first, first + documents)
            block = np.asarray(queries[rows], dtype=np.float32) * np.float32(scale)
            best = Ranking(out.indices[rows], out.scores[rows])
            if self._graphs is not None:
                n = min(k, len(self))
                found = self._graphs.search(block, n, np.float32(bias))
                best.scores[:, :n], best.indices[:, :n] = found
            else:
                self._scan(block, best, np.float32(bias), labels)

        for _ in map_single_threaded(fill, range(0, len(queries), documents)):
            pass
        return out

    def _scan(
        self, queries: NDArray[np.float32], best: Ranking, bias: np.float32, width: int
    ) -> None:
        """Fill ``best`` from all labels, block by block."""
        import torch  # which can be told to use one thread; numpy's BLAS cannot

        for first in range(0, len(self), width):
            vectors = torch.from_numpy(self.vectors[first : first + width])
            scores = (torch.from_numpy(queries) @ vectors.T).numpy()
            scores += bias
            _merge(best, scores, first)

    def save(self, folder: Path) -> None:
        """Write the vectors as safetensors and the graphs, where there are any, as faiss does."""
        write_tensors(folder / _VECTORS, {"vectors": self.vectors})
        with explain_os_errors(folder):
            Graphs.delete(folder)
            if self._graphs is not None:
                self._graphs.save(folder)

    @classmethod
    def load(cls, folder: Path) -> LabelIndex:
        """Read what ``save`` wrote."""
        vectors = read_tensors(folder / _VECTORS, "vectors")["vectors"]
        if vectors.ndim != 2 or vectors.dtype != np.float32:
            raise RunError(
                f"{folder / _VECTORS} is damaged: it holds no rows of float32. Delete its folder "
                f"and fit again."
            )
        graphs = Graphs.load(folder)
        if graphs is not None and graphs.shape != vectors.shape:
            n, size = graphs.shape
            raise RunError(
                f"The graphs in {folder} hold {n} vectors of size {size}, but {_VECTORS} beside "
                f"them has the shape {vectors.shape}. Delete the folder and fit again."
            )
        return cls(vectors, graphs)


@dataclass(frozen=True)
class _Asked:
    """What is asked of all parts of an index."""

    queries: NDArray[np.floating]
    k: int
    scale: float
    bias: float
    documents: int
    labels: int


def _search_part(asked: _Asked, part: tuple[int, NDArray[np.float32]]) -> Ranking:
    """The best labels of a part, which begins with this label."""
    first, vectors = part
    found = LabelIndex(vectors.copy()).search(  # torch takes none that cannot be written to
        asked.queries,
        asked.k,
        scale=asked.scale,
        bias=asked.bias,
        documents=asked.documents,
        labels=asked.labels,
    )
    return Ranking(np.where(found.indices < 0, -1, found.indices + first), found.scores)


def _merge(best: Ranking, scores: NDArray[np.float32], first: int) -> None:
    """Merge a block of labels, whose first has the position ``first``, into the running top k.

    Blocks come in label order, so what is already in ``best`` wins every tie.
    """
    n, width = scores.shape
    k = best.k
    entering = scores > best.scores[:, -1:]
    if k < width and np.isneginf(best.scores[:, -1]).any():
        # There is no threshold yet, and only the block's own top k (ties included) can enter.
        entering &= scores >= np.partition(scores, width - k, axis=1)[:, width - k, None]
    rows, columns = np.nonzero(entering)
    if not len(rows):
        return
    counts = np.bincount(rows, minlength=n)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    room = Ranking.empty(n, k + int(counts.max()))
    room.indices[:, :k], room.scores[:, :k] = best.indices, best.scores
    room.indices[rows, k + slots] = first + columns
    room.scores[rows, k + slots] = scores[rows, columns]
    order = np.argsort(-room.scores, axis=1, kind="stable")[:, :k]
    best.indices[:] = np.take_along_axis(room.indices, order, axis=1)
    best.scores[:] = np.take_along_axis(room.scores, order, axis=1)


def recall(index: LabelIndex, exact: LabelIndex, queries: NDArray[np.floating], k: int) -> float:
    """Share of the exact top k, over all queries, that the index finds: 0 to 1."""
    wanted = exact.search(queries, k).indices
    found = index.search(queries, k).indices
    hits = [np.isin(row[row >= 0], other).sum() for row, other in zip(wanted, found, strict=True)]
    return int(sum(hits)) / max(1, int((wanted >= 0).sum()))
