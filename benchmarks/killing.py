"""Start a process and end it; see what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

Start = Callable[..., Any]  # of ``forks``, or like it: gives what ``subprocess.Popen`` gives
Command = Callable[[IO[str], IO[str]], Any]  # with where to print, and where to print errors
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_EXIT = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
# A group of its own tells what a process leaves behind. In the end signals do what they always do.
_OWN_GROUP = "import os; os.setsid()\n"
_DEPL = f"""{_OWN_GROUP}
import signal
from depl.__main__ import main
try:
    main()
finally:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
"""
# Times and memory differ; so do the names of those who hold a lock.
_CLOCKS = {"manifest.json", ".manifest.copy.json", ".lock", "learned.json"}


class Kills:
    """How many there are to be, and in how many seconds at most."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._end = most, time.monotonic() + seconds

    def more(self, counts: Counter[str]) -> bool:
        """Whether there are more to be after so many."""
        return counts["killed"] < self._most and time.monotonic() < self._end


def contents(folder: Path) -> dict[str, str]:
    """Hash of every file below a folder but those with clocks in them."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _CLOCKS and "logs" not in path.parts
    }


def alive(group: int) -> list[int]:
    """Processes of a group that are not dead."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, pgid, state in rows if int(pgid) == group and state[0] != "Z"]


def depl(start: Start, *arguments: str) -> Command:
    """Starts ``depl`` with some arguments."""
    return lambda out, err: start("-c", _DEPL, *arguments, stdout=out, stderr=err)


def program(start: Start, code: str, *arguments: str) -> Command:
    """Starts a program in Python with some arguments."""
    return lambda out, err: start("-c", f"{_OWN_GROUP}{code}", *arguments, stdout=out, stderr=err)


def undisturbed(command: Command) -> float:
    """Let a command work to its end; the CPU seconds that it takes."""
    with tempfile.TemporaryFile("w+") as said:
        child = command(said, said)
        used = 0.0
        while child.poll() is None:
            used = max(used, cpu_seconds(child.pid))
            time.sleep(0.01)
        if child.wait():
            said.seek(0)
            raise SystemExit(f"Without any kill: {said.read()}")
    return used


def disturbed(command: Command, after: float, number: signal.Signals) -> tuple[str, str]:
    """Start a command and end it after so many CPU seconds; what happened, and what it printed.

    By CPU time, because on a busy machine the clock says little about how far the work has come.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = command(out, err)
        while child.poll() is None and cpu_seconds(child.pid) < after:
            time.sleep(0.005)
        late = child.poll() is not None
        child.send_signal(number)
        code = child.wait()
        for pipe in (out, err):
            pipe.seek(0)
        return _what_happened(child.pid, code, None if late else number, err.read()), out.read()


def cpu_seconds(group: int) -> float:
    """CPU time of a process and of those of its group, which were started later."""
    ticks = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) >= group:
            with suppress(OSError):  # it has ended
                state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                if group in (int(name), int(state[2])):
                    ticks += sum(map(int, state[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _what_happened(pid: int, code: int, number: signal.Signals | None, err: str) -> str:
    time.sleep(0.1)
    if left := alive(pid):
        return f"left {len(left)} processes"
    if code == 0:
        return "through"
    if number is None:
        return f"exit code {code}: {err[-300:]}"
    if code != _EXIT[number]:
        # Before depl has begun and after it has ended, a signal ends Python as any process.
        silent = code == -number and "Traceback" not in err
        unbegun = code == 1 and "KeyboardInterrupt" in err and "depl" not in err
        return "killed" if silent or unbegun else f"exit code {code}: {err[-300:]}"
    return f"said too much: {err[-300:]}" if "Traceback" in err or "leaked" in err else "killed"


def journal(run: Path) -> set[str]:
    """Ids of the labels that were added to a run."""
    path = run / "labels" / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {label["id"] for line in lines for label in json.loads(line).get("labels", [])}
