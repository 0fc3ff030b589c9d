"""Section 4.1 of the paper, measured: which gradients reach rare and common labels.

    python experiments/gradients.py data/debtags --documents 1500

The paper derives that with the binary cross-entropy a document pulls the vectors of its labels by
1 - p and pushes all others by p, and argues that a rare label, which nearly every document pushes,
is inundated by negatives. Here both sums are taken over all training documents, before, during and
after a training: of the classifier, in which every label has a vector of its own, and of the
retrieval branch, in which a label's vector is read from its text and a step has a sample of labels.
The encoder is frozen, as in the recipe cpu-frozen. The results go into
experiments/results/<corpus>-gradients.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measured import RESULTS
from numpy.typing import NDArray
from system_blocks import SEEN, gradients_table
from systems.recipes import prepare
from torch import Tensor

import depl
from depl.core.storage import write_text
from depl.evaluation.bands import band_of
from depl.neural.encoder import DualEncoder, encode
from depl.neural.losses import Objective
from depl.neural.sampling import LabelSampler
from depl.neural.training import Validation, train
from depl.pipeline.neural import new_encoder, schedule_of
from depl.run.folder import Run

BATCH = 16
LABELS = 300  # of a step, as in the paper
BRANCHES: dict[Objective, str] = {"classifier": "classifier", "dual": "retrieval"}


@dataclass(frozen=True)
class Gradients:
    """What positives and negatives do to every label's vector, summed over some documents."""

    positive: Tensor  # (n_labels, size)
    negative: Tensor

    def __add__(self, other: Gradients) -> Gradients:
        return Gradients(self.positive + other.positive, self.negative + other.negative)


def label_gradients(logits: Tensor, targets: Tensor, labels: Tensor) -> Gradients:
    """The gradient of the summed cross-entropy by label vectors, its two parts apart.

    ``logits`` have to depend on ``labels``. By a logit it is p - 1 where the document carries the
    label, and p elsewhere.
    """
    p = torch.sigmoid(logits.detach())
    parts = (torch.where(targets > 0, p - 1, 0.0), torch.where(targets > 0, 0.0, p))
    found = [torch.autograd.grad(logits, labels, part, retain_graph=True)[0] for part in parts]
    return Gradients(*found)


def main() -> None:
    """Train both branches on a part of a corpus and measure on the way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with a train split")
    parser.add_argument("--documents", type=int, default=1_500)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, default=Path("runs/gradients"), help="where the run is")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    args = parser.parse_args()
    documents = depl.read(args.corpus, splits=["train"]).train
    chosen = np.random.default_rng(0).permutation(len(documents))[: args.documents]
    changes = [f"encoder.name={args.encoder}", *args.set]
    some = documents.subset(np.sort(chosen))
    run = prepare(some, args.out / args.corpus.name, "cpu-frozen", changes)
    name = args.corpus.resolve().name
    counts = np.bincount(run.Y.indices, minlength=run.Y.shape[1])
    found = {
        "documents": len(run.Y.indptr) - 1,
        "labels": {b: int((band_of(counts) == i).sum()) for i, b in enumerate(SEEN, start=1)},
        "branches": {BRANCHES[x]: measure(run, x) for x in BRANCHES},
    }
    path = args.results / f"{name}-gradients.json"
    write_text(path, json.dumps({"corpus": name, "seed": 0, "gradients": found}, indent=1) + "\n")
    print(gradients_table(found))


def measure(run: Run, objective: Objective) -> list[dict[str, Any]]:
    """What ``summary`` says before training, after the first epoch, and after the last."""
    section = run.config().retrieval
    encoder = new_encoder(run.config(), len(run.labels))
    texts, labels = run.texts("documents"), run.texts("label_texts", "descriptions")
    sampler = LabelSampler(
        run.Y, run.negatives("final"), n_hard=section.hard_negatives, size=LABELS
    )
    rows: list[dict[str, Any]] = []
    epochs = iter(range(section.epochs + 1))

    def look(encoder: DualEncoder) -> Validation:
        epoch = next(epochs)
        if epoch in (0, 1, section.epochs):
            found = summary(encoder, texts, labels, run, sampler, objective)
            rows.append({"epoch": epoch} | found)
        return Validation(float(epoch))  # every epoch is better than the last: none stops it

    look(encoder.eval())
    train(
        encoder,
        texts,
        run.Y,
        objective=objective,
        schedule=schedule_of(section),
        labels=labels,
        sampler=sampler,
        seed=0,
        validate=look,
        title=objective,
    )
    return rows


def summary(
    encoder: DualEncoder,
    texts: NDArray[np.floating],
    label_texts: NDArray[np.floating],
    run: Run,
    sampler: LabelSampler,
    objective: Objective,
) -> dict[str, Any]:
    """By band: how large the sums are, which is larger, and how sure positives are."""
    documents = encode(encoder, texts, "document")
    phi = encode(encoder, label_texts, "label")
    vectors = phi if objective == "dual" else encoder.head.weight.detach()  # type: ignore[union-attr]
    size = len(run.labels)
    total = Gradients(*(torch.zeros(size, vectors.shape[1]) for _ in range(2)))
    sure, carried = np.zeros(size), np.zeros(size)
    for rows, subset in _steps(run, sampler, objective):
        targets = torch.from_numpy(sampler.targets(rows, subset))
        some = vectors[subset].clone().requires_grad_()
        if objective == "dual":
            logits = encoder.similarity(documents[rows], some)
        else:
            logits = documents[rows] @ some.T + encoder.head.bias.detach()[subset]  # type: ignore[union-attr]
        found = label_gradients(logits, targets, some)
        total.positive[subset] += found.positive
        total.negative[subset] += found.negative
        sure[subset] += (torch.sigmoid(logits.detach()) * targets).sum(dim=0).numpy()
        carried[subset] += targets.sum(dim=0).numpy()
    return _by_band(total, sure, carried)


def _steps(
    run: Run, sampler: LabelSampler, objective: Objective
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The documents of an epoch's steps, and the labels that each is scored against."""
    rng = np.random.default_rng(1)
    order = rng.permutation(run.Y.shape[0])
    for first in range(0, len(order), BATCH):
        rows = order[first : first + BATCH]
        yield rows, sampler.draw(rows, rng) if objective == "dual" else sampler.seen


def _by_band(
    total: Gradients, sure: NDArray[np.float64], carried: NDArray[np.float64]
) -> dict[str, Any]:
    pull = total.positive.norm(dim=1).numpy()
    push = total.negative.norm(dim=1).numpy()
    bands = band_of(carried.astype(np.int64))
    out: dict[str, Any] = {}
    for i, name in enumerate(SEEN, start=1):
        here = bands == i
        if here.any():
            out[name] = {
                "push_over_pull": round(float(np.median(push[here] / pull[here])), 3),
                "push_larger": round(float((push[here] > pull[here]).mean()), 3),
                "probability": round(float(sure[here].sum() / carried[here].sum()), 4),
            }
    return out


if __name__ == "__main__":
    main()
