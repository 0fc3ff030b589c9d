"""The files of a job: ``RUN/jobs/ID`` with ``job.json``, what was sent, and the output.

Several processes may serve one run, so the folder is all that counts: whoever is asked for a job
reads it there, and whoever deletes one leaves a mark that the process at work finds.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Literal

from depl.core.errors import DeplError, explain_os_errors
from depl.core.storage import read_json, write_json
from depl.server.logs import log_event

Output = Literal["csv", "tsv", "jsonl", "parquet", "xlsx"]
JobState = Literal["waiting", "running", "finished", "failed"]

_ID = re.compile(r"[A-Za-z0-9_-]{22}")  # of 16 random bytes
_JOB, _INPUT, _UNWANTED = "job.json", "input", "unwanted"
_ABANDONED = 3_600.0  # seconds after which a file that never became a job is deleted


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

    @property
    def done(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ("finished", "failed")

    @property
    def result_name(self) -> str:
        """What a client may call the output."""
        return f"{PurePath(self.wish.name).stem}-labels.{self.wish.output}"


class JobFiles:
    """The folder of a run's jobs.

    Parameters
    ----------
    folder : Path
        ``RUN/jobs``; it is made with the first job.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[str, Job] = {}  # these do not change any more

    def new(self) -> tuple[str, Path]:
        """An id, and the folder to which the file of its job is to be written."""
        id = secrets.token_urlsafe(16)
        with explain_os_errors(self._folder):
            (self._folder / id / _INPUT).mkdir(parents=True)
        return id, self._folder / id / _INPUT

    def keep(self, job: Job, *, new: bool = False) -> None:
        """Write down how far a job is, unless somebody has deleted it."""
        path = self._folder / job.id / _JOB
        if new or path.exists():
            write_json(path, asdict(job))

    def get(self, id: str) -> Job | None:
        """The job with this id, if there is one and nobody wants it deleted."""
        if _ID.fullmatch(id) is None or self.is_unwanted(id):
            return None
        return self._read(id)

    def all(self) -> list[Job]:
        """All jobs, the oldest first, those that are being deleted included."""
        names = {x.name for x in self._folder.iterdir()} if self._folder.is_dir() else set()
        self._done = {id: job for id, job in self._done.items() if id in names}
        found = [self._done.get(id) or self._read(id) for id in names if _ID.fullmatch(id)]
        return sorted((job for job in found if job is not None), key=lambda job: job.created)

    def drop(self, id: str) -> None:
        """Delete all files of a job."""
        shutil.rmtree(self._folder / id, ignore_errors=True)

    def drop_abandoned(self) -> None:
        """Delete what was sent and never became a job: a service was killed meanwhile."""
        for folder in self._folder.iterdir():
            before = time.time() - _ABANDONED
            if not (folder / _JOB).exists() and folder.stat().st_mtime < before:
                self.drop(folder.name)

    def drop_source(self, job: Job) -> None:
        """Delete the file that was sent."""
        shutil.rmtree(self.inputs(job), ignore_errors=True)

    def mark_unwanted(self, id: str) -> None:
        """Tell whoever works at a job that nobody wants it any more."""
        with explain_os_errors(self._folder):
            (self._folder / id / _UNWANTED).touch()

    def is_unwanted(self, id: str) -> bool:
        """Whether somebody has deleted a job, at which a process may still be working."""
        return (self._folder / id / _UNWANTED).exists()

    def source(self, job: Job) -> Path:
        """The file that was sent."""
        (source,) = self.inputs(job).iterdir()
        return source

    def inputs(self, job: Job) -> Path:
        """The folder of the file that was sent."""
        return self._folder / job.id / _INPUT

    def result(self, job: Job) -> Path:
        """Where the output of a job is."""
        return self._folder / job.id / f"output.{job.wish.output}"

    def _read(self, id: str) -> Job | None:
        path = self._folder / id / _JOB
        if not path.exists():
            return None
        try:
            value = read_json(path)
            job = Job(**value | {"wish": Wish(**value["wish"])})
        except (DeplError, TypeError, KeyError) as error:
            if path.exists():  # and otherwise it was deleted meanwhile
                log_event(logging.WARNING, "job dropped", job=id, error=str(error))
                self.drop(id)
            return None
        if job.done:
            self._done[id] = job
        return job
