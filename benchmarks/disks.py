"""Disks that are full, read-only or gone, and clocks that jump: one sentence, and nothing torn.

    sudo python benchmarks/disks.py [--steps 40] [--seed 0] [--faketime libfaketime.so.1]

Every command works in a small file system of its own, in memory (mounting it needs root). With less
and less room left it must end with what it promises, or be refused in one sentence of at most 2,000
characters, without a traceback; when there is room again, the same command must give the bytes that
it gives undisturbed, and nothing that was acknowledged before may be lost. The same where the file
system becomes read-only, and where the run folder is taken away while the command works in it.

With libfaketime, from the package of that name, clocks jump by years in both directions while a run
is fitted, labels are edited and decided on, and documents are labelled.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.damage import corpus, in_child, whole
from benchmarks.killing import contents

from depl.cli.app import main as depl
from depl.labels.feedback import FeedbackStore
from depl.model.classifier import Classifier

_LONGEST = 2_000  # characters of an error
_ROOM = 64 << 20  # bytes of the file system
_JUMPS = ("+0", "-3y", "+5y", "-10d", "+40y", "-1s")


def _decided(place: Path) -> object:
    return sorted((entry.document, entry.label) for entry in FeedbackStore(place / "run").history())


def _learnt(place: Path) -> object:
    current = place / "run" / "learned" / "current.json"
    number = json.loads(current.read_text())["current"] if current.exists() else 0
    return contents(current.parent / str(number))


class Command(NamedTuple):
    """A command of depl, and what it leaves, which must be the same in the end."""

    words: Callable[[Path, Path], list[str]]  # of the corpus and of the place to work in
    result: Callable[[Path], object]
    on_a_run: bool = True  # whether a fitted run is there at the beginning


COMMANDS = {
    "fit": Command(
        lambda data, place: ["fit", str(data), "--out", str(place / "run"), *_QUICK],
        lambda place: contents(place / "run"),
        on_a_run=False,
    ),
    "predict": Command(
        lambda data, place: [
            *("predict", str(place / "run"), str(data / "train.jsonl")),
            *("--output", str(place / "out.jsonl"), "--resume"),
        ],
        lambda place: (place / "out.jsonl").read_bytes(),
    ),
    "labels rename": Command(
        lambda data, place: ["labels", str(place / "run"), "rename", "l1", "another name"],
        lambda place: whole(lambda: Classifier.load(place / "run").labels.names),
    ),
    "feedback add": Command(
        lambda data, place: [
            *("feedback", str(place / "run"), "add", "some text", "--accept", "l1"),
            *("--key", "k1"),
        ],
        _decided,
    ),
    "learn": Command(lambda data, place: ["learn", str(place / "run")], _learnt),
    "evaluate": Command(
        lambda data, place: ["evaluate", str(place / "run"), str(data), "--split", "train"],
        lambda place: sorted(x.name for x in (place / "run" / "report").glob("*.html")),
    ),
}
_QUICK = ["--set", "features.analyzer=words", "--set", "threads=1", "--no-holdout"]


def said_by(words: list[str]) -> tuple[int, str]:
    """Exit code and standard error of a command, in a process of its own."""

    def run() -> tuple[int, str]:
        errors = io.StringIO()
        sys.argv = ["depl", *words]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            try:
                depl()
            except SystemExit as end:
                return int(end.code or 0), errors.getvalue()
        return 0, errors.getvalue()

    kind, value = in_child(run)
    return value if kind == "answer" else (-1, f"{kind}: {value}")


def judged(code: int, said: str) -> str:
    """Whether a command ended as it may: done, or refused in words."""
    if code == 0:
        return "done"
    message = said[said.find("Error: ") :]
    if code == 2 and "Traceback" not in said and 20 < len(message) <= _LONGEST:
        return "refused"
    return f"exit code {code}: {said[-400:]}"


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """A file system of some megabytes."""
    folder.mkdir(exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={_ROOM}", "depl-trial"]
    subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def little_room(place: Path, left: int) -> Iterator[None]:
    """So many bytes left on the disk, and the rest taken."""
    ballast = place / "ballast"
    free = os.statvfs(place)
    size = max(0, free.f_bavail * free.f_frsize - left)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, size))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """A file system that takes nothing."""
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)


@contextmanager
def taken_away(place: Path, after: float) -> Iterator[None]:
    """The run folder is gone after some seconds, and back when the block ends."""
    run, away = place / "run", place / "away"

    def take() -> None:
        with contextlib.suppress(FileNotFoundError):
            run.rename(away)

    timer = threading.Timer(after, take)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if away.exists():
            # What the command made where the folder had been is part of no run.
            shutil.rmtree(run, ignore_errors=True)
            away.rename(run)


class Trial:
    """A command on a disk of its own, disturbed in many ways."""

    def __init__(self, command: Command, data: Path, run: Path, disk: Path) -> None:
        self._command, self._data, self._run, self._disk = command, data, run, disk
        self._words = command.words(data, disk)
        self.begin()
        start = time.monotonic()
        code, said = said_by(self._words)
        self.seconds = time.monotonic() - start
        if code:
            raise SystemExit(f"Undisturbed: {said}")
        self.expected = command.result(disk)
        self.bytes = sum(x.stat().st_size for x in disk.rglob("*") if x.is_file())

    def begin(self) -> None:
        """What is there before the command."""
        for path in list(self._disk.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if self._command.on_a_run:
            shutil.copytree(self._run, self._disk / "run")

    def once(self, disturbance: contextlib.AbstractContextManager[None]) -> list[str]:
        """What happened while it was disturbed, and after that."""
        with disturbance:
            first = judged(*said_by(self._words))
        after = judged(*said_by(self._words))
        if after != "done":
            return [first, f"afterwards: {after}"]
        same = self._command.result(self._disk) == self.expected
        return [first, "the same in the end" if same else "OTHER in the end"]


def trials(folder: Path, steps: int, rng: random.Random) -> Iterator[tuple[str, str, Counter[str]]]:
    """Command, disturbance and what happened, for all of both."""
    data, run = prepare(folder)
    for name, command in COMMANDS.items():
        with mounted(folder / "disk") as disk:
            trial = Trial(command, data, run, disk)
            here = 0 if not command.on_a_run else _size(run)
            counts: Counter[str] = Counter()
            for step in range(steps):
                trial.begin()
                left = int((trial.bytes - here + 65_536) * step / steps)
                counts.update(trial.once(little_room(disk, left)))
            yield name, "full", counts
            counts = Counter()
            trial.begin()
            counts.update(trial.once(read_only(disk)))
            yield name, "read-only", counts
            counts = Counter()
            for _ in range(steps // 4):
                trial.begin()
                after = rng.uniform(0, trial.seconds)
                counts.update(trial.once(taken_away(disk, after)))
            yield name, "taken away", counts


def _size(run: Path) -> int:
    return sum(x.stat().st_size for x in run.rglob("*") if x.is_file())


def prepare(folder: Path) -> tuple[Path, Path]:
    """A corpus, and a run with feedback."""
    data, run = folder / "corpus", folder / "run"
    data.mkdir()
    train = corpus(0, 300)
    rows = [
        {"id": i, "text": text, "labels": [train.labels[j].id for j in train.Y[[n]].indices]}
        for n, (i, text) in enumerate(zip(train.ids, train.texts, strict=True))
    ]
    labels = [{"id": x.id, "name": x.name} for x in train.labels]
    for name, some in {"train": rows, "labels": labels}.items():
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    whole(lambda: said_by(["fit", str(data), "--out", str(run), *_QUICK]))
    whole(lambda: said_by(["feedback", str(run), "add", train.texts[0], "--add", "l2"]))
    if not (run / "feedback").exists():
        raise SystemExit("The run could not be prepared.")
    return data, run


def clocks(folder: Path, library: Path) -> Counter[str]:
    """Commands while the clock jumps; each must end as without."""
    data, run = folder / "corpus", folder / "run"
    offset = folder / "offset"
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    counts: Counter[str] = Counter()
    for name, command in COMMANDS.items():
        results = []
        for jumping in (False, True):
            place = folder / f"clock-{name}-{jumping}"
            place.mkdir()
            if command.on_a_run:
                shutil.copytree(run, place / "run")
            offset.write_text("+0")
            words = [sys.executable, "-m", "depl", *command.words(data, place)]
            child = subprocess.Popen(
                words,
                env=environment if jumping else None,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for jump in _JUMPS * 20 if jumping else ():
                if child.poll() is not None:
                    break
                offset.write_text(jump)
                time.sleep(0.2)
            _, said = child.communicate()
            results.append((judged(child.returncode, said), command.result(place)))
        same = results[0] == results[1]
        counts["the same in the end" if same else f"OTHER: {name}, {results[1][0]}"] += 1
    return counts


def main() -> None:
    """Print what happened; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40, help="sizes of the room that is left")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faketime", type=Path, help="libfaketime.so.1, for clocks that jump")
    options = parser.parse_args()
    fine, wrong = ("done", "refused", "the same in the end"), 0
    with tempfile.TemporaryDirectory() as name:
        for command, way, counts in trials(Path(name), options.steps, random.Random(options.seed)):
            found = ", ".join(f"{n} {what}" for what, n in counts.items())
            print(f"{command:<14}{way:<12}{found}", flush=True)
            wrong += sum(n for what, n in counts.items() if what not in fine)
        if options.faketime:
            counts = clocks(Path(name), options.faketime)
            print("clocks", dict(counts))
            wrong += sum(n for what, n in counts.items() if what not in fine)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
