"""Calls in a process of their own, for code that may crash, hang or fill the memory.

Libraries written in C, C++ and Rust read files that come from anybody. Whatever such a file does to
them ends one process, which is started again with the next call, and not the command or service.
The process is kept between calls, so that only the first waits for it to start. It ends with the
one that started it, however that ends. Only JSON comes back from it: whatever takes it over can say
something wrong, but cannot run anything here.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import BoundedSemaphore, Lock, Thread
from typing import IO, Any

from depl.core.errors import DeplError

SECONDS = 60
"""CPU time of a call."""
MEMORY = 4 << 30
"""Bytes of address space."""

_START = "import sys; sys.path[:] = {path!r}; from depl.core.apart import work; work()"
_LARGE = 256 << 20  # bytes; a process that has grown beyond is not kept
_LARGEST_ANSWER = 2 << 30
_AT_ONCE = max(2, min(4, os.cpu_count() or 1))


class EndedError(DeplError):
    """The process did not live to answer; the message says why, as the end of a sentence."""


class _Process:
    """A process that answers one call after the other."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # last words of what crashed
        )

    def ask(self, question: dict[str, Any], raw: bytes) -> dict[str, Any]:
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        try:
            _send(self._popen.stdin, json.dumps(question).encode())
            _send(self._popen.stdin, raw)
            answer: dict[str, Any] = json.loads(_receive(self._popen.stdout, _LARGEST_ANSWER))
        except (EOFError, OSError, ValueError):
            raise EndedError(self._why()) from None
        return answer

    def _why(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(10)
        self._popen.kill()
        code = self._popen.wait()
        if hasattr(signal, "SIGXCPU") and code == -signal.SIGXCPU:
            return f"it takes more than {SECONDS} seconds of computing"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"what reads it crashed ({how})"

    def end(self) -> None:
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


_free: list[_Process] = []
_lock = Lock()
_places = BoundedSemaphore(_AT_ONCE)


def call_apart(function: Callable[..., Any], *arguments: object, raw: bytes = b"") -> Any:  # noqa: ANN401 - what JSON holds
    """What a function of a module returns for some bytes and arguments, from another process.

    Parameters
    ----------
    function : callable
        It is called with the bytes and the arguments; what it returns is JSON, like those.
    arguments : object
        Anything that is JSON.
    raw : bytes
        What is read.

    Raises
    ------
    EndedError
        The process crashed, or needed more time or memory than there is for a call.
    """
    question = {
        "module": function.__module__,
        "name": function.__name__,
        "arguments": arguments,
        "seconds": SECONDS,
        "memory": MEMORY,
    }
    with _places:
        with _lock:
            process = _free.pop() if _free else None
        process = process or _Process()
        keep = False
        try:
            answer = process.ask(question, raw)
            keep = bool(answer["keep"])
        finally:
            if keep:
                with _lock:
                    _free.append(process)
            else:
                process.end()
    if "trouble" in answer:
        raise EndedError(str(answer["trouble"]))
    return answer["value"]


def _end_all() -> None:
    while _free:
        _free.pop().end()


def _after_fork() -> None:
    """A process that was forked has none of its parent's."""
    global _lock, _places
    _free.clear()
    _lock, _places = Lock(), BoundedSemaphore(_AT_ONCE)


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# In the other process


def work() -> None:
    """Answer calls until whoever asks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed is no answer
    with suppress(OSError):  # where memory is short, this process is the one to end
        Path("/proc/self/oom_score_adj").write_text("1000")
    questions: SimpleQueue[tuple[bytes, bytes]] = SimpleQueue()
    Thread(target=_read, args=(questions,), daemon=True).start()
    while True:
        asked, raw = questions.get()
        question = json.loads(asked)
        _limit(question["seconds"], question["memory"])
        _send(answers, json.dumps(_answer(question, raw)).encode())


def _answer(question: dict[str, Any], raw: bytes) -> dict[str, Any]:
    function = getattr(importlib.import_module(question["module"]), question["name"])
    try:
        value = function(raw, *question["arguments"])
    except MemoryError:
        most = question["memory"] / (1 << 30)
        return {"trouble": f"it needs more than {most:.3g} GB of memory", "keep": False}
    except RecursionError:
        return {"trouble": "its parts are nested too deeply", "keep": True}
    except Exception as error:  # of any library, which may have any
        return {"trouble": f"what reads it failed ({type(error).__name__})", "keep": True}
    return {"value": value, "keep": _size() < _LARGE}


def _limit(seconds: int, memory: int) -> None:
    """Let the system end this process when it wants too much; on Windows there are no limits."""
    with suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        limits = {
            resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + 1 + seconds,
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_CORE: 0,  # it would hold the text
        }
        for what, most in limits.items():
            _, hard = resource.getrlimit(what)
            with suppress(ValueError, OSError):  # the user's own limit is lower
                resource.setrlimit(what, (most, hard))


def _size() -> int:
    """Bytes of memory that this process has held at most, where the system tells."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) << 10 if found else 0
    return 0


def _read(questions: SimpleQueue[tuple[bytes, bytes]]) -> None:
    """Pass on the questions; end the process, whatever it is doing, when there can be no more."""
    try:
        while True:
            questions.put((_receive(sys.stdin.buffer), _receive(sys.stdin.buffer)))
    finally:
        os._exit(0)


def _send(pipe: IO[bytes], raw: bytes) -> None:
    pipe.write(len(raw).to_bytes(8, "little"))
    pipe.write(raw)
    pipe.flush()


def _receive(pipe: IO[bytes], most: int = sys.maxsize) -> bytes:
    head = pipe.read(8)
    size = int.from_bytes(head, "little")
    if len(head) < 8 or size > most:
        raise EOFError
    raw = pipe.read(size)
    if len(raw) < size:
        raise EOFError
    return raw
