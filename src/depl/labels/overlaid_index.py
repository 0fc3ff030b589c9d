"""Search among vectors that changed after they were indexed; rankings without tombstones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from depl.core.ranking import Ranking
from depl.neural.index import LabelIndex

if TYPE_CHECKING:
    from torch import Tensor

    from depl.neural.retriever import Retriever


class OverlaidIndex(LabelIndex):
    """An index some of whose vectors have changed, gone, or come.

    What is new is searched beside the run's own index and the two answers are merged: a graph of
    very many labels can neither forget a vector nor be copied for every edit.

    Parameters
    ----------
    base : LabelIndex
        The run's own.
    vectors : mapping of int to array
        New vectors, by position.
    gone : sequence of int
        Positions that the run's own index must not answer with.
    n : int
        How many positions there are now.
    """

    def __init__(
        self,
        base: LabelIndex,
        vectors: Mapping[int, NDArray[np.float32]],
        *,
        gone: Sequence[int],
        n: int,
    ) -> None:
        size = base.vectors.shape[1]
        self._base = base
        self._positions = np.array(sorted(vectors), np.int32)
        rows = [vectors[int(p)] for p in self._positions]
        self._extra = LabelIndex(np.array(rows, np.float32).reshape(len(rows), size))
        self._gone = np.array(sorted({p for p in gone if p < len(base)}), np.int32)
        self._n = n

    @property
    def vectors(self) -> NDArray[np.float32]:  # type: ignore[override]
        """One row a label; zeros for those that have none."""
        out = np.zeros((self._n, self._extra.vectors.shape[1]), np.float32)
        out[: len(self._base)] = self._base.vectors
        out[self._gone] = 0.0
        out[self._positions] = self._extra.vectors
        return out

    def __len__(self) -> int:
        return self._n

    @property
    def approximate(self) -> bool:
        """Whether search walks a graph, and so may miss a label."""
        return self._base.approximate

    def search(self, queries: NDArray[np.floating], k: int, **settings: Any) -> Ranking:  # noqa: ANN401
        """As ``LabelIndex.search``."""
        old = self._base.search(queries, k + len(self._gone), **settings)
        new = self._extra.search(queries, k, **settings)
        places = np.append(self._positions, np.int32(-1))[new.indices]
        indices = np.concatenate([_struck_out(old.indices, self._gone), places], axis=1)
        return _best(indices, np.concatenate([old.scores, new.scores], axis=1), k)


def rank_neural(
    retriever: Retriever, vectors: Tensor, removed: Mapping[int, str], k: int
) -> dict[str, Ranking]:
    """Every neural part's k best labels, tombstones left out."""
    if not removed:
        return retriever.rank(vectors, k)
    head = retriever.encoder.head
    # The classifier alone still ranks them; the other parts have forgotten them.
    more = 0 if head is None else sum(position < head.out_features for position in removed)
    found = retriever.rank(vectors, k + more)
    return {name: _without(ranking, removed, k) for name, ranking in found.items()}


def rank_jointly(
    retriever: Retriever, vectors: Tensor, removed: Mapping[int, str], k: int
) -> Ranking:
    """The paper's DEPL+c, tombstones left out."""
    return _without(retriever.rank_jointly(vectors, k + len(removed)), removed, k)


def _without(ranking: Ranking, removed: Mapping[int, str], k: int) -> Ranking:
    return _best(_struck_out(ranking.indices, np.array(list(removed))), ranking.scores, k)


def _struck_out(indices: NDArray[np.int32], gone: NDArray[np.integer]) -> NDArray[np.int32]:
    return np.where(np.isin(indices, gone), np.int32(-1), indices)


def _best(indices: NDArray[np.int32], scores: NDArray[np.float32], k: int) -> Ranking:
    """The k best of each row, ties by position; -1 is nothing."""
    scores = np.where(indices < 0, -np.inf, scores).astype(np.float32)
    order = np.lexsort((indices, -scores))[:, :k]
    best = Ranking(np.take_along_axis(indices, order, 1), np.take_along_axis(scores, order, 1))
    return best.top(k)
