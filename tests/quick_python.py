"""Processes that start at once: forks of a Python that has imported everything already.

A new interpreter takes seconds to load numba and its like, and tests start dozens. A fork is a
process like any other, with signals, pipes and an exit code of its own. It ends as an interpreter
does, only that what is imported is not taken apart piece by piece: that would take a second, too.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest

FIRST = ("import sys", "from tests.quick_python import fork_for", "fork_for(*sys.argv[1:])")
PRELOADED = (
    "depl.api",
    "depl.cli.app",
    "depl.cli.predict",
    "depl.cli.serve",
    "depl.labels.feedback",
    "depl.server.supervisor",
)


class Quick:
    """A running fork, with what tests need of ``subprocess.Popen``."""

    def __init__(self, reports: io.BufferedReader, pipes: dict[str, int]) -> None:
        self.reports = reports
        self.pid = int(reports.readline())
        self.returncode: int | None = None
        self.stdout = os.fdopen(pipes["stdout"]) if "stdout" in pipes else None
        self.stderr = os.fdopen(pipes["stderr"]) if "stderr" in pipes else None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, negative where a signal ended it."""
        if self.returncode is None:
            if not select.select([self.reports], [], [], timeout)[0]:
                raise TimeoutError(f"process {self.pid} has not ended after {timeout} seconds")
            self.returncode = int(self.reports.readline())
            self.reports.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        try:
            return self.wait(0)
        except TimeoutError:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Quick:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait()


@pytest.fixture(scope="session")
def quick_python(fitted_run: Path) -> Iterator[Callable[..., Quick]]:
    """Starts ``python`` with some arguments, ``-m depl ...`` or ``-c CODE ...``; see ``forks``."""
    with forks(fitted_run) as start:
        yield start


@contextmanager
def forks(run: Path, prepare: str = "") -> Iterator[Callable[..., Quick]]:
    """Starts ``python`` with some arguments: a fork that has imported everything and is prepared.

    What is given as ``stdin``, ``stdout`` and ``stderr`` is nothing, an open file or
    ``subprocess.PIPE``, as for ``subprocess.Popen``; only its input cannot be a pipe.
    """
    if not hasattr(os, "fork"):
        yield lambda *command, **pipes: subprocess.Popen(
            [sys.executable, *map(str, command)], text=True, **pipes
        )
        return
    here, there = socket.socketpair()
    with here, there:
        command = [sys.executable, "-c", "\n".join(FIRST), str(there.fileno()), str(run), prepare]
        root = Path(__file__).parents[1]
        paths = os.pathsep.join([str(root), *sys.path])
        first = subprocess.Popen(
            command,
            cwd=root,
            env=os.environ | {"PYTHONPATH": paths},
            pass_fds=[there.fileno()],
            stdout=subprocess.PIPE,  # as it is for most forks: then they write in whole blocks, too
        )
        there.close()

        def start(*command: object, **pipes: object) -> Quick:
            return _start(here, [str(x) for x in command], pipes)

        with first:
            yield start
            here.close()


def _start(requests: socket.socket, command: list[str], pipes: dict[str, object]) -> Quick:
    ours: dict[str, int] = {}
    theirs: list[int] = []
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in ("stdin", "stdout", "stderr"):
        given = pipes.pop(name, None)
        if given == subprocess.PIPE:
            ours[name], end = os.pipe()
            theirs.append(end)
        elif given is None:
            theirs.append(os.dup(nothing) if name == "stdin" else os.dup(2))
        else:
            theirs.append(os.dup(given.fileno()))
    assert not pipes, pipes
    reports, end = os.pipe()
    theirs.append(end)
    what = {"command": command, "folder": os.getcwd(), "environment": dict(os.environ)}
    socket.send_fds(requests, [json.dumps(what).encode()], theirs)
    for descriptor in (nothing, *theirs):
        os.close(descriptor)
    return Quick(os.fdopen(reports, "rb", buffering=0), ours)


# In the process that is forked


def fork_for(descriptor: str, run: str, prepare: str) -> None:
    """Import everything and fork for every request; a fork does its work and ends."""
    import importlib

    from depl.model.classifier import Classifier

    for name in PRELOADED:
        importlib.import_module(name)
    Classifier.load(run).predict(["a text"], k=1)  # loads kernels and dictionaries
    exec(prepare)
    requests = socket.socket(fileno=int(descriptor))
    while True:
        asked, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # those that have reported
                pass
        if not asked:
            return
        if os.fork() == 0:
            break
        for each in descriptors:
            os.close(each)
    requests.close()
    _fork_and_report(descriptors.pop(), descriptors)
    for place, each in enumerate(descriptors):
        os.dup2(each, place)
        os.close(each)
    try:
        _work(**json.loads(asked))
        _end(0)
    except SystemExit as end:
        _end(end.code)
    except BaseException:
        traceback.print_exc()
        _end(1)


def _fork_and_report(report: int, others: list[int]) -> None:
    """Fork; return in the fork only. The other waits for it and reports how it ended."""
    pid = os.fork()
    if pid:
        for each in others:
            os.close(each)
        os.write(report, f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(report, f"{code}\n".encode())
        os._exit(0)
    os.close(report)


def _end(code: object) -> NoReturn:
    """Do what Python does at the end, in its order, and no more."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            traceback.print_exc()
            code = 120
    os._exit((code or 0) & 0xFF)


def _work(command: list[str], folder: str, environment: dict[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    option, what, *arguments = command
    sys.argv = [what if option == "-m" else option, *arguments]
    if option == "-m":
        from depl.__main__ import main

        assert what == "depl"
        main()
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
