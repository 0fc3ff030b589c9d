"""Kills of what is not repeated by the same command: a service at work, and workers of Ray.

``kills.py`` runs these beside its own trials.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.killing import SIGNALS, Kills, Start, alive, contents, depl, journal

from depl import Client, DeplError
from depl.labels.feedback import FeedbackStore

TOKEN = "t" * 32


def serve_trial(
    start: Start, run: Path, kills: Kills, rng: random.Random, folder: Path
) -> Counter[str]:
    """End a service while clients edit labels and give feedback; count what is lost of either."""
    copy = Path(shutil.copytree(run, folder / "served"))
    counts: Counter[str] = Counter()
    said = _Acknowledged()
    while kills.more(counts):
        number = rng.choice(SIGNALS)
        counts[_served_once(start, copy, number, rng.uniform(0.05, 1), said)] += 1
        kept = {entry.key for entry in FeedbackStore(copy).history()}
        counts["LOST edits"] = len(said.edits - journal(copy))
        counts["LOST feedback"] = len(said.feedback - kept)
    counts["acknowledged edits"] = len(said.edits)
    counts["acknowledged feedback"] = len(said.feedback)
    return counts


class _Acknowledged:
    """What the service has said is done; the numbers of the next are never used twice."""

    def __init__(self) -> None:
        self.edits: set[str] = set()
        self.feedback: set[str] = set()
        self.number = count()

    def edit(self, client: Client) -> None:
        label = f"new-{next(self.number)}"
        client.add_label(label, f"name {label}")
        self.edits.add(label)

    def judge(self, client: Client) -> None:
        key = f"key-{next(self.number)}"
        decision = {"key": key, "label": "l1", "verdict": "accepted"}
        client.feedback(f"some text {key}", [decision])
        self.feedback.add(key)


def _served_once(
    start: Start, run: Path, number: signal.Signals, after: float, said: _Acknowledged
) -> str:
    command = depl(start, "serve", str(run), "--port", "0")
    with tempfile.TemporaryFile("w+") as out, tempfile.NamedTemporaryFile("w+") as err:
        process = command(out, err)
        log = Path(err.name)
        while not (address := re.search(r"http://\S+(?=/\s)", log.read_text())):
            if process.poll() is not None:
                return f"did not start: {log.read_text()[-300:]}"
            time.sleep(0.01)
        over = threading.Event()
        clients = [
            threading.Thread(target=_keep_asking, args=(address[0], do, over))
            for do in (said.edit, said.judge, said.judge)
        ]
        for thread in clients:
            thread.start()
        time.sleep(after)
        process.send_signal(number)
        code = process.wait(timeout=120)
        over.set()
        for thread in clients:
            thread.join()
        if left := alive(process.pid):
            return f"left {len(left)} processes"
        # A service that was told to stop has done what it should.
        wanted = -number if number == signal.SIGKILL else 0
        if code != wanted or "Traceback" in log.read_text():
            return f"exit code {code} after {number.name}: {log.read_text()[-300:]}"
        return "killed"


def _keep_asking(address: str, do: object, over: threading.Event) -> None:
    assert callable(do)
    with Client(address, token=TOKEN) as client, suppress(DeplError):
        while not over.is_set():
            do(client)


def ray_trial(data: Path, quick: list[str], kills: Kills, folder: Path) -> Counter[str]:
    """Kill workers of Ray during fits, which must end as they would have."""
    fit = [sys.executable, "-m", "depl", "fit", str(data), *quick]
    whole = folder / "whole"
    subprocess.run([*fit, "--out", str(whole)], check=True, capture_output=True)
    expected = contents(whole)
    counts: Counter[str] = Counter()
    for n in count():
        if not kills.more(counts):
            return counts
        place = folder / str(n)
        child = subprocess.Popen(
            [*fit, "--out", str(place), "--ray", "local"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        before, killed = counts["killed"], set()
        # A task may be lost three times; a fourth would end the fit, as it should.
        while child.poll() is None and counts["killed"] - before < 3:
            for worker in _ray_tasks(child.pid) - killed:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    killed.add(worker)
                    counts["killed"] += 1
                    break
            time.sleep(0.3)
        out, _ = child.communicate()
        counts["through" if child.returncode == 0 else f"exit code {child.returncode}: {out}"] += 1
        if child.returncode == 0:
            counts["the same bytes" if contents(place) == expected else "OTHER BYTES"] += 1
        shutil.rmtree(place, ignore_errors=True)
    raise AssertionError


def _ray_tasks(driver: int) -> set[int]:
    """Processes that do a task for a fit, wherever they are below it."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    parents = {int(row[0]): int(row[1]) for row in rows}

    def below(pid: int) -> bool:
        while pid in parents:
            if pid == driver:
                return True
            pid = parents[pid]
        return False

    tasks = {int(row[0]) for row in rows if len(row) == 3 and row[2].startswith("ray::_call")}
    return {pid for pid in tasks if below(pid)}
