"""``depl serve --learn``: the service learns from feedback by itself, in a process of its own.

A thread looks at the feedback of each run. When enough was decided, or something and then nothing
for a while, it lets a process of low priority do what ``depl learn`` does, and put what is left to
review into a new order. Then SIGHUP lets the service load the new state: the old one answers until
that is done, in one process or in several.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread

from depl.core.errors import DeplError
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import ReviewQueue
from depl.model.classifier import Classifier
from depl.model.review import renew
from depl.pipeline.learn import learn
from depl.run.folder import Run
from depl.server.logs import log_event

PAUSE = 60.0  # seconds without a decision, after which fewer decisions are enough
_START = "import sys; sys.path[:] = {path!r}; from depl.server.learning import main; main()"
_EVERY = 2.0  # seconds between two looks
_NICENESS = 10  # requests come first


class Due:
    """Whether it is time to learn.

    Parameters
    ----------
    after : int
        So many decisions, or undos, are enough.
    pause : float
        One is enough after so many seconds without another.
    """

    def __init__(self, after: int, pause: float) -> None:
        self._after, self._pause = after, pause
        self._studied = self._seen = 0
        self._since = -float("inf")

    def look(self, changes: int, now: float) -> bool:
        """Whether to learn now; ``changes`` are all decisions and undos so far."""
        if changes != self._seen:
            self._seen, self._since = changes, now
        new = changes - self._studied
        if new >= self._after or (new > 0 and now - self._since >= self._pause):
            self._studied = changes
            return True
        return False


class Learners:
    """One for each run; a context manager, at whose end they stop.

    Parameters
    ----------
    runs : iterable of Path
        Run folders.
    after : int or None
        How many decisions are enough; None to do nothing.
    learned : function
        Called in another thread when a run has learnt.
    pause : float
        Seconds without a decision, after which fewer are enough.
    """

    def __init__(
        self,
        runs: Iterable[Path],
        after: int | None,
        learned: Callable[[], None] | None = None,
        *,
        pause: float = PAUSE,
    ) -> None:
        self._runs = [] if after is None else list(runs)
        self._due = [Due(after or 1, pause) for _ in self._runs]
        self._learned = learned or _hang_up
        self._stopping = Event()
        self._children: dict[Path, subprocess.Popen[str]] = {}

    def start(self) -> None:
        """Begin to look; the service must answer by now."""
        for run, due in zip(self._runs, self._due, strict=True):
            Thread(target=self._watch, args=(run, due), daemon=True).start()

    def __enter__(self) -> Learners:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for child in tuple(self._children.values()):
            child.terminate()  # a state counts once it is whole: nothing is left half done

    def _watch(self, run: Path, due: Due) -> None:
        store = FeedbackStore(run)
        while not self._stopping.wait(_EVERY):
            try:
                if due.look(store.changes(), time.monotonic()) and self._learn(run):
                    self._learned()
            except DeplError as error:
                log_event(logging.ERROR, "learning failed", run=run.name, error=str(error))

    def _learn(self, run: Path) -> bool:
        """Let a process learn; whether there was anything."""
        child = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path), str(run)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._children[run] = child
        if hasattr(os, "setpriority"):
            os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
        said, trouble = child.communicate()
        del self._children[run]
        if self._stopping.is_set():
            return False
        if child.returncode:
            raise DeplError(trouble.strip() or f"The process ended with {child.returncode}.")
        lesson = json.loads(said)
        if lesson["labels"]:
            facts = {x: lesson[x] for x in ("labels", "documents", "seconds")}
            log_event(logging.WARNING, "learnt", run=run.name, **facts)
        return bool(lesson["labels"])


def main() -> None:
    """Learn from the feedback on the run that is named, and print what was learnt."""
    try:
        run = Run.open(sys.argv[1])
        lesson, _ = learn(run)
        queue = ReviewQueue(run.path)
        if lesson.labels and queue.progress().left:
            renew(Classifier.load(run.path), queue)
    except DeplError as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(asdict(lesson)))


def _hang_up() -> None:
    """Let this process reload its runs."""
    os.kill(os.getpid(), signal.SIGHUP)
