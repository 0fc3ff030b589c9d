"""Files of documents, labelled in the background one after the other.

The output can be continued: a service that was stopped or killed continues its jobs when it is
started again. When a job is finished, the file is deleted; the output is kept until somebody
deletes it or too many others came after it. Of several processes that serve a run, one at a time
labels files: whichever holds the lock. When it dies, another continues.

The texts take the same way as those of requests, a batch at a time, so requests need not wait for
a job to end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

from depl.core.corpus import Label
from depl.core.errors import DeplError, RunError
from depl.core.locks import locked
from depl.core.storage import fingerprint
from depl.readers.columns import Columns
from depl.readers.document import Document
from depl.readers.documents import Documents, chunks
from depl.readers.resuming import SuggestionFile
from depl.readers.suggestions import Form
from depl.run.folder import Run
from depl.server.answers import Question
from depl.server.batching import QueueFullError, TooLateError
from depl.server.job_files import Job, JobFiles, JobState, Wish
from depl.server.live_model import LiveModel
from depl.server.logs import log_event
from depl.server.schemas import SuggestedLabel

T = TypeVar("T")

MOST_JOBS = 20  # that may wait
MAX_KEPT = 100  # finished jobs; the oldest is deleted for a further one
MAX_REASONS = 20  # rows that were left out, of which the reason is kept

_DOCUMENTS, _CHARACTERS = 32, 400_000  # of a chunk: as many as a batch, so that others come between
_PAUSE = 1.0  # seconds before a chunk for which there was no room is tried again
_PATIENCE = 10.0  # seconds that a job which is deleted may take to stop; its process may be dead
_LOOK = 0.5  # seconds between two looks at what other processes have done


class Jobs:
    """The jobs of one run.

    Parameters
    ----------
    live : LiveModel
        What labels the documents.
    run : Path
        The run's folder.
    most : int
        How many jobs may wait.
    """

    def __init__(self, live: LiveModel, run: Path, most: int) -> None:
        self._live = live
        self._run = run
        self._most = most
        self._files = JobFiles(run / "jobs")
        self._at_work: Job | None = None
        self._arrival = asyncio.Event()
        self._stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work through the jobs while the block runs, first those that an earlier service left."""
        worker = asyncio.create_task(self._work())
        try:
            yield
        finally:
            self._stopping = True
            self._arrival.set()
            await worker

    # For the routes

    async def new_folder(self) -> tuple[str, Path]:
        """An id, and the folder to which the file of its job is to be written.

        Refuses a further job where too many are waiting.
        """
        if sum(not job.done for job in await asyncio.to_thread(self._files.all)) >= self._most:
            raise QueueFullError(
                f"There are {self._most} files waiting to be labelled, and no more are taken. Try "
                f"again when one of them is finished."
                if self._most
                else "This service takes no files to label. Send texts to /v1/predict."
            )
        return await asyncio.to_thread(self._files.new)

    async def drop_folder(self, id: str) -> None:
        """Delete all files of what did not become a job."""
        await asyncio.to_thread(self._files.drop, id)

    async def add(self, id: str, wish: Wish) -> Job:
        """Queue a job whose file is there."""
        job = Job(id, wish, created=_now())
        await asyncio.to_thread(self._files.keep, job, new=True)
        self._arrival.set()
        return job

    async def get(self, id: str) -> Job | None:
        """The job with this id, if there is one."""
        found = await asyncio.to_thread(self._files.get, id)
        ours = self._at_work
        return ours if found is not None and ours is not None and ours.id == id else found

    async def remove(self, job: Job) -> None:
        """Stop a job and delete all that is kept of it."""
        await asyncio.to_thread(self._files.mark_unwanted, job.id)
        end = time.monotonic() + _PATIENCE
        while job.state == "running" and time.monotonic() < end:  # until its chunk is written
            await asyncio.sleep(0.02)
            there = {x.id: x for x in await asyncio.to_thread(self._files.all)}
            job = there.get(job.id, replace(job, state="finished"))
        await asyncio.to_thread(self._files.drop, job.id)

    def result(self, job: Job) -> Path:
        """Where the output of a job is."""
        return self._files.result(job)

    # The work

    async def _work(self) -> None:
        while not self._stopping:
            self._arrival.clear()
            try:
                if await asyncio.to_thread(self._next) is not None:
                    with self._alone():
                        await self._work_through()
            except DeplError as error:  # another process is at work, or the disk is full
                log_event(logging.DEBUG, "jobs wait", error=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrival.wait(), _LOOK)

    def _alone(self) -> AbstractContextManager[None]:
        return locked(
            self._run / ".jobs.lock",
            busy="Another process labels the files of this run",
            remedy="This one waits.",
        )

    async def _work_through(self) -> None:
        await asyncio.to_thread(self._files.drop_abandoned)
        while not self._stopping:
            job = await asyncio.to_thread(self._next)
            if job is None:
                return
            self._at_work = job
            try:
                await self._do(job)
            finally:
                self._at_work = None

    def _next(self) -> Job | None:
        """The oldest job that is to be done, begun or not; whoever began it is gone."""
        for job in self._files.all():
            if not job.done and not self._files.is_unwanted(job.id):
                return job
        return None

    async def _do(self, job: Job) -> None:
        job.state = "running"
        state: JobState = "waiting"  # again, if the service stops before the job is finished
        try:
            await asyncio.to_thread(self._files.keep, job)
            if await self._label(job):
                state, job.progress, job.finished = "finished", 1.0, _now()
        except DeplError as error:
            state, job.error, job.finished = "failed", self._in_words(job, error), _now()
        except Exception as error:
            log_event(logging.ERROR, "job failed", job=job.id, error=repr(error))
            message = "Something went wrong in the service; its log has the details."
            state, job.error, job.finished = "failed", message, _now()
        try:
            await asyncio.to_thread(self._files.keep, replace(job, state=state))
            if state != "waiting":
                await asyncio.to_thread(self._tidy, job)
        except RunError as error:
            log_event(logging.ERROR, "job not kept", job=job.id, error=str(error))
        job.state = state

    async def _label(self, job: Job) -> bool:
        """Label the documents of a job; whether it came to the end."""
        wish = job.wish
        labels = await self._when_there_is_room(
            job, lambda: self._live.read(lambda model: fingerprint(*model.labels.ids))
        )
        if labels is None:
            return False
        made_from = {"run": Run.open(self._run).version(), "labels": labels, **asdict(wish)}
        documents, todo, target = await asyncio.to_thread(self._open, job, made_from)
        with target:
            job.documents = target.done
            kept = time.monotonic()
            while self._is_wanted(job):
                chunk = await asyncio.to_thread(next, todo, None)
                if chunk is None:
                    await asyncio.to_thread(self._finish, job, target)
                    return True
                questions = [Question(x.text, wish.k, wish.threshold) for x in chunk]
                rows = await self._when_there_is_room(job, partial(self._live.suggest, questions))
                if rows is None:
                    return False
                await asyncio.to_thread(target.append, chunk, _suggested(rows))
                job.documents = target.done
                if documents.total:
                    job.progress = min(0.999, documents.position / documents.total)
                if time.monotonic() > kept + _LOOK:  # for the other processes
                    await asyncio.to_thread(self._files.keep, job)
                    kept = time.monotonic()
        return False

    def _is_wanted(self, job: Job) -> bool:
        return not self._stopping and not self._files.is_unwanted(job.id)

    async def _when_there_is_room(self, job: Job, ask: Callable[[], Awaitable[T]]) -> T | None:
        """What the model answers, as soon as it has time; None if nobody wants it any more."""
        while self._is_wanted(job):
            try:
                return await ask()
            except (QueueFullError, TooLateError):
                await asyncio.sleep(_PAUSE)
        return None

    def _open(
        self, job: Job, made_from: dict[str, Any]
    ) -> tuple[Documents, Iterator[list[Document]], SuggestionFile]:
        """The documents that are still to be labelled, and the file for their labels."""
        wish, source = job.wish, self._files.source(job)
        job.left_out, job.reasons = 0, []

        def left_out(place: str, why: str) -> None:
            job.left_out += 1
            if job.left_out <= MAX_REASONS:
                job.reasons.append(f"{PurePath(place).name}: {why}")

        kept = Run.open(self._run).columns()
        documents = Documents(
            [str(source)],
            left_out=left_out,
            columns=Columns.asked(wish.text, id=wish.id),
            kept=None if kept is None else Columns.from_json(kept),
            keep_fields=wish.wide,
        )
        path, form = self.result(job), Form(wish.k if wish.wide else 0)
        resume = wish.output != "xlsx"  # which is written in one go
        target = SuggestionFile(path, resume=resume, overwrite=not resume, form=form)
        try:
            target.begin(made_from)
        except RunError:  # the run has changed since: labels by two versions of it would be mixed
            target = SuggestionFile(path, resume=False, overwrite=True, form=form)
            target.begin(made_from)
        folder = f"{self._files.inputs(job)}/"  # which is nobody's business
        named = (x._replace(id=x.id.removeprefix(folder)) for x in documents)
        todo = chunks(target.rest_of(named), _DOCUMENTS, _CHARACTERS)
        return documents, todo, target

    def _finish(self, job: Job, target: SuggestionFile) -> None:
        if not target.done:
            why = f" ({job.reasons[0]})" if job.reasons else ""
            raise DeplError(f"No document could be read from {job.wish.name}{why}.")
        target.finish()

    def _in_words(self, job: Job, error: DeplError) -> str:
        """What went wrong, without the service's folders and what to do on its command line."""
        message, _, _ = str(error).partition(" What was written to --output")
        return message.replace(f"{self._files.inputs(job)}/", "")

    def _tidy(self, job: Job) -> None:
        """Delete the file of a job that is done, and the oldest jobs where there are too many."""
        self._files.drop_source(job)
        done = [x for x in self._files.all() if x.done]
        for old in done[: max(0, len(done) - MAX_KEPT)]:
            self._files.drop(old.id)


def _suggested(rows: Sequence[Sequence[SuggestedLabel]]) -> list[list[tuple[Label, float]]]:
    return [[(Label(x.id, x.name), x.probability) for x in row] for row in rows]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
