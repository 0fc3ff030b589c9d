"""The files of a job: ``RUN/jobs/ID`` with ``job.json``, what was sent, and the output.

Several processes may serve one run, so the folder is all that counts: whoever is asked for a job
reads it there, and whoever deletes one leaves a mark that the process at work finds.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from depl.core.errors import DeplError, RunError, explain_os_errors
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


_JOBS = TypeAdapter(Job)


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
        self._refuse_link()
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
        self._refuse_link()
        with explain_os_errors(self._folder):
            names = {x.name for x in self._folder.iterdir()} if self._folder.is_dir() else set()
        self._done = {id: job for id, job in self._done.items() if id in names}
        found = [self._done.get(id) or self._read(id) for id in names if _ID.fullmatch(id)]
        return sorted((job for job in found if job is not None), key=lambda job: job.created)

    def drop(self, id: str) -> None:
        """Delete all files of a job; without the first of them it is no job any more."""
        with suppress(OSError):
            (self._folder / id / _JOB).unlink()
        shutil.rmtree(self._folder / id, ignore_errors=True)

    def drop_abandoned(self) -> None:
        """Delete what was sent and never became a job: a service was killed meanwhile."""
        before = time.time() - _ABANDONED
        with explain_os_errors(self._folder):
            for folder in self._folder.iterdir():
                with suppress(FileNotFoundError):  # somebody else deletes it right now
                    unborn = _ID.fullmatch(folder.name) and not (folder / _JOB).exists()
                    if unborn and folder.stat().st_mtime < before:
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
        found = list(self.inputs(job).iterdir()) if self.inputs(job).is_dir() else []
        if len(found) != 1:
            raise RunError(f"{job.wish.name} is not there any more. Send it again.")
        return found[0]

    def inputs(self, job: Job) -> Path:
        """The folder of the file that was sent."""
        return self._folder / job.id / _INPUT

    def result(self, job: Job) -> Path:
        """Where the output of a job is."""
        return self._folder / job.id / f"output.{job.wish.output}"

    def _refuse_link(self) -> None:
        """A run from elsewhere must not have folders of this machine filled and emptied."""
        if self._folder.is_symlink():
            raise RunError(f"{self._folder} is a link. Put the folder itself there.")

    def _read(self, id: str) -> Job | None:
        path = self._folder / id / _JOB
        if not path.exists():
            return None
        try:
            job = _JOBS.validate_python(read_json(path))
            if job.id != id:  # with it, other folders would be read and deleted
                raise RunError(f"{path} is damaged: it belongs to another job.")
            if _has_link(path.parent):
                raise RunError(f"There is a link in {path.parent}, which leads elsewhere.")
        except (DeplError, ValidationError) as error:
            if path.exists():  # and otherwise it was deleted meanwhile
                log_event(logging.WARNING, "job dropped", job=id, error=str(error))
                self.drop(id)
            return None
        if not path.exists():  # deleted meanwhile, perhaps for a link that is gone by now
            return None
        if job.done:
            self._done[id] = job
        return job


def _has_link(folder: Path) -> bool:
    """Whether there is a link in it, or it is one; parts may be deleted meanwhile."""
    inside = (Path(at, x) for at, folders, files in os.walk(folder) for x in (*folders, *files))
    return folder.is_symlink() or any(path.is_symlink() for path in inside)
