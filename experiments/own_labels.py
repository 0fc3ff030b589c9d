"""Whether a threshold keeps its promise where labels come from the documents, not from a list.

    python experiments/own_labels.py CORPUS --out FOLDER [--documents 1200] [--others 2000]

Fits a sparse run on some training documents, whose labels are all that it knows, as of a table
without a vocabulary. Other training documents tell how often suggestions above a threshold are
right; labels that the run does not know count as missed.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

import depl
from depl.core.corpus import Corpus, LabelSet
from depl.core.indicator import carried
from depl.fusion.thresholds import keep
from depl.pipeline.fit import fit

ASKED = (0.5, 0.7, 0.8, 0.9)


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=1200)
    parser.add_argument("--others", type=int, default=2000)
    args = parser.parse_args()
    train = depl.read(args.corpus, splits=["train"]).train
    order = np.random.default_rng(5).permutation(len(train))
    some = train.subset(np.sort(order[: args.documents]))
    others = train.subset(np.sort(order[args.documents :][: args.others]))
    known = np.flatnonzero(some.label_counts)
    own, judge = (of_labels(x, known) for x in (some, others))
    shutil.rmtree(args.out, ignore_errors=True)
    model = depl.Classifier.load(fit(own, args.out).path)
    assert model.thresholds is not None
    ranking = model.predict(judge.texts, k=50)
    print("| asked | threshold | right | suggestions | found |\n| --- | --- | --- | --- | --- |")
    for precision in ASKED:
        threshold = model.thresholds.for_precision(precision)
        if threshold is None:
            print(f"| {precision} | out of reach | | | |")
            continue
        rows, columns = np.nonzero(keep(ranking, threshold).indices >= 0)
        right = carried(judge.Y, rows, ranking.indices[rows, columns])
        found = right.sum() / others.Y.nnz
        print(f"| {precision} | {threshold:.3f} | {right.mean():.3f} | {len(rows)} | {found:.3f} |")


def of_labels(corpus: Corpus, known: np.ndarray) -> Corpus:
    """The documents with these labels alone."""
    labels = LabelSet(corpus.labels[int(j)] for j in known)
    Y = corpus.Y[:, known]
    rows = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
    return Corpus.from_rows(corpus.ids, list(corpus.texts), rows, labels)


if __name__ == "__main__":
    main()
