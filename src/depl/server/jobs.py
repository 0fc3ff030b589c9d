"""Files of documents, labelled in the background one after the other.

A job is a folder ``RUN/jobs/ID`` with ``job.json``, the file that was sent, and the output as far
as it is written. The output can be continued: a service that was stopped or killed continues its
jobs when it is started again. When a job is finished, the file is deleted; the output is kept until
somebody deletes it or too many others came after it.

The texts take the same way as those of requests, a batch at a time, so requests need not wait for
a job to end.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal, TypeVar

from depl.core.corpus import Label
from depl.core.errors import DeplError, RunError
from depl.core.storage import explain_os_errors, fingerprint, read_json, write_json
from depl.readers.columns import Columns
from depl.readers.document import Document
from depl.readers.documents import Documents, chunks
from depl.readers.resuming import SuggestionFile
from depl.readers.suggestions import Form
from depl.run.folder import Run
from depl.server.answers import Question
from depl.server.batching import QueueFullError, TooLateError
from depl.server.live_model import LiveModel
from depl.server.logs import log_event
from depl.server.schemas import SuggestedLabel

T = TypeVar("T")

Output = Literal["csv", "tsv", "jsonl", "parquet", "xlsx"]
JobState = Literal["waiting", "running", "finished", "failed"]

MOST_JOBS = 20  # that may wait
MAX_KEPT = 100  # finished jobs; the oldest is deleted for a further one
MAX_REASONS = 20  # rows that were left out, of which the reason is kept

_DOCUMENTS, _CHARACTERS = 32, 400_000  # of a chunk: as many as a batch, so that others come between
_PAUSE = 1.0  # seconds before a chunk for which there was no room is tried again


@dataclass(frozen=True)
class Wish:
    """What is asked for: the settings of a job."""

    name: str
    output: Output = "csv"
    k: int = 5
    threshold: float | None = None
    text: str | None = None
    id: str | None = None
    wide: bool = False


@dataclass
class Job:
    """A file to label, and how far it is."""

    id: str
    wish: Wish
    created: str
    state: JobState = "waiting"
    documents: int = 0
    left_out: int = 0
    reasons: list[str] = field(default_factory=list)
    progress: float = 0.0
    error: str | None = None
    finished: str | None = None
    unwanted: bool = field(default=False, compare=False)  # somebody deletes it

    @property
    def done(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ("finished", "failed")

    @property
    def result_name(self) -> str:
        """What a client may call the output."""
        return f"{PurePath(self.wish.name).stem}-labels.{self.wish.output}"


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
        self._folder = run / "jobs"
        self._jobs: dict[str, Job] = {}
        self._arrival = asyncio.Event()
        self._stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work through the jobs while the block runs, first those that an earlier service left."""
        await asyncio.to_thread(self._find)
        worker = asyncio.create_task(self._work())
        try:
            yield
        finally:
            self._stopping = True
            self._arrival.set()
            await worker

    # For the routes

    def check_room(self) -> None:
        """Refuse a further job where too many are waiting."""
        if sum(not job.done for job in self._jobs.values()) >= self._most:
            raise QueueFullError(
                f"There are {self._most} files waiting to be labelled, and no more are taken. Try "
                f"again when one of them is finished."
                if self._most
                else "This service takes no files to label. Send texts to /v1/predict."
            )

    def new_folder(self) -> tuple[str, Path]:
        """An id, and the folder to which the file of its job is to be written."""
        id = secrets.token_urlsafe(16)
        with explain_os_errors(self._folder):
            (self._folder / id / "input").mkdir(parents=True)
        return id, self._folder / id / "input"

    def drop_folder(self, id: str) -> None:
        """Delete all files of a job."""
        shutil.rmtree(self._folder / id, ignore_errors=True)

    async def add(self, id: str, wish: Wish) -> Job:
        """Queue a job whose file is there."""
        job = Job(id, wish, created=_now())
        await asyncio.to_thread(self._keep, job)
        self._jobs[id] = job
        self._arrival.set()
        return job

    def get(self, id: str) -> Job | None:
        """The job with this id, if there is one."""
        return self._jobs.get(id)

    async def remove(self, job: Job) -> None:
        """Stop a job and delete all that is kept of it."""
        job.unwanted = True
        while job.state == "running":  # until the chunk it is at is written
            await asyncio.sleep(0.02)
        self._jobs.pop(job.id, None)
        await asyncio.to_thread(self.drop_folder, job.id)

    def result(self, job: Job) -> Path:
        """Where the output of a job is."""
        return self._folder / job.id / f"output.{job.wish.output}"

    # The work

    async def _work(self) -> None:
        while not self._stopping:
            self._arrival.clear()
            jobs = self._jobs.values()
            waiting = [job for job in jobs if job.state == "waiting" and not job.unwanted]
            if not waiting:
                await self._arrival.wait()
                continue
            await self._do(min(waiting, key=lambda job: job.created))

    async def _do(self, job: Job) -> None:
        job.state = "running"
        state: JobState = "waiting"  # again, if the service stops before the job is finished
        try:
            if await self._label(job):
                state, job.progress, job.finished = "finished", 1.0, _now()
        except DeplError as error:
            state, job.error, job.finished = "failed", self._in_words(job, error), _now()
        except Exception as error:
            log_event(logging.ERROR, "job failed", job=job.id, error=repr(error))
            message = "Something went wrong in the service; its log has the details."
            state, job.error, job.finished = "failed", message, _now()
        try:
            await asyncio.to_thread(self._keep, replace(job, state=state))
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
            while not (self._stopping or job.unwanted):
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
        return False

    async def _when_there_is_room(self, job: Job, ask: Callable[[], Awaitable[T]]) -> T | None:
        """What the model answers, as soon as it has time; None if nobody wants it any more."""
        while not (self._stopping or job.unwanted):
            try:
                return await ask()
            except (QueueFullError, TooLateError):
                await asyncio.sleep(_PAUSE)
        return None

    def _open(
        self, job: Job, made_from: dict[str, Any]
    ) -> tuple[Documents, Iterator[list[Document]], SuggestionFile]:
        """The documents that are still to be labelled, and the file for their labels."""
        wish, (source,) = job.wish, (self._folder / job.id / "input").iterdir()
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
        todo = chunks(target.rest_of(iter(documents)), _DOCUMENTS, _CHARACTERS)
        return documents, todo, target

    def _finish(self, job: Job, target: SuggestionFile) -> None:
        if not target.done:
            why = f" ({job.reasons[0]})" if job.reasons else ""
            raise DeplError(f"No document could be read from {job.wish.name}{why}.")
        target.finish()

    def _in_words(self, job: Job, error: DeplError) -> str:
        """What went wrong, without the service's folders and what to do on its command line."""
        message, _, _ = str(error).partition(" What was written to --output")
        return message.replace(f"{self._folder / job.id / 'input'}/", "")

    # What is on the disk

    def _keep(self, job: Job) -> None:
        value = asdict(job)
        del value["unwanted"]
        write_json(self._folder / job.id / "job.json", value)

    def _tidy(self, job: Job) -> None:
        """Delete the file of a job that is done, and the oldest jobs where there are too many."""
        shutil.rmtree(self._folder / job.id / "input", ignore_errors=True)
        done = sorted((x for x in self._jobs.values() if x.done), key=lambda x: x.created)
        for old in done[: max(0, len(done) + 1 - MAX_KEPT)]:
            self._jobs.pop(old.id, None)
            self.drop_folder(old.id)

    def _find(self) -> None:
        """Jobs that an earlier service left; what never became one is deleted."""
        for folder in sorted(self._folder.iterdir()) if self._folder.is_dir() else []:
            try:
                value = read_json(folder / "job.json")
                job = Job(**value | {"wish": Wish(**value["wish"])})
            except (DeplError, TypeError, KeyError) as error:
                log_event(logging.WARNING, "job dropped", job=folder.name, error=str(error))
                self.drop_folder(folder.name)
                continue
            if job.state == "running":
                job.state = "waiting"
            self._jobs[job.id] = job


def _suggested(rows: Sequence[Sequence[SuggestedLabel]]) -> list[list[tuple[Label, float]]]:
    return [[(Label(x.id, x.name), x.probability) for x in row] for row in rows]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
