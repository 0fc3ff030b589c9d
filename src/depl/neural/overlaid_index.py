"""Search in an index some of whose vectors have changed since it was built."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from depl.core.ranking import Ranking
from depl.neural.index import LabelIndex


class OverlaidIndex(LabelIndex):
    """An index some of whose vectors were changed, removed or added.

    New vectors are searched separately and the two rankings are merged: a graph of very many
    labels can neither drop a vector nor be copied for every edit.

    Parameters
    ----------
    base : LabelIndex
        The run's own.
    positions, vectors : arrays of shape (n_new,), (n_new, size)
        New vectors and their positions, ascending.
    gone : array of int
        Positions that the run's own index must not return.
    n : int
        How many positions there are now.
    """

    def __init__(
        self,
        base: LabelIndex,
        positions: NDArray[np.integer],
        vectors: NDArray[np.float32],
        *,
        gone: NDArray[np.integer],
        n: int,
    ) -> None:
        self._base = base
        self._positions = positions.astype(np.int32)
        self._extra = LabelIndex(vectors)
        self._gone = gone[gone < len(base)].astype(np.int32)
        self._n = n

    @property
    def vectors(self) -> NDArray[np.float32]:  # type: ignore[override]
        """One row per label; zeros for those that have none."""
        out = np.zeros((self._n, self._extra.vectors.shape[1]), np.float32)
        out[: len(self._base)] = self._base.vectors
        out[self._gone] = 0.0
        out[self._positions] = self._extra.vectors
        return out

    def __len__(self) -> int:
        return self._n

    @property
    def approximate(self) -> bool:
        """Whether search uses a graph, and so may miss a label."""
        return self._base.approximate

    def search(self, queries: NDArray[np.floating], k: int, **settings: Any) -> Ranking:  # noqa: ANN401
        """As ``LabelIndex.search``."""
        old = self._base.search(queries, k + len(self._gone), **settings).without(self._gone)
        new = self._extra.search(queries, k, **settings)
        places = np.append(self._positions, np.int32(-1))[new.indices]
        return old.merged(Ranking(places, new.scores), k)


def with_vectors(
    index: LabelIndex, positions: NDArray[np.integer], vectors: NDArray[np.float32], n: int
) -> LabelIndex:
    """The index with other vectors at some positions, which may be behind its last; n in all.

    Exact search takes them in; a graph is searched beside them.
    """
    if index.approximate:
        order = np.argsort(positions)
        places = positions[order]
        return OverlaidIndex(index, places, vectors[order], gone=places, n=n)
    room = np.zeros((n - len(index), vectors.shape[1]), np.float32)
    rows = np.concatenate([index.vectors, room])
    rows[positions] = vectors
    return LabelIndex(rows)
