"""Approximate search among very many vectors: graphs of neighbours (HNSW, by the extra ``faiss``).

Each graph has a part of the vectors and is built by one thread, so that the same vectors always
give the same graphs; several are built at the same time, and none needs more memory than its part.
A search goes through all of them and merges what they find. With the breadths below that takes as
long as one graph of all vectors would need to find as much of the top 100.

Measured on 262,144 vectors (``benchmarks/million_labels.py --search``), recall@100 and milliseconds
of a query by breadth: one graph 0.985, 0.51 (256) and 0.995, 0.96 (512); two graphs 0.980, 0.59
(128) and 0.994, 1.09 (256). In the time that it takes to find 99 % of the top 10, inverted lists
found 96 %. For a million vectors see docs/scale.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import MissingExtraError, RunError
from depl.core.workers import map_in_threads

PART = 131_072  # vectors of a graph: 200 MB of 384 dimensions, and 36 MB of links

_LINKS = 32
_BUILD_BREADTH = 80
_SEARCH_BREADTH = 512  # of all graphs together
_LEAST_BREADTH = 128  # of each


class Graphs:
    """Graphs that have the vectors one after the other. Made by ``build`` or ``load``."""

    def __init__(self, graphs: Sequence[Any]) -> None:
        self._graphs = graphs
        self._first = np.cumsum([0, *(graph.ntotal for graph in graphs)])

    @classmethod
    def build(cls, vectors: NDArray[np.float32], part: int = PART) -> Graphs:
        """Graphs of so many vectors each, the last of what remains; one at a time per core."""
        faiss = _faiss()

        def build(first: int) -> Any:  # noqa: ANN401 - an extra
            some = vectors[first : first + part]
            graph = faiss.IndexHNSWFlat(vectors.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
            graph.hnsw.efConstruction = _BUILD_BREADTH
            faiss.omp_set_num_threads(1)  # of what this thread starts
            graph.add(some)
            return graph

        return cls(list(map_in_threads(build, range(0, max(1, len(vectors)), part), None)))

    @property
    def shape(self) -> tuple[int, int]:
        """How many vectors there are, and their size."""
        return int(self._first[-1]), int(self._graphs[0].d)

    def search(
        self, queries: NDArray[np.float32], k: int, bias: np.float32
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The k largest products with each query plus the bias, and whose they are.

        By position where equal; what was not found is -inf and -1.
        """
        faiss = _faiss()
        found, scores = [], []
        least = max(_SEARCH_BREADTH // len(self._graphs), _LEAST_BREADTH)
        for graph, first in zip(self._graphs, self._first, strict=False):
            some = min(k, graph.ntotal)
            breadth = faiss.SearchParametersHNSW(efSearch=max(least, some))
            products, where = graph.search(queries, some, params=breadth)
            scores.append(np.where(where < 0, -np.inf, products + bias))
            found.append(np.where(where < 0, -1, where + first))
        all_scores = np.concatenate(scores, axis=1).astype(np.float32)
        all_found = np.concatenate(found, axis=1)
        best = np.lexsort((all_found, -all_scores))[:, :k]
        return np.take_along_axis(all_scores, best, 1), np.take_along_axis(all_found, best, 1)

    def save(self, folder: Path) -> None:
        """Write a file for each; raises OSError where that fails."""
        for number, graph in enumerate(self._graphs):
            try:
                _faiss().write_index(graph, str(_path(folder, number)))
            except RuntimeError as error:  # its only type, even for a full disk
                raise OSError(str(error)) from error

    @classmethod
    def load(cls, folder: Path) -> Graphs | None:
        """Read what ``save`` wrote; None where there is nothing."""
        graphs: list[Any] = []
        while (path := _path(folder, len(graphs))).exists():
            try:
                graphs.append(_faiss().read_index(str(path)))
            except RuntimeError as error:
                raise RunError(f"{path} is damaged. Delete its folder and fit again.") from error
        if len({graph.d for graph in graphs}) > 1:
            raise RunError(
                f"The graphs in {folder} have vectors of different sizes. Delete the folder and "
                f"fit again."
            )
        return cls(graphs) if graphs else None

    @staticmethod
    def delete(folder: Path) -> None:
        """Delete what ``save`` wrote."""
        for path in folder.glob("graph*.faiss"):
            path.unlink()


def _path(folder: Path, number: int) -> Path:
    return folder / (f"graph.{number}.faiss" if number else "graph.faiss")


def _faiss() -> Any:  # noqa: ANN401 - an extra
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("faiss-cpu", "faiss", "Approximate label search") from None
    return faiss
