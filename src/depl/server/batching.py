"""One thread for the model, and a queue of what many requests want from it.

Only this thread uses the model, so nothing that reads it needs a lock: predictions, reads and
changes of labels all go through the queue. Texts of different requests share a batch, because a
batch costs much less than its texts one by one. Nothing waits forever: the queue has a limit, and
requests that have timed out or whose client has disconnected are taken out of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeVar

from depl.core.errors import ConfigError, DeplError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
T = TypeVar("T")


class QueueFullError(DeplError):
    """The queue is full."""


class TooLateError(DeplError):
    """A request was not started, or not answered, in time."""


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How the texts of several requests share a batch, and how long requests may wait.

    Parameters
    ----------
    max_batch : int
        The largest number of texts in a batch; 1 is no batching.
    max_wait : float
        Seconds that a text waits for others to share a batch with when the model is idle.
    queue : int
        Requests are refused while this many texts are waiting.
    timeout : float
        Seconds that a request may take in all.
    """

    max_batch: int = 32
    max_wait: float = 0.005
    queue: int = 1024
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.max_batch < 1 or self.queue < 1 or self.max_wait < 0 or self.timeout <= 0:
            raise ConfigError(
                f"max_batch and queue must be at least 1, max_wait at least 0 s, and timeout more "
                f"than 0 s; got max_batch = {self.max_batch}, queue = {self.queue}, "
                f"max_wait = {self.max_wait}, timeout = {self.timeout}."
            )


@dataclass(eq=False)
class _Request(Generic[Item, Answer]):
    """The items of one request; they may be answered in several batches."""

    number: int  # in the order of arrival
    items: Sequence[Item]
    future: asyncio.Future[list[Answer]]
    answers: dict[int, Answer] = field(default_factory=dict)

    def answer(self, places: Sequence[int], answers: Sequence[Answer]) -> None:
        self.answers.update(zip(places, answers, strict=True))
        if len(self.answers) == len(self.items) and not self.future.done():
            self.future.set_result([self.answers[i] for i in range(len(self.items))])

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False)
class _Job:
    """A call that is not batched."""

    number: int
    function: Callable[[], Any]
    future: asyncio.Future[Any]


class Batcher(Generic[Item, Answer]):
    """Answers items in batches, and runs other calls between the batches.

    Parameters
    ----------
    answer : function from a list of items to a list of answers
        Runs in the model's thread.
    settings : Batching
        Limits of batches and of the queue.
    done : function of (items, seconds)
        Called after every batch.
    queued : function of int
        Called with the length of the queue when it has changed.
    """

    def __init__(
        self,
        answer: Callable[[list[Item]], list[Answer]],
        settings: Batching,
        done: Callable[[int, float], None],
        queued: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._answer = answer
        self._done = done
        self._queued = queued
        self._waiting: deque[tuple[_Request[Item, Answer], int]] = deque()
        self._jobs: deque[_Job] = deque()
        self._numbers = count()
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="depl-model")
        self._worker: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Items and calls in the queue."""
        return len(self._waiting) + len(self._jobs)

    @property
    def running(self) -> bool:
        """Whether the queue is being worked through."""
        return self._worker is not None and not self._worker.done()

    def start(self) -> None:
        """Start to work, in the running event loop."""
        self._worker = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Finish what has been started, then stop."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)

    async def submit(self, items: Sequence[Item]) -> list[Answer]:
        """The answers to some items, in order. Cancelling takes the items out of the queue."""
        self._refuse_if_full(len(self._waiting))
        request: _Request[Item, Answer] = _Request(
            next(self._numbers), items, asyncio.get_running_loop().create_future()
        )
        self._waiting.extend((request, i) for i in range(len(items)))
        self._arrived()
        try:
            await asyncio.wait({request.future}, timeout=self.settings.timeout)
            if not request.future.done():
                raise self._too_late()
            return request.future.result()
        finally:
            if not request.future.done():
                request.future.cancel()
                kept = [pair for pair in self._waiting if pair[0] is not request]
                self._waiting.clear()
                self._waiting.extend(kept)
                self._queue_changed()

    async def call(self, function: Callable[[], T]) -> T:
        """The result of a call between two batches; if not started in time, it never starts."""
        self._refuse_if_full(len(self._jobs))
        job = _Job(next(self._numbers), function, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrived()
        try:
            await asyncio.wait({job.future}, timeout=self.settings.timeout)
        finally:
            never_started = job in self._jobs
            if never_started:
                self._jobs.remove(job)
                self._queue_changed()
        if never_started:
            raise self._too_late()
        result: T = await job.future
        return result

    def _arrived(self) -> None:
        self._queue_changed()
        self._arrival.set()

    def _queue_changed(self) -> None:
        self._queued(self.waiting)

    def _refuse_if_full(self, waiting: int) -> None:
        if waiting >= self.settings.queue:
            raise QueueFullError(
                "The service is busy and its queue is full. Try again in a moment."
            )

    def _too_late(self) -> TooLateError:
        return TooLateError(
            f"There was no answer within {self.settings.timeout:g} s because the service is busy. "
            f"Try again later, or send fewer texts at a time."
        )

    async def _work(self) -> None:
        # First come, first served; but behind many texts there is a call after every batch, so that
        # a list of labels does not wait for all of them.
        while True:
            self._arrival.clear()
            if not self._jobs and not self._waiting:
                await self._arrival.wait()
            if self._jobs:
                await self._run(self._jobs.popleft())
            while self._jobs and self._call_was_first():
                await self._run(self._jobs.popleft())
            if self._waiting:
                await self._fill_batch()
                await self._answer_batch()

    def _call_was_first(self) -> bool:
        return not self._waiting or self._jobs[0].number < self._waiting[0][0].number

    async def _fill_batch(self) -> None:
        now = asyncio.get_running_loop().time
        until = now() + self.settings.max_wait
        while len(self._waiting) < self.settings.max_batch and (left := until - now()) > 0:
            self._arrival.clear()
            try:
                await asyncio.wait_for(self._arrival.wait(), left)
            except TimeoutError:
                return

    async def _run(self, job: _Job) -> None:
        try:
            self._queue_changed()
            result = await self._in_thread(job.function)
        except Exception as error:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    async def _answer_batch(self) -> None:
        size = min(self.settings.max_batch, len(self._waiting))
        places: dict[_Request[Item, Answer], list[int]] = {}
        for request, place in (self._waiting.popleft() for _ in range(size)):
            places.setdefault(request, []).append(place)
        self._queue_changed()
        if places and not await self._answer_together(places) and len(places) > 1:
            # A text on which the model fails must not fail the other requests in its batch.
            for request, some in places.items():
                await self._answer_together({request: some}, last=True)

    async def _answer_together(
        self, places: dict[_Request[Item, Answer], list[int]], *, last: bool = False
    ) -> bool:
        items = [request.items[i] for request, some in places.items() for i in some]
        start = asyncio.get_running_loop().time()
        try:
            answers = await self._in_thread(lambda: self._answer(items))
        except Exception as error:
            if last or len(places) == 1:
                for request in places:
                    request.fail(error)
            return False
        self._done(len(items), asyncio.get_running_loop().time() - start)
        for request, some in places.items():
            request.answer(some, answers[: len(some)])
            answers = answers[len(some) :]
        return True

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)
