"""What it is worth to the SVM that the words of titles count more.

    python experiments/title_weight.py CORPUS [--documents 10000] [--weights 0,0.3,0.5,1]

Trains on so many documents of the training split and scores others of it, at most 3,000: documents
that repeat each other are on one side. Prints a markdown table; tail is macro-F1@5 of labels with 1
to 9 of the documents trained on that occur among those scored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import depl
from depl.evaluation.scores import evaluate
from depl.sparse.label_tree import linear_model
from depl.sparse.names import names_and_owners
from depl.sparse.siblings import sibling_groups
from depl.sparse.tfidf import TfidfFeatures

SCORES = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
MOST = 3_000  # documents that are scored


def main() -> None:
    """Print a row for each weight."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--weights", default="0,0.3,0.5,1")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    train = depl.read(args.corpus, splits=["train"]).train
    names, _ = names_and_owners(train.labels.names, [x.alt_names for x in train.labels])
    plain = TfidfFeatures(title_weight=0.0).fit_transform(train.texts, names)
    fitted, scored = _apart(plain, args.documents, np.random.default_rng(args.seed))
    own, others = train.subset(fitted), train.subset(scored)
    print("| title_weight | " + " | ".join(SCORES) + " | tail |")
    print("| --- |" + " --- |" * (len(SCORES) + 1))
    for weight in map(float, args.weights.split(",")):
        X = TfidfFeatures(title_weight=weight).fit_transform(train.texts, names)
        svm = linear_model(C=1.0).fit(X[fitted], own.Y)
        report = evaluate(
            svm.rank(X[scored], 5), others, train_counts=own.label_counts, n_train=len(own)
        )
        tail = report.bands["1-9"]["macroF1@5_in_test"]
        row = [*(report.scores[x] for x in SCORES), tail]
        print(f"| {weight:g} | " + " | ".join(f"{x:.2f}" for x in row) + " |", flush=True)


def _apart(X: csr_array, documents: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Documents to fit and documents to score, without siblings on both sides."""
    group = sibling_groups(X)
    drawn = rng.permutation(group.max() + 1)[: (group.max() + 1) // 10]
    held_out = np.isin(group, drawn)
    fitted = rng.permutation(np.flatnonzero(~held_out))[:documents]
    return fitted, np.flatnonzero(held_out)[:MOST]


if __name__ == "__main__":
    main()
