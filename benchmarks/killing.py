"""Start a process and end it; see what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_EXIT = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
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


def disturbed(command: Sequence[str], after: float, number: signal.Signals) -> tuple[str, str]:
    """Start a command and end it; what happened, and what it printed."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = child.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        child.send_signal(number)
        out, err = child.communicate()
        time.sleep(0.2)
        left = alive(child.pid)
        if left:
            return f"left {len(left)} processes", out
        if child.returncode == 0:
            return "through", out
        if child.returncode != _EXIT[number]:
            # While Python itself starts or ends, a signal ends it as it ends any process.
            silent = child.returncode == -number and "Traceback" not in err
            return ("killed" if silent else f"exit code {child.returncode}: {err[-300:]}"), out
        if "Traceback" in err or "leaked" in err:
            return f"said too much: {err[-300:]}", out
        return "killed", out
    return ("through" if child.returncode == 0 else f"exit code {child.returncode}"), out


def journal(run: Path) -> set[str]:
    """Ids of the labels that were added to a run."""
    path = run / "labels" / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {label["id"] for line in lines for label in json.loads(line).get("labels", [])}
