"""Kills at random moments: what is continued ends as if nothing had happened.

    python benchmarks/kills.py [--kills 150] [--seconds 600] [--seed 0] [--documents 300] [--fresh]
      [--only fit-sparse fit-frozen predict learn edits serve ray]

Each scenario is done once undisturbed. Then it is begun again and again, ended at a random moment
of its CPU time by SIGKILL, SIGTERM or SIGINT, and continued by the same command, until it is
through; then another begins. In the end its files must be the same byte for byte, and an edit that
was acknowledged must be in the journal. A service is ended likewise while clients edit labels and
give feedback, and of Ray, workers are killed while the fit that they work for goes on. After every
kill, no process that it started may be alive, and after SIGTERM and SIGINT the exit code is 143 or
130 (of a service 0), and there is one sentence and no traceback.

What is killed is forked from a process that has imported everything, so that the work is hit and
not the imports; with ``--fresh`` it starts as it does for a user. From 9,000 documents on, the
words are counted by worker processes. Of Ray, workers of each fit are killed three times.
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
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.damage import _tiny_encoder, corpus
from benchmarks.killing import (
    SIGNALS,
    Command,
    Kills,
    Start,
    contents,
    depl,
    disturbed,
    journal,
    program,
    undisturbed,
)
from benchmarks.kills_elsewhere import TOKEN, ray_trial, serve_trial
from tests.quick_python import forks

from depl.core.corpus import Corpus
from depl.labels.decisions import Decision
from depl.labels.feedback import FeedbackStore

_SCENARIOS = ("fit-sparse", "fit-frozen", "predict", "learn", "edits", "serve", "ray")
_EDITS = """
import sys
from depl import Classifier, Label
model = Classifier.load(sys.argv[1])
for i in range(int(sys.argv[2]), int(sys.argv[2]) + 400):
    model.add_labels([Label(f"new-{i}", f"name {i}")])
    print(f"new-{i}", flush=True)
