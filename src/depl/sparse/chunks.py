"""Documents are ranked some at a time, by whatever executor there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from depl.core.executor import Executor
from depl.core.progress import track
from depl.core.ranking import Ranking

P = TypeVar("P")
Chunk = tuple[int, int]  # the first document, and the one behind the last

_CHUNK = 256  # documents a worker ranks at a time


def rank_in_chunks(
    rank: Callable[[P, Chunk], Ranking],
    payload: P,
    n: int,
    k: int,
    executor: Executor,
    what: str,
) -> Ranking:
    """One ranking of n documents, to depth k, from those of their chunks.

    Parameters
    ----------
    rank : callable
        Ranks a chunk of what the payload has.
    payload : object
        What all chunks have in common.
    n, k : int
        How many documents there are, and how deep they are ranked.
    executor : Executor
        Does the work.
    what : str
        What the progress bar says.
    """
    chunks = [(first, min(first + _CHUNK, n)) for first in range(0, n, _CHUNK)]
    if len(chunks) == 1:
        return rank(payload, chunks[0])  # a service ranks few texts, often, and needs no thread
    out = Ranking.empty(n, k)
    parts = track(executor.map(rank, payload, chunks), what, total=len(chunks))
    for (first, last), part in zip(chunks, parts, strict=True):
        out.indices[first:last], out.scores[first:last] = part.indices, part.scores
    return out
