"""Nearest labels of a vector: exact search block by block, or a graph for very many labels.

Both return a ``Ranking`` by dot product. Vectors that have been scaled to length 1 are compared by
cosine, as in ``DualEncoder.similarity``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import MissingExtraError, RunError, explain_os_errors
from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.core.tensors import read_tensors, write_tensors

# From this many labels on, approximate search is worthwhile. Below, exact search of a single
# document (384 dimensions) takes less than 20 ms on one core, and misses nothing.
APPROXIMATE_FROM = 100_000

# A block of scores is 512 x 16,384 float32, 32 MB, however many documents and labels there are;
# each thread has one.
_DOCUMENTS = 512
_LABELS = 16_384

# Measured on 20,000 lines of text in the space of all-MiniLM-L6-v2, one core: the graph is built
# in 4 s, answers in 0.4 ms, and finds 99.7 % of the top 10 and 99.6 % of the top 100. In the time
# in which a walk of breadth 64 found 99 % of the top 10, inverted lists found 96 %.
_LINKS = 32
_BUILD_BREADTH = 80
_SEARCH_BREADTH = 256

_VECTORS = "vectors.safetensors"
_GRAPH = "graph.faiss"


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

    def __init__(self, vectors: NDArray[np.float32], graph: Any = None) -> None:  # noqa: ANN401
        self.vectors = vectors
        self._graph = graph

    @classmethod
    def build(cls, vectors: NDArray[np.floating], approximate: bool = False) -> LabelIndex:
        """Index these label vectors.

        Parameters
        ----------
        vectors : array of shape (n_labels, size)
            One row per label. For approximate search they should have the same length: a graph
            search is poor at finding labels that score by their length.
        approximate : bool
            Build a graph of neighbours (HNSW, the extra ``faiss``), which finds nearly all of the
            best labels without looking at every one; ``recall`` measures the share. A single thread
            builds it, so that the same vectors always give the same graph.
        """
        array = np.ascontiguousarray(vectors, dtype=np.float32)
        if array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError(
                f"Label vectors must be one array (n_labels, size) of finite numbers; got the "
                f"shape {array.shape} with {int((~np.isfinite(array)).sum())} that are not finite."
            )
        return cls(array, _build_graph(array) if approximate else None)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def approximate(self) -> bool:
        """Whether search uses a graph, and so may miss a label."""
        return self._graph is not None

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
            if self.approximate:
                self._walk(block, best, np.float32(bias))
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

    def _walk(self, queries: NDArray[np.float32], best: Ranking, bias: np.float32) -> None:
        """Fill ``best`` with what the graph search finds."""
        k = min(best.k, len(self))
        breadth = _faiss().SearchParametersHNSW(efSearch=max(_SEARCH_BREADTH, 2 * k))
        scores, found = self._graph.search(queries, k, params=breadth)
        scores = np.where(found < 0, -np.inf, scores + bias)
        order = np.lexsort((found, -scores))  # ties by label position
        best.indices[:, :k] = np.take_along_axis(found, order, axis=1)
        best.scores[:, :k] = np.take_along_axis(scores, order, axis=1)

    def save(self, folder: Path) -> None:
        """Write the vectors as safetensors and the graph, where there is one, as faiss does."""
        write_tensors(folder / _VECTORS, {"vectors": self.vectors})
        with explain_os_errors(folder):
            (folder / _GRAPH).unlink(missing_ok=True)
            if self.approximate:
                try:
                    _faiss().write_index(self._graph, str(folder / _GRAPH))
                except RuntimeError as error:  # its only type, even for a full disk
                    raise OSError(str(error)) from error

    @classmethod
    def load(cls, folder: Path) -> LabelIndex:
        """Read what ``save`` wrote."""
        vectors = read_tensors(folder / _VECTORS, "vectors")["vectors"]
        if vectors.ndim != 2 or vectors.dtype != np.float32:
            raise RunError(
                f"{folder / _VECTORS} is damaged: it holds no rows of float32. Delete its folder "
                f"and fit again."
            )
        path = folder / _GRAPH
        if not path.exists():
            return cls(vectors)
        try:
            graph = _faiss().read_index(str(path))
        except RuntimeError as error:
            raise RunError(f"{path} is damaged. Delete its folder and fit again.") from error
        if (graph.ntotal, graph.d) != vectors.shape:
            raise RunError(
                f"{path} holds {graph.ntotal} vectors of size {graph.d}, but {_VECTORS} beside it "
                f"has the shape {vectors.shape}. Delete its folder and fit again."
            )
        return cls(vectors, graph)


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


def _build_graph(vectors: NDArray[np.float32]) -> Any:  # noqa: ANN401 - an extra
    faiss = _faiss()
    graph = faiss.IndexHNSWFlat(vectors.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _BUILD_BREADTH
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        graph.add(vectors)
    finally:
        faiss.omp_set_num_threads(threads)
    return graph


def _faiss() -> Any:  # noqa: ANN401 - an extra
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("faiss-cpu", "faiss", "Approximate label search") from None
    return faiss