"""
_QUICK = ["--set", "features.analyzer=words", "--set", "threads=2"]
# A first fit loads what is compiled. PyTorch must not have computed anything before a fork.
_PREPARE = """
import depl, depl.pipeline.learn
depl.fit(
    depl.read("{data}").train,
    out="{folder}/first",
    config={{"features": {{"analyzer": "words"}}, "threads": 2}},
)
"""
_PREPARE_TORCH = """
import depl.neural.encoder_files, depl.pipeline.neural
"""
_PREDICTED = 3_000  # documents


@dataclass(frozen=True)
class Scenario:
    """A command that can be repeated until it is through."""

    command: Callable[[Path], Command]
    first: Callable[[Path], None]  # what is there before it begins
    result: Callable[[Path], object]  # what must be the same in the end


def trial(scenario: Scenario, kills: Kills, rng: random.Random, folder: Path) -> Counter[str]:
    """Kill a scenario so often; counts of what happened."""
    whole = folder / "whole"
    scenario.first(whole)
    took = undisturbed(scenario.command(whole))
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


def edits_trial(
    start: Start, run: Path, kills: Kills, rng: random.Random, folder: Path
) -> Counter[str]:
    """Kill a program that edits labels; count edits that were acknowledged and are lost."""
    copy = Path(shutil.copytree(run, folder / "edited"))
    acknowledged: list[str] = []
    counts: Counter[str] = Counter()
    while kills.more(counts):
        command = program(start, _EDITS, str(copy), str(len(acknowledged) + counts["gap"]))
        what, out = disturbed(command, rng.uniform(0.05, 0.6), signal.SIGKILL)
        counts[what] += 1
        acknowledged += out.split()
        history = journal(copy)
        counts["LOST"] = sum(x not in history for x in acknowledged)
        counts["gap"] = len(history) - len(acknowledged)  # written, and killed before it was said
    counts["acknowledged"] = len(acknowledged)
    del counts["gap"]
    return counts


def corpus_folder(folder: Path, documents: int) -> tuple[Corpus, Path]:
    """A small corpus, and as a folder."""
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
    return train, data


def scenarios(start: Start, train: Corpus, folder: Path) -> dict[str, Scenario]:
    """The commands that are repeated."""
    run, data = folder / "run", folder / "corpus"
    frozen = [*_QUICK, "--set", f"encoder.name='{folder / 'encoder'}'"]
    for setting in ("encoder.max_tokens=24", "classifier.epochs=1", "retrieval.epochs=1"):
        frozen += ["--set", setting]
    frozen += ["--set", "encoder.training=frozen", "--set", "checkpoint_seconds=0"]
    many = folder / "many.jsonl"
    texts = (train.texts * (_PREDICTED // len(train) + 1))[:_PREDICTED]
    many.write_text("".join(json.dumps({"id": i, "text": x}) + "\n" for i, x in enumerate(texts)))

    def fitting(options: list[str]) -> Scenario:
        return Scenario(
            lambda place: depl(start, "fit", str(data), "--out", str(place), *options),
            lambda place: None,
            contents,
        )

    def predicting(place: Path) -> Command:
        output = str(place / "out.jsonl")
        return depl(start, "predict", str(run), str(many), "--output", output, "--resume")

    def judged(place: Path) -> None:
        shutil.copytree(run, place)
        for n in range(30):
            label = Decision(label=f"l{n % 12}", verdict="added")
            FeedbackStore(place).add(f"{train.texts[n]} {n}", [label])

    def learnt(place: Path) -> object:
        # A kill behind its last write leaves a state that a second one follows.
        number = json.loads((place / "learned" / "current.json").read_text())["current"]
        return contents(place / "learned" / str(number))

    return {
        "fit-sparse": fitting(_QUICK),
        "fit-frozen": fitting(frozen),
        "predict": Scenario(predicting, lambda place: place.mkdir(), contents),
        "learn": Scenario(lambda place: depl(start, "learn", str(place)), judged, learnt),
    }


def main() -> None:
    """Print what happened in every scenario; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=150, help="of every scenario")
    parser.add_argument("--documents", type=int, default=300, help="to fit on")
    parser.add_argument("--seconds", type=float, default=1e9, help="of every scenario, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="a new Python for every command")
    parser.add_argument("--only", nargs="+", choices=_SCENARIOS, default=_SCENARIOS)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    wrong = 0
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        train, data = corpus_folder(folder, options.documents)
        run = folder / "run"
        undisturbed(depl(_fresh, "fit", str(data), "--out", str(run), *_QUICK))
        torch = "fit-frozen" in options.only
        if torch:
            _tiny_encoder(folder / "encoder")
        start: Start = _fresh
        if not options.fresh:
            prepare = _PREPARE + (_PREPARE_TORCH if torch else "")
            start = stack.enter_context(forks(run, prepare.format(data=data, folder=folder)))
        kinds = scenarios(start, train, folder)
        for what in options.only:
            place, kills = folder / what, Kills(options.kills, options.seconds)
            place.mkdir()
            if what == "edits":
                counts = edits_trial(start, run, kills, rng, place)
            elif what == "serve":
                counts = serve_trial(start, run, kills, rng, place)
            elif what == "ray":
                counts = ray_trial(data, _QUICK, kills, place)
            else:
                counts = trial(kinds[what], kills, rng, place)
            wrong += _told(what, counts)
    sys.exit(bool(wrong))


def _fresh(*command: str, **pipes: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *command], text=True, **pipes)


def _told(name: str, counts: Counter[str]) -> int:
    fine = ("killed", "through", "the same bytes", "acknowledged")
    print(name, *(f"{n:,} {what}" for what, n in counts.items() if n), sep="\n  ", flush=True)
    return sum(n for what, n in counts.items() if not what.startswith(fine))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["DEPL_TOKEN"] = TOKEN
    main()
