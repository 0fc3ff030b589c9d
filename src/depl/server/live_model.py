"""The model behind the service: asked in batches, changed and replaced without a gap."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from depl.core.errors import DeplError, RunError
from depl.labels.journal import Journal, in_force
from depl.model.classifier import Classifier
from depl.server.batching import Batcher, Batching, TooLateError
from depl.server.metrics import Metrics
from depl.server.views import Asked, Catalogue, present, suggest

T = TypeVar("T")

_WARM_UP = "The first text is slower than all others."


class NothingToUndoError(DeplError):
    """Every change has been taken back already, or there never was one."""


class Service:
    """A classifier that many may ask at the same time.

    Parameters
    ----------
    model : Classifier
        Loaded.
    run : path or None
        Its folder; without one it cannot be loaded anew.
    batching : Batching
        How requests are put together.
    metrics : Metrics
        What is counted.
    """

    def __init__(
        self, model: Classifier, *, run: Path | None, batching: Batching, metrics: Metrics
    ) -> None:
        self._model = model
        self._run = run
        self._catalogue: Catalogue | None = None
        self._batcher: Batcher[Asked, list[dict[str, Any]]] = Batcher(
            lambda asked: suggest(self._model, asked), batching, metrics.batch_done
        )
        # A change made while the run is read from disk would be missing in the new model.
        self._changing = asyncio.Lock()
        self._metrics = metrics
        metrics.watch_queue(lambda: self._batcher.waiting)
        metrics.labels.set(len(present(model)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """At work while the block runs."""
        self._batcher.start()
        try:
            yield
        finally:
            await self._batcher.stop()

    @property
    def ready(self) -> bool:
        """Whether requests would be answered."""
        return self._batcher.running

    async def suggest(self, asked: Sequence[Asked]) -> list[list[dict[str, Any]]]:
        """The labels of each text."""
        return await self._batcher.submit(asked)

    async def read(self, function: Callable[[Classifier], T]) -> T:
        """What a function finds in the model; it must not change it."""
        return await self._batcher.call(lambda: function(self._model))

    async def listed(self, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401
        """A page of the labels, see ``Catalogue.listed``."""

        def page() -> dict[str, Any]:
            if self._catalogue is None:
                self._catalogue = Catalogue(self._model)
            return self._catalogue.listed(**wanted)

        return await self._batcher.call(page)

    async def change(self, function: Callable[[Classifier], T]) -> T:
        """Change labels; predictions see all of the change or nothing of it."""

        def changed() -> T:
            try:
                return function(self._model)
            finally:
                self._catalogue = None

        async with self._alone():
            result = await self._batcher.call(changed)
            self._metrics.labels.set(len(present(self._model)))
            return result

    async def undo(self) -> str:
        """Take back the last change that is in force; tells which it was."""

        def undone(model: Classifier) -> str:
            if self._run is None or not in_force(Journal(self._run / "labels").entries()):
                raise NothingToUndoError("There is nothing to undo: no change is in force.")
            return model.undo()

        return await self.change(undone)

    async def reload(self) -> float:
        """Load the run anew beside the running model, then swap; gives the seconds it took."""
        run = self._run
        if run is None:
            raise RunError("This model has no run folder, so there is nothing to load anew.")
        start = time.perf_counter()

        async with self._alone():
            fresh = await asyncio.to_thread(load, run)

            def swap() -> None:
                self._model, self._catalogue = fresh, None

            await self._batcher.call(swap)
            self._metrics.labels.set(len(present(fresh)))
            self._metrics.reloads.inc()
        return time.perf_counter() - start

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        timeout = self._batcher.settings.timeout
        try:
            await asyncio.wait_for(self._changing.acquire(), timeout)
        except TimeoutError:
            raise TooLateError(
                f"Another change or a reload was not finished within {timeout:g} s. Nothing was "
                f"changed. Try again later."
            ) from None
        try:
            yield
        finally:
            self._changing.release()


def load(run: Path) -> Classifier:
    """A classifier that has answered once, so that its first request is as fast as the others."""
    model = Classifier.load(run)
    model.predict([_WARM_UP], 1)
    return model
