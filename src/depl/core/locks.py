"""Locks between processes, which say who holds them."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from depl.core.errors import BusyError, explain_os_errors

_POLL = 0.01  # seconds between two attempts


@contextmanager
def locked(path: Path, *, busy: str, remedy: str, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock at ``path``, which other processes and threads respect, while the block runs.

    Parameters
    ----------
    path : Path
        The lock's own file, such as ``RUN/.lock``. It is created, and not deleted; the file beside
        it says who holds the lock.
    busy, remedy : str
        What a ``BusyError`` says if it is held elsewhere: what the other does, and what to do
        about it. The holder is named in between.
    wait : float
        Seconds to wait for it before that.
    """
    from filelock import FileLock, Timeout  # works on Windows, too

    # A new object per call: a shared one would let the same thread acquire it twice.
    lock = FileLock(path, timeout=wait, thread_local=False)
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(poll_interval=_POLL)
        except Timeout:
            raise BusyError(f"{busy}{_holder(path)}. {remedy}") from None
    try:
        _say_who(path)
        yield
    finally:
        with suppress(OSError):
            _beside(path).unlink(missing_ok=True)
        lock.release()


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.holder")


def _say_who(path: Path) -> None:
    """Leave a note for those who find the lock taken; it is out of date once the lock is free."""
    note = {
        "process": os.getpid(),
        "machine": socket.gethostname(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]]),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    temporary = path.with_name(f"{path.name}.note")  # nobody else writes it: the lock is held
    with suppress(OSError):  # a courtesy: the lock holds without it
        temporary.unlink(missing_ok=True)  # what a kill has left, or a link of somebody else's
        try:
            with temporary.open("x", encoding="utf-8") as file:
                json.dump(note, file)
            temporary.replace(_beside(path))
        except OSError:  # a full disk
            temporary.unlink(missing_ok=True)


def _holder(path: Path) -> str:
    try:
        note = json.loads(_beside(path).read_text(encoding="utf-8"))
        who, since = f"`{note['command']}`, process {note['process']}", note["since"]
        where = "" if note["machine"] == socket.gethostname() else f" on {note['machine']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f" ({who}{where}, since {since})"
