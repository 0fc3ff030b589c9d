"""How a loaded run ranks labels: by its fusion, by one of the parts, or by each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from depl.core.ranking import Ranking
from depl.core.texts import TextsOnDisk
from depl.fusion.fusion import FUSION, Fusion
from depl.run.state import State

_DEPTH = 100  # labels that each part ranks in a run without a fusion


def rank(
    state: State, fusion: Fusion | None, texts: Sequence[str], k: int, model: str = FUSION
) -> Ranking:
    """The k best labels of every text.

    Parameters
    ----------
    state, fusion
        The run; without a fusion, the SVM ranks.
    texts, k
        The texts, and how many labels each gets.
    model : str
        The fusion, or the part that ranks in its place.
    """
    if isinstance(texts, TextsOnDisk):
        ranked = [rank(state, fusion, some, k, model) for some in texts.portions()]
        return Ranking.concatenate(ranked)
    if model != FUSION:
        return state.rank_by(model, texts, k)
    if fusion is None:
        return state.rank(texts, k)["svm"]
    return fused(state, fusion, state.rank_apart(texts, depth(fusion)), k)


def rank_by_each(
    state: State, fusion: Fusion | None, texts: Sequence[str], k: int
) -> dict[str, Ranking]:
    """The k best labels by each part, by DEPL+c where there is one, and by the fusion."""
    if isinstance(texts, TextsOnDisk):
        ranked = [rank_by_each(state, fusion, some, k) for some in texts.portions()]
        return {x: Ranking.concatenate([part[x] for part in ranked]) for x in ranked[0]}
    deep, vectors = depth(fusion), state.encode(texts)
    parts = state.rank(texts, max(k, deep), vectors)
    found = {name: ranking.top(k) for name, ranking in parts.items()}
    if vectors is not None and "classifier" in parts:
        found["depl+c"] = state.rank_jointly(vectors, k)
    if fusion is not None:
        as_fitted = state.newcomers is None and k <= deep
        apart = (parts, None) if as_fitted else state.rank_apart(texts, deep, vectors)
        found["fusion"] = fused(state, fusion, apart, k)
    return found


def depth(fusion: Fusion | None) -> int:
    """How many labels each part ranks: as many as when the fusion was fitted."""
    return _DEPTH if fusion is None else fusion.depth_


def fused(
    state: State,
    fusion: Fusion,
    apart: tuple[Mapping[str, Ranking], Ranking | None],
    k: int,
) -> Ranking:
    """The k best of all labels, from what ``State.rank_apart`` gives."""
    rankings, new = apart
    return fusion.rank(rankings, state.train_counts, k, new, state.facts)
