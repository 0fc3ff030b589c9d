"""What it costs to let the held-out encoder go on, in place of training another on all documents.

    python experiments/last_epochs.py CORPUS --out FOLDER [--documents 12000] [--config cpu-frozen]

Fits the same training documents both ways, one run after the other in the same folder, so that all
that does not depend on it is made once, and scores the parts on 4,000 other training documents.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from measured import value

import depl
from depl import api
from depl.pipeline import fit as pipeline

SCORES = ("P@1", "P@5", "PSP@1", "PSP@5", "tail")
PARTS = ("classifier", "retrieval", "depl+c", "fusion")


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=12_000)
    parser.add_argument("--judge", type=int, default=4_000)
    parser.add_argument("--config", default="cpu-frozen")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    args = parser.parse_args()
    data = depl.read(args.corpus, splits=["train"]).train
    order = np.random.default_rng(5).permutation(len(data))
    train = data.subset(np.sort(order[: args.documents]))
    judge = data.subset(np.sort(order[args.documents : args.documents + args.judge]))
    config = depl.Config.load(args.config, args.set)
    ways = {
        "trained again": config.changed(["retrieval.last_epochs=0"]),
        f"goes on for {config.retrieval.last_epochs} epochs": config,
    }
    print(f"| | | {' | '.join(SCORES)} | seconds of training |")
    print("|" + " --- |" * (len(SCORES) + 3))
    for way, settings in ways.items():
        run = pipeline.fit(train, args.out, settings)
        stages = run.manifest()["stages"]
        seconds = sum(stages[name]["cpu_seconds"] for name in ("classifier", "encoder"))
        reports = {r.name: r for r in api.evaluate_parts(depl.Classifier.load(args.out), judge)}
        for part in PARTS:
            scores = " | ".join(f"{value(reports[part], score):.2f}" for score in SCORES)
            print(f"| {part} | {way} | {scores} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
