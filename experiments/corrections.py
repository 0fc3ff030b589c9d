"""What dropping small weights and raising rare labels does, on a slice of the training documents.

    python experiments/corrections.py CORPUS [--C 0.7]

One SVM is fitted on nine tenths of the training split; the corrections are varied on top of it and
scored on the last tenth. The dev and test splits are not read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import depl
from depl.core.aside import held_out_folds
from depl.evaluation.scores import evaluate

CULLS = (0.01, 0.05, 0.1)
BONUSES = (0.0, 0.01, 0.015, 0.02, 0.025, 0.03)
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--C", type=float, default=0.7)
    args = parser.parse_args()
    corpus = depl.read(args.corpus, splits=["train"]).train
    n = len(corpus)
    fold = held_out_folds(np.arange(n), 0.1 * n, 1, np.random.default_rng(0))
    held_out, rest = corpus.subset(np.flatnonzero(fold == 0)), corpus.subset(np.flatnonzero(fold))
    features = depl.TfidfFeatures()
    X, X_held_out = features.fit_transform(rest.texts), features.transform(held_out.texts)
    svm = depl.OneVsAllSVM(C=args.C, cull=min(CULLS), rare_bonus=0.0).fit(X, rest.Y)
    weights, bias = svm.weights_, svm.bias_
    print("| cull | rare_bonus | " + " | ".join(METRICS) + " | tail macro-F1@5 |")
    print("|" + " --- |" * (len(METRICS) + 3))
    for cull in CULLS:
        for bonus in BONUSES if cull == 0.05 else (0.0,):
            svm.weights_ = weights.copy()
            svm.weights_.data[np.abs(weights.data) < cull] = 0.0
            svm.weights_.eliminate_zeros()
            offset = bonus * np.log(np.maximum(rest.label_counts, 1))
            svm.bias_ = (bias - offset).astype(np.float32)
            report = evaluate(
                svm.rank(X_held_out, 10),
                held_out,
                train_counts=rest.label_counts,
                n_train=len(rest),
            )
            tail = report.bands["1-9"]["macroF1@5_in_test"]
            scores = [f"{report.scores[metric]:.2f}" for metric in METRICS]
            print(f"| {cull} | {bonus} | " + " | ".join(scores) + f" | {tail:.2f} |", flush=True)


if __name__ == "__main__":
    main()
