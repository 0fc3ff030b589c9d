"""Where the replicas of ``depl serve --ray`` are told to reload, and say that they have.

An actor of Ray's, because replicas do not know of each other: Ray Serve gives a request to one of
them, and starts and replaces them by itself. Each asks the board for news all the time; one that
has not asked for a while is gone.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

POLL = 2.0  # seconds after which a replica that waits for news is answered without any
SILENCE = 15.0  # seconds without a question, after which a replica is taken for dead


class Board:
    """What was asked of all replicas, and who has done it."""

    def __init__(self) -> None:
        self._wishes: list[str | None] = []  # a run to be loaded again each; None: all
        self._done: list[dict[str, tuple[float, str | None]]] = []
        self._seen: dict[str, float] = {}
        self._trouble: str | None = None
        self._news = asyncio.Event()

    async def n_wishes(self) -> int:
        """How many there were; for a replica that is about to load the runs as they are."""
        return len(self._wishes)

    async def failed(self, why: str) -> None:
        """A replica could not load a run."""
        self._trouble = why

    async def trouble(self) -> str | None:
        """What went wrong, if anything."""
        return self._trouble

    async def wishes(self, replica: str, known: int) -> list[str | None]:
        """What has been asked for beyond those that are known, as soon as there is any."""
        self._seen[replica] = time.monotonic()
        if len(self._wishes) <= known:
            await self._wait(POLL)
        return self._wishes[known:]

    async def done(self, replica: str, number: int, seconds: float, error: str | None) -> None:
        """A replica has reloaded, or failed to."""
        self._done[number][replica] = seconds, error
        self._tell()

    async def reload(self, run: str | None = None) -> tuple[float, str | None]:
        """Let all replicas load a run again, or all; the longest time, and what went wrong."""
        done: dict[str, tuple[float, str | None]] = {}
        self._wishes.append(run)
        self._done.append(done)
        asked = {replica for replica in self._seen if self._is_there(replica)}
        self._tell()
        while any(x not in done and self._is_there(x) for x in asked):
            await self._wait(POLL)
        seconds = max((x for x, _ in done.values()), default=0.0)
        return seconds, next((error for _, error in done.values() if error is not None), None)

    def _is_there(self, replica: str) -> bool:
        return time.monotonic() - self._seen[replica] < SILENCE

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)
