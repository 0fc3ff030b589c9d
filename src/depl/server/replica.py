"""One of the replicas of ``depl serve --ray``; ``replicas`` starts them, Ray replaces them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from fastapi import FastAPI

from depl.core.errors import DeplError, RunError
from depl.core.workers import use_cores
from depl.server.live_model import LiveModel
from depl.server.plan import Plan
from depl.server.process import log_to_stderr, reload_runs

_PAUSE = 1.0  # seconds before a board that did not answer is asked again


def build_app(plan: Plan, board: Any) -> FastAPI:  # noqa: ANN401 - a handle of Ray's
    """The application of this replica; what it logs is in Ray's files.

    Parameters
    ----------
    plan : Plan
        What to serve.
    board : actor
        A ``Board``.
    """
    import ray

    use_cores(1)
    log_to_stderr(requests=plan.log_requests)
    known = ray.get(board.n_wishes.remote())  # before loading: what is asked for later is done
    try:
        models = plan.load()
    except DeplError as error:
        ray.get(board.failed.remote(str(error)))
        raise
    app = plan.app(models)
    within = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with within(app):
            follower = _Follower(board, app.state.runs, known)
            following = asyncio.create_task(follower.follow())
            try:
                yield
            finally:
                following.cancel()

    app.router.lifespan_context = lifespan
    return app


class _Follower:
    """Reloads when the board says so, and asks it for reloads."""

    def __init__(self, board: Any, runs: Sequence[LiveModel], known: int) -> None:  # noqa: ANN401
        self._id = uuid4().hex
        self._board = board
        self._runs = runs
        self._known = known
        self._tasks: set[asyncio.Task[None]] = set()
        for run in runs:
            run.ask_all = self._ask

    async def follow(self) -> None:
        """Do what is asked for, until the replica ends."""
        from ray.exceptions import RayError

        while True:
            try:
                wishes = await self._board.wishes.remote(self._id, self._known)
            except RayError:  # the board is gone: the replica answers on by itself
                await asyncio.sleep(_PAUSE)
                continue
            for wish in wishes:
                # Beside this loop, so that the board hears from a replica that takes its time.
                task = asyncio.create_task(self._reload(self._known, wish))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                self._known += 1

    async def _reload(self, number: int, name: str | None) -> None:
        seconds, error = await reload_runs(x for x in self._runs if name in (None, x.name))
        await self._board.done.remote(self._id, number, seconds, error)

    async def _ask(self, name: str) -> float:
        """Let all replicas reload a run; the seconds that the slowest took."""
        from ray.exceptions import RayError

        try:
            seconds, error = await self._board.reload.remote(name)
        except RayError:
            raise RunError(
                "The command that started this service is gone, so its replicas cannot be told to "
                "reload. Start it again."
            ) from None
        if error is not None:
            raise RunError(error)
        return float(seconds)
