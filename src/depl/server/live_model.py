"""The model behind the service: answers in batches, is edited and reloaded while it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from depl.core.errors import DeplError, RunError
from depl.labels.journal import Journal, in_force
from depl.model.classifier import Classifier
from depl.server.answers import Question, present, suggest
from depl.server.batching import Batcher, Batching, TooLateError
from depl.server.catalogue import Catalogue
from depl.server.metrics import Metrics
from depl.server.schemas import LabelList, Sort, SuggestedLabel

T = TypeVar("T")

_WARM_UP = "The first text takes longer than all others."


class NothingToUndoError(DeplError):
    """There is no change left that could be undone."""


class LiveModel:
    """A classifier that many requests use at the same time.

    Parameters
    ----------
    model : Classifier
        Loaded.
    run : path or None
        The folder it was loaded from; without one it cannot be reloaded.
    batching : Batching
        How the texts of several requests share a batch.
    metrics : Metrics
        Where batches, labels and reloads are counted.
    """

    def __init__(
        self, model: Classifier, *, run: Path | None, batching: Batching, metrics: Metrics
    ) -> None:
        self._model = model
        self._run = run
        self._catalogue: Catalogue | None = None
        self._batcher: Batcher[Question, list[SuggestedLabel]] = Batcher(
            lambda questions: suggest(self._model, questions), batching, metrics.batch_done
        )
        # A change made while the run is read from disk would be missing in the new model.
        self._changing = asyncio.Lock()
        self._metrics = metrics
        metrics.watch_queue(lambda: self._batcher.waiting)
        metrics.labels.set(len(present(model)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests while the block runs."""
        self._batcher.start()
        try:
            yield
        finally:
            await self._batcher.stop()

    @property
    def ready(self) -> bool:
        """Whether requests would be answered."""
        return self._batcher.running

    async def suggest(self, questions: Sequence[Question]) -> list[list[SuggestedLabel]]:
        """The labels of each text."""
        return await self._batcher.submit(questions)

    async def read(self, function: Callable[[Classifier], T]) -> T:
        """The result of a function of the model; the function must not change the model."""
        return await self._batcher.call(lambda: function(self._model))

    async def listed(
        self, *, search: str, band: str, sort: Sort, offset: int, limit: int
    ) -> LabelList:
        """A page of the labels, see ``Catalogue.listed``."""

        def page() -> LabelList:
            if self._catalogue is None:
                self._catalogue = Catalogue(self._model)
            return self._catalogue.listed(
                search=search, band=band, sort=sort, offset=offset, limit=limit
            )

        return await self._batcher.call(page)

    async def change(self, function: Callable[[Classifier], T]) -> T:
        """Change labels; every prediction sees either the whole change or none of it."""

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
        """Undo the last change; returns which one it was."""

        def undone(model: Classifier) -> str:
            if self._run is None or not in_force(Journal(self._run).entries()):
                raise NothingToUndoError("There is nothing to undo.")
            return model.undo()

        return await self.change(undone)

    async def reload(self) -> float:
        """Load the run again while the old model answers, then swap; returns the seconds taken."""
        run = self._run
        if run is None:
            raise RunError("This model has no run folder, so it cannot be reloaded.")
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
                f"Another change or a reload is still running after {timeout:g} s, so nothing was "
                f"changed. Try again later."
            ) from None
        try:
            yield
        finally:
            self._changing.release()


def load(run: Path) -> Classifier:
    """A classifier that has predicted once, so that the first request is as fast as the others."""
    model = Classifier.load(run)
    model.predict([_WARM_UP], 1)
    return model
