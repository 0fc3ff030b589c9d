"""Kills at random moments: what is continued ends as if nothing had happened.

    python benchmarks/kills.py [--kills 100] [--seed 0] [--only fit-sparse fit-frozen predict edits]

Each scenario is done once undisturbed. Then it is begun again and again, ended at a random moment
by SIGKILL, SIGTERM or SIGINT, and continued by the same command, until it is through; then another
begins. In the end its files must be the same byte for byte, and an edit that was acknowledged must
be in the journal. After every kill, no process that it started may be alive, and after SIGTERM and
SIGINT the exit code is 143 or 130 and there is one sentence and no traceback.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_EXIT = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
_CLOCKS = {"manifest.json", ".manifest.copy.json", ".lock"}  # times and memory differ
_SCENARIOS = ("fit-sparse", "fit-frozen", "predict", "edits")
_EDITS = """
import sys
from depl import Classifier, Label
model = Classifier.load(sys.argv[1])
for i in range(int(sys.argv[2]), int(sys.argv[2]) + 400):
    model.add_labels([Label(f"new-{i}", f"name {i}")])
    print(f"new-{i}", flush=True)
"""


@dataclass(frozen=True)
class Scenario:
    """A command that can be repeated until it is through."""

    command: Callable[[Path], Sequence[str]]
    first: Callable[[Path], None]  # what is there before it begins
    result: Callable[[Path], object]  # what must be the same in the end


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


def trial(scenario: Scenario, kills: int, rng: random.Random, folder: Path) -> Counter[str]:
    """Kill a scenario so often; counts of what happened."""
    whole = folder / "whole"
    scenario.first(whole)
    start = time.monotonic()
    subprocess.run(scenario.command(whole), check=True, capture_output=True)
    took = time.monotonic() - start
    expected = scenario.result(whole)
    counts: Counter[str] = Counter()
    place, n = folder / "0", 0
    scenario.first(place)
    while counts["killed"] < kills:
        # Half of them early: as work is done, less is left to be killed.
        after = rng.uniform(0, took if rng.random() < 0.5 else took / 3)
        what, _ = disturbed(scenario.command(place), after, rng.choice(SIGNALS))
        counts[what] += 1
        if what != "killed":
            if what == "through":
                same = scenario.result(place) == expected
                counts["the same bytes" if same else "OTHER BYTES"] += 1
            shutil.rmtree(place, ignore_errors=True)
            n += 1
            place = folder / str(n)
            scenario.first(place)
    return counts


def edits_trial(run: Path, kills: int, rng: random.Random, folder: Path) -> Counter[str]:
    """Kill a program that edits labels; count edits that were acknowledged and are lost."""
    copy = Path(shutil.copytree(run, folder / "edited"))
    acknowledged: list[str] = []
    counts: Counter[str] = Counter()
    while counts["killed"] < kills:
        command = [sys.executable, "-c", _EDITS, str(copy), str(len(acknowledged) + counts["gap"])]
        what, out = disturbed(command, rng.uniform(1.5, 4), signal.SIGKILL)
        counts[what] += 1
        acknowledged += out.split()
        history = _journal(copy)
        counts["LOST"] = sum(x not in history for x in acknowledged)
        counts["gap"] = len(history) - len(acknowledged)  # written, and killed before it was said
    counts["acknowledged"] = len(acknowledged)
    del counts["gap"]
    return counts


def _journal(run: Path) -> set[str]:
    path = run / "labels" / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {label["id"] for line in lines for label in json.loads(line).get("labels", [])}


def scenarios(folder: Path, names: Sequence[str]) -> dict[str, Scenario]:
    """The commands, on a small corpus."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks.damage import _tiny_encoder, corpus

    data = folder / "corpus"
    data.mkdir()
    train = corpus(0, 9_000)  # so many that worker processes count the words
    rows = [
        {"id": i, "text": text, "labels": [train.labels[j].id for j in train.Y[[n]].indices]}
        for n, (i, text) in enumerate(zip(train.ids, train.texts, strict=True))
    ]
    labels = [{"id": x.id, "name": x.name} for x in train.labels]
    for name, some in {"train": rows, "labels": labels}.items():
        lines = "".join(json.dumps(row) + "\n" for row in some)
        (data / f"{name}.jsonl").write_text(lines)
    depl = [sys.executable, "-m", "depl"]
    quick = ["--set", "features.analyzer=words", "--set", "threads=2"]
    frozen = quick
    if "fit-frozen" in names:
        frozen = [*quick, "--set", f"encoder.name='{_tiny_encoder(folder / 'encoder')}'"]
        for setting in ("encoder.max_tokens=24", "classifier.epochs=1", "retrieval.epochs=1"):
            frozen += ["--set", setting]
        frozen += ["--set", "encoder.training=frozen", "--set", "checkpoint_seconds=0"]
    run = folder / "run"
    subprocess.run([*depl, "fit", str(data), "--out", str(run), *quick], check=True)

    def fitting(options: list[str]) -> Scenario:
        return Scenario(
            lambda place: [*depl, "fit", str(data), "--out", str(place), *options],
            lambda place: None,
            contents,
        )

    def predicting(place: Path) -> list[str]:
        paths = [str(run), str(data / "train.jsonl")]
        return [*depl, "predict", *paths, "--output", str(place / "out.jsonl"), "--resume"]

    found = {
        "fit-sparse": fitting(quick),
        "fit-frozen": fitting(frozen),
        "predict": Scenario(predicting, lambda place: place.mkdir(), lambda place: contents(place)),
    }
    return {name: found[name] for name in names if name in found}


def main() -> None:
    """Print what happened in every scenario; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of every scenario")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=_SCENARIOS, default=_SCENARIOS)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, scenario in scenarios(folder, options.only).items():
            (folder / what).mkdir()
            wrong += _told(what, trial(scenario, options.kills, rng, folder / what))
        if "edits" in options.only:
            (folder / "edits").mkdir()
            counts = edits_trial(folder / "run", options.kills, rng, folder / "edits")
            wrong += _told("edits", counts)
    sys.exit(bool(wrong))


def _told(name: str, counts: Counter[str]) -> int:
    fine = ("killed", "through", "the same bytes", "acknowledged")
    print(name, *(f"{n:,} {what}" for what, n in counts.items() if n), sep="\n  ")
    return sum(n for what, n in counts.items() if what not in fine)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
