"""Kills at random moments: what is continued ends as if nothing had happened.

    python benchmarks/kills.py [--kills 150] [--seconds 600] [--seed 0] [--documents 9000]
      [--only fit-sparse fit-frozen predict learn edits serve ray]

Each scenario is done once undisturbed. Then it is begun again and again, ended at a random moment
by SIGKILL, SIGTERM or SIGINT, and continued by the same command, until it is through; then another
begins. In the end its files must be the same byte for byte, and an edit that was acknowledged must
be in the journal. A service is ended likewise while clients edit labels and give feedback, and of
Ray, workers are killed while the fit that they work for goes on. After every kill, no process that
it started may be alive, and after SIGTERM and SIGINT the exit code is 143 or 130 (of a service 0),
and there is one sentence and no traceback.
"""

from __future__ import annotations

import argparse
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

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.damage import _tiny_encoder, corpus
from benchmarks.killing import SIGNALS, Kills, contents, disturbed, journal
from benchmarks.kills_elsewhere import ray_trial, serve_trial

from depl.labels.feedback import Decision, FeedbackStore

_SCENARIOS = ("fit-sparse", "fit-frozen", "predict", "learn", "edits", "serve", "ray")
_EDITS = """
import sys
from depl import Classifier, Label
model = Classifier.load(sys.argv[1])
for i in range(int(sys.argv[2]), int(sys.argv[2]) + 400):
    model.add_labels([Label(f"new-{i}", f"name {i}")])
    print(f"new-{i}", flush=True)
"""
_QUICK = ["--set", "features.analyzer=words"]


@dataclass(frozen=True)
class Scenario:
    """A command that can be repeated until it is through."""

    command: Callable[[Path], Sequence[str]]
    first: Callable[[Path], None]  # what is there before it begins
    result: Callable[[Path], object]  # what must be the same in the end


def trial(scenario: Scenario, kills: Kills, rng: random.Random, folder: Path) -> Counter[str]:
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
    while kills.more(counts):
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


def edits_trial(run: Path, kills: Kills, rng: random.Random, folder: Path) -> Counter[str]:
    """Kill a program that edits labels; count edits that were acknowledged and are lost."""
    copy = Path(shutil.copytree(run, folder / "edited"))
    acknowledged: list[str] = []
    counts: Counter[str] = Counter()
    while kills.more(counts):
        command = [sys.executable, "-c", _EDITS, str(copy), str(len(acknowledged) + counts["gap"])]
        what, out = disturbed(command, rng.uniform(1.5, 4), signal.SIGKILL)
        counts[what] += 1
        acknowledged += out.split()
        history = journal(copy)
        counts["LOST"] = sum(x not in history for x in acknowledged)
        counts["gap"] = len(history) - len(acknowledged)  # written, and killed before it was said
    counts["acknowledged"] = len(acknowledged)
    del counts["gap"]
    return counts


def scenarios(folder: Path, names: Sequence[str], documents: int) -> dict[str, Scenario]:
    """The commands, on a small corpus."""
    data = folder / "corpus"
    data.mkdir()
    train = corpus(0, documents)
    rows = [
        {"id": i, "text": text, "labels": [train.labels[j].id for j in train.Y[[n]].indices]}
        for n, (i, text) in enumerate(zip(train.ids, train.texts, strict=True))
    ]
    labels = [{"id": x.id, "name": x.name} for x in train.labels]
    for name, some in {"train": rows, "labels": labels}.items():
        lines = "".join(json.dumps(row) + "\n" for row in some)
        (data / f"{name}.jsonl").write_text(lines)
    depl = [sys.executable, "-m", "depl"]
    quick = [*_QUICK, "--set", "threads=2"]
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

    def judged(place: Path) -> None:
        shutil.copytree(run, place)
        for n in range(30):
            label = Decision(label=f"l{n % 12}", verdict="added")
            FeedbackStore(place).add(f"{train.texts[n]} {n}", [label])

    def learnt(place: Path) -> object:
        # A kill behind its last write leaves a state that a second one follows.
        number = json.loads((place / "learned" / "current.json").read_text())["current"]
        return contents(place / "learned" / str(number))

    found = {
        "fit-sparse": fitting(quick),
        "fit-frozen": fitting(frozen),
        "predict": Scenario(predicting, lambda place: place.mkdir(), contents),
        "learn": Scenario(lambda place: [*depl, "learn", str(place)], judged, learnt),
    }
    return {name: found[name] for name in names if name in found}


def main() -> None:
    """Print what happened in every scenario; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=150, help="of every scenario")
    # So many that worker processes count the words.
    parser.add_argument("--documents", type=int, default=9_000)
    parser.add_argument("--seconds", type=float, default=1e9, help="of every scenario, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=_SCENARIOS, default=_SCENARIOS)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = scenarios(folder, options.only, options.documents)
        run, data = folder / "run", folder / "corpus"
        for what in options.only:
            place, kills = folder / what, Kills(options.kills, options.seconds)
            place.mkdir()
            if what == "edits":
                counts = edits_trial(run, kills, rng, place)
            elif what == "serve":
                counts = serve_trial(run, kills, rng, place)
            elif what == "ray":
                counts = ray_trial(data, _QUICK, kills, place)
            else:
                counts = trial(kinds[what], kills, rng, place)
            wrong += _told(what, counts)
    sys.exit(bool(wrong))


def _told(name: str, counts: Counter[str]) -> int:
    fine = ("killed", "through", "the same bytes", "acknowledged")
    print(name, *(f"{n:,} {what}" for what, n in counts.items() if n), sep="\n  ", flush=True)
    return sum(n for what, n in counts.items() if not what.startswith(fine))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
