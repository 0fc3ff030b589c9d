"""The model behind the service: answers in batches, is edited and reloaded while it answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from depl.core.errors import DeplError, RunError
from depl.fusion.aims import probability_for, refuse_percent
from depl.model.classifier import Classifier
from depl.server.answers import Question, present, suggest
from depl.server.batching import Batcher, Batching, TooLateError
from depl.server.catalogue import Catalogue
from depl.server.logs import log_event
from depl.server.metrics import RunMetrics
from depl.server.schemas import LabelList, Sort, SuggestedLabel

T = TypeVar("T")

_PATIENCE = 1.0  # seconds before edits that could not be read are looked at again
_WARM_UP = "The first text takes longer than all others."


class LiveModel:
    """A classifier that many requests use at the same time.

    Parameters
    ----------
    model : Classifier
        Loaded.
    name : str
        What the service calls the run.
    batching : Batching
        How the texts of several requests share a batch.
    metrics : RunMetrics
        Where batches, labels and reloads are counted.
    """

    def __init__(
        self, model: Classifier, *, name: str, batching: Batching, metrics: RunMetrics
    ) -> None:
        self.name = name
        self._model = model
        self._catalogue: Catalogue | None = None
        self._batcher: Batcher[Question, list[SuggestedLabel]] = Batcher(
            lambda questions: suggest(self._fresh(), questions),
            batching,
            metrics.batch_done,
            metrics.queue.set,
        )
        self.ask_all: Callable[[str], Awaitable[float]] | None = None
        self._look_again = 0.0  # when to look for edits again, after they could not be read
        # A change made while the run is read from disk would be missing in the new model.
        self._changing = asyncio.Lock()
        self._metrics = metrics
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

    @property
    def folder(self) -> Path | None:
        """The run folder, if the model was loaded from one."""
        return self._model.folder

    @property
    def version(self) -> str:
        """Identifies the run as it was loaded."""
        return self._model.version

    async def suggest(self, questions: Sequence[Question]) -> list[list[SuggestedLabel]]:
        """The labels of each text."""
        return await self._batcher.submit(questions)

    def least_probability(self, threshold: float | str | None) -> float | None:
        """The probability that a threshold stands for, which may be in words."""
        if not isinstance(threshold, str):
            if threshold is not None and threshold > 1 and self._model.gives_probabilities:
                refuse_percent(threshold)
            return threshold
        return probability_for(threshold, self._model.thresholds)

    async def read(self, function: Callable[[Classifier], T]) -> T:
        """The result of a function of the model; the function must not change the model."""
        return await self._batcher.call(lambda: function(self._fresh()))

    async def listed(
        self, *, search: str, band: str, sort: Sort, offset: int, limit: int
    ) -> LabelList:
        """A page of the labels, see ``Catalogue.listed``."""

        def page() -> LabelList:
            model = self._fresh()
            if self._catalogue is None:
                self._catalogue = Catalogue(model)
            return self._catalogue.listed(
                search=search, band=band, sort=sort, offset=offset, limit=limit
            )

        return await self._batcher.call(page)

    def _fresh(self) -> Classifier:
        """The model with what other processes, such as `depl labels`, have edited.

        If that cannot be read, the labels stay as they are: suggestions must not fail by it.
        """
        if time.monotonic() < self._look_again:
            return self._model
        try:
            if self._model.refresh():
                self._labels_changed()
        except DeplError as error:
            self._look_again = time.monotonic() + _PATIENCE
            log_event(logging.ERROR, "edits cannot be read", error=str(error))
        return self._model

    def _labels_changed(self) -> None:
        self._catalogue = None
        self._metrics.labels.set(len(present(self._model)))

    async def change(self, function: Callable[[Classifier], T]) -> T:
        """Change labels; every prediction sees either the whole change or none of it."""

        def changed() -> T:
            try:
                self._model.refresh()  # what others have edited, before anything is checked
                return function(self._model)
            finally:
                self._labels_changed()

        async with self._alone(), self._locked():
            return await self._batcher.call(changed)

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        """Keep other processes from editing; suggestions go on while this waits for them."""
        lock = self._model.locked()
        waiting = asyncio.ensure_future(asyncio.to_thread(lock.__enter__))
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            waiting.add_done_callback(
                lambda done: done.exception() or lock.__exit__(None, None, None)
            )
            raise
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    async def undo(self) -> str:
        """Undo the last change; returns which one it was."""
        return await self.change(lambda model: model.undo())

    async def reload_everywhere(self) -> float:
        """Reload in all processes of the service, this one among them; the seconds taken.

        ``ask_all`` does so where there are several.
        """
        return await (self.reload() if self.ask_all is None else self.ask_all(self.name))

    async def reload(self) -> float:
        """Load the run again while the old model answers, then swap; returns the seconds taken."""
        run = self.folder
        if run is None:
            raise RunError("This model has no run folder, so it cannot be reloaded.")
        start = time.perf_counter()

        async with self._alone():
            fresh = await asyncio.to_thread(load, run)

            def swap() -> None:
                self._model = fresh
                self._labels_changed()

            await self._batcher.call(swap)
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
    """A classifier that has predicted once, so that the first request is as fast as the others.

    It has read all that it will need, so that it stays whole while the run is fitted again.
    """
    model = Classifier.load(run)
    model.read()
    model.predict([_WARM_UP], 1)
    return model
