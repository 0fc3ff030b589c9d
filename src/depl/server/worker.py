"""One of the processes of ``depl serve --workers N``; ``supervisor`` starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from fastapi import FastAPI

from depl.core.errors import DeplError, RunError
from depl.core.workers import receive, send, use_cores
from depl.server.live_model import LiveModel
from depl.server.plan import label_counts
from depl.server.process import log_to_stderr, reload_runs, run_app


def main() -> None:
    """Serve until the supervisor says so, or is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor's business
    supervisor = _Supervisor()
    plan, descriptor, threads = supervisor.hear()
    use_cores(threads)
    log_to_stderr(requests=plan.log_requests)
    try:
        models = plan.load()
    except DeplError as error:
        supervisor.say("failed", str(error))
        sys.exit(1)

    def begin(app: FastAPI) -> None:
        work = _Work(supervisor, app.state.runs)
        Thread(target=work.listen, daemon=True).start()
        supervisor.say("ready", (label_counts(models), work.versions()))

    with socket.socket(fileno=descriptor) as listener:
        run_app(plan.app(models), listener, plan.tls, begin)
    os._exit(0)  # the thread that waits for the supervisor cannot be ended in any other way


class _Supervisor:
    """The pipes to and from the process that started this one."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed is no message
        self._saying = Lock()

    def hear(self) -> Any:  # noqa: ANN401 - whatever was said
        return receive(sys.stdin.buffer)

    def say(self, what: str, about: object) -> None:
        with self._saying, suppress(OSError):  # it may be gone
            send(self._out, (what, about))


class _Work:
    """Does what the supervisor says, and asks it for reloads."""

    def __init__(self, supervisor: _Supervisor, runs: Sequence[LiveModel]) -> None:
        self._supervisor = supervisor
        self._runs = {run.name: run for run in runs}
        self._loop = asyncio.get_running_loop()
        self._asked: deque[asyncio.Future[float]] = deque()  # reloads that requests wait for
        self._tasks: set[asyncio.Task[None]] = set()
        for run in runs:
            run.ask_all = self._ask

    def versions(self) -> dict[str, str]:
        return {name: run.version for name, run in self._runs.items()}

    def listen(self) -> None:
        """Pass on what the supervisor says; when it is gone, finish and end."""
        try:
            while True:
                self._loop.call_soon_threadsafe(self._react, *self._supervisor.hear())
        except (EOFError, OSError, RuntimeError):  # the last: the loop has ended
            os.kill(os.getpid(), signal.SIGTERM)

    def _react(self, said: str, about: Any) -> None:  # noqa: ANN401
        if said == "reload":
            task = self._loop.create_task(self._reload(*about))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif said == "all reloaded" and self._asked:
            (seconds, trouble), waiting = about, self._asked.popleft()
            if waiting.cancelled():
                return
            if trouble is None:
                waiting.set_result(seconds)
            else:
                waiting.set_exception(RunError(trouble))

    async def _reload(self, number: int, name: str | None) -> None:
        """Reload one run, or all; requests are answered meanwhile."""
        runs = [run for run in self._runs.values() if name in (None, run.name)]
        seconds, trouble = await reload_runs(runs)
        self._supervisor.say("reloaded", (number, seconds, trouble, self.versions()))

    async def _ask(self, name: str) -> float:
        """Let all workers reload a run; the seconds that the slowest took."""
        done: asyncio.Future[float] = self._loop.create_future()
        self._asked.append(done)
        self._supervisor.say("reload", name)
        return await done
