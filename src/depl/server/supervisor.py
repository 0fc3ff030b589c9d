"""``depl serve --workers N``: processes that share one socket, and the one that looks after them.

Every worker has the whole service in it and answers what it accepts. They share no memory but the
pages of the weights, which they map from the run's files; what changes is on the disk, and each
looks there before it answers: edits of labels, feedback, reviews, jobs. What remains for this
process: start workers, replace one that dies, let all reload when one is asked to, stop all.

A worker is told things through its standard input and answers through its standard output; when
this process is gone, however it ended, the input ends, and the worker finishes and ends as well.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from prometheus_client.multiprocess import mark_process_dead

from depl.core.errors import ConfigError, DeplError
from depl.core.workers import cores, receive, send
from depl.server.logs import log_event
from depl.server.plan import Plan
from depl.server.process import GRACE

_START = "import sys; sys.path[:] = {path!r}; from depl.server.worker import main; main()"
_PAUSE = 1.0  # seconds before a worker that died while it started is started again


class _Event(NamedTuple):
    """Something a worker said (``about`` says what more), or a signal to this process."""

    said: str
    process: subprocess.Popen[bytes] | None = None
    about: Any = None


@dataclass
class _Reload:
    """A reload that a worker asked for, or nobody: of whom answers are awaited."""

    asker: subprocess.Popen[bytes] | None
    number: int
    waiting: set[int]
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)


def run_workers(
    plan: Plan, listener: socket.socket, workers: int, started: Callable[[Mapping[str, int]], None]
) -> None:
    """Answer on this socket with so many processes until SIGTERM or Ctrl-C; SIGHUP reloads.

    Parameters
    ----------
    plan : Plan
        What to serve.
    listener : socket
        Listening.
    workers : int
        How many processes.
    started : function
        Called once all of them answer, with the number of labels of each run.
    """
    if not hasattr(signal, "SIGHUP"):
        raise ConfigError("--workers is not available on Windows: one process answers there.")
    with tempfile.TemporaryDirectory(prefix="depl-metrics-") as metrics:
        _Supervisor(plan, listener, workers, Path(metrics)).run(started)


class _Supervisor:
    """Starts the workers and reacts to what happens, one event after the other."""

    def __init__(self, plan: Plan, listener: socket.socket, workers: int, metrics: Path) -> None:
        self._plan = plan
        self._listener = listener
        self._n = workers
        self._threads = max(1, cores() // workers)
        self._metrics = metrics
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._ready: dict[int, Mapping[str, str]] = {}  # by process, the versions of its runs
        self._reloads: list[_Reload] = []
        self._reloads_so_far = 0

    def run(self, started: Callable[[Mapping[str, int]], None]) -> None:
        with self._signals():
            try:
                for _ in range(self._n):
                    self._start()
                told = False
                while (event := self._events.get()).said != "stop":
                    self._react(event, at_start=not told)
                    if not told and len(self._ready) == self._n:
                        started(event.about[0])
                        told = True
            finally:
                self._stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn signals into events."""
        meaning = {signal.SIGTERM: "stop", signal.SIGINT: "stop", signal.SIGHUP: "reload all"}
        before = {
            number: signal.signal(number, lambda *_, said=said: self._events.put(_Event(said)))
            for number, said in meaning.items()
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _react(self, event: _Event, *, at_start: bool) -> None:
        process, about = event.process, event.about
        if event.said == "reload all":
            self._reload(None, None)
        elif process is None or process.pid not in self._workers:
            return  # what a worker said before it died
        elif event.said == "ready":
            self._ready[process.pid] = versions = about[1]
            if any(others != versions for others in self._ready.values()):
                # The run was fitted again since the others started: all are to be the same.
                self._reload(None, None)
        elif event.said == "reload":
            self._reload(process, about)
        elif event.said == "reloaded":
            self._answered(process, *about)
        elif event.said == "failed" and at_start:
            raise DeplError(about)
        elif event.said == "failed":
            log_event(logging.ERROR, "worker failed to start", error=about)
        elif event.said == "ended":
            self._replace(process, at_start=at_start)

    def _start(self) -> None:
        descriptor = self._listener.fileno()
        command = [sys.executable, "-c", _START.format(path=sys.path)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
            env=self._environment(),
        )
        self._workers[process.pid] = process
        self._say(process, (self._plan, descriptor, self._threads))
        Thread(target=self._listen_to, args=(process,), daemon=True).start()

    def _environment(self) -> Mapping[str, str]:
        shared = {"PROMETHEUS_MULTIPROC_DIR": str(self._metrics)}
        return {"OMP_NUM_THREADS": str(self._threads), **os.environ, **shared}

    def _listen_to(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with suppress(EOFError, OSError, ValueError):
            while True:
                said, about = receive(process.stdout)
                self._events.put(_Event(said, process, about))
        process.wait()
        self._events.put(_Event("ended", process))

    def _say(self, process: subprocess.Popen[bytes], value: object) -> None:
        assert process.stdin is not None
        with suppress(OSError):  # it is dead, and another will take its place
            send(process.stdin, value)

    def _replace(self, process: subprocess.Popen[bytes], *, at_start: bool) -> None:
        """Start another worker for one that has died."""
        was_ready = self._forget(process)
        if at_start:
            raise DeplError(
                f"A worker ended by itself before it answered (exit code {process.returncode}); "
                f"perhaps there was too little memory. Try again with fewer --workers."
            )
        log_event(logging.ERROR, "worker died", process=process.pid, code=process.returncode)
        for reload in tuple(self._reloads):  # the next one reads what is on the disk
            self._tick_off(reload, process)
        if not was_ready:
            time.sleep(_PAUSE)
        self._start()

    def _forget(self, process: subprocess.Popen[bytes]) -> bool:
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        del self._workers[process.pid]
        mark_process_dead(process.pid, str(self._metrics))  # type: ignore[no-untyped-call]
        return self._ready.pop(process.pid, None) is not None

    def _reload(self, asker: subprocess.Popen[bytes] | None, run: str | None) -> None:
        """Let all workers read a run again, or all runs."""
        self._reloads_so_far += 1
        reload = _Reload(asker, self._reloads_so_far, set(self._ready))
        self._reloads.append(reload)
        for pid in reload.waiting:
            self._say(self._workers[pid], ("reload", (reload.number, run)))

    def _answered(
        self,
        process: subprocess.Popen[bytes],
        number: int,
        seconds: float,
        error: str | None,
        versions: Mapping[str, str],
    ) -> None:
        self._ready[process.pid] = versions
        for reload in tuple(self._reloads):
            if reload.number == number:
                reload.seconds = max(reload.seconds, seconds)
                reload.errors += [] if error is None else [error]
                self._tick_off(reload, process)

    def _tick_off(self, reload: _Reload, process: subprocess.Popen[bytes]) -> None:
        reload.waiting.discard(process.pid)
        if not reload.waiting:
            self._reloads.remove(reload)
            if reload.asker is not None:
                error = reload.errors[0] if reload.errors else None
                self._say(reload.asker, ("all reloaded", (reload.seconds, error)))

    def _stop(self) -> None:
        """Let all workers finish what they have accepted, and end."""
        for process in self._workers.values():
            process.terminate()
        end = time.monotonic() + GRACE + 5
        for process in tuple(self._workers.values()):
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._forget(process)
