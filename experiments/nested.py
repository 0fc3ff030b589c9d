"""What it costs that the epochs are chosen on the documents that the fusion is fitted on.

    python experiments/nested.py data/debtags --documents 1000 --seeds 3

A fit holds out a slice of the training documents. On it the number of epochs is chosen, and then
the fusion is fitted, to which the encoder may seem a little better than it is. Here the encoder and
all after it are made again with epochs chosen on as many other documents, which the run does not
know. Everything else is the same, the slice that the fusion is fitted on, too. The recipe is
cpu-frozen; the scores are those of all parts together on the dev split. (C is chosen on the slice
only where linear.C_grid is given, which no recipe does.)
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from measured import in_a_line, value
from scipy.sparse import vstack

import depl
from depl.core.storage import read_json
from depl.neural import encoder_files
from depl.neural.encoder import pooled_states
from depl.neural.tokens import tokenize
from depl.pipeline import fit as pipeline
from depl.pipeline import neural
from depl.run.folder import Run

METRICS = ("P@1", "P@5", "PSP@1", "PSP@5")


def main() -> None:
    """Fit both ways with every seed, and print how they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with train and dev")
    parser.add_argument("--documents", type=int, default=1000, help="to train on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    args = parser.parse_args()
    data = depl.read(args.corpus, splits=["train", "dev"])
    found = []
    for seed in range(args.seeds):
        config = depl.Config.load("cpu-frozen", [f"seed={seed}", *args.set])
        order = np.random.default_rng(seed).permutation(len(data.train))
        own = data.train.subset(np.sort(order[: args.documents]))
        n_others = round(config.validation * args.documents)
        others = data.train.subset(np.sort(order[args.documents :][:n_others]))
        with tempfile.TemporaryDirectory() as place:
            same, nested = Path(place, "same"), Path(place, "nested")
            pipeline.fit(own, same, config)
            shutil.copytree(same, nested)
            with judged_by(others, config):
                pipeline.fit(None, nested, config, redo_from="encoder")
            scores = []
            for path in (same, nested):
                epochs = read_json(path / "encoder" / "held_out" / "training.json")["epochs"]
                report = depl.evaluate(depl.Classifier.load(path), data.dev)
                scores.append([value(report, metric) for metric in METRICS])
                print(f"seed {seed}, {path.name}: {epochs} epochs  {in_a_line(report)}", flush=True)
        found.append(np.subtract(*scores))
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1 if len(found) > 1 else 0)
    for metric, m, s in zip(METRICS, mean, spread, strict=True):
        print(f"same minus nested, {metric}: {m:+.2f} (standard deviation {s:.2f})")


@contextmanager
def judged_by(others: depl.Corpus, config: depl.Config) -> Iterator[None]:
    """Let other documents choose the number of epochs."""
    folder = encoder_files.find_encoder(config.encoder.name)
    tokens = tokenize(others.texts, folder, config.encoder.max_tokens)
    encoder = neural.new_encoder(config, 0)
    states = pooled_states(encoder, tokens, "document").numpy().astype(np.float16)
    judge = neural._validation

    def by_others(run: Run, config: depl.Config, labels: Any) -> Any:
        n = run.Y.shape[0]
        held_out = SimpleNamespace(held_out=n + np.arange(len(others)), rest=run.slice.rest)
        texts = np.concatenate([run.texts("documents"), states])
        both = SimpleNamespace(
            Y=vstack([run.Y, others.Y], format="csr"), slice=held_out, texts=lambda _: texts
        )
        return judge(both, config, labels)

    neural._validation = by_others
    try:
        yield
    finally:
        neural._validation = judge


if __name__ == "__main__":
    main()
