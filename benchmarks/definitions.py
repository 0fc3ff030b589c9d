"""Whether definitions and broader labels of a vocabulary find rare labels, as further names.

python benchmarks/definitions.py data/debtags --seed 0

Sparse runs on 3,000 documents of the training split, measured on 6,000 others of it. In each run,
labels with fewer than so many training documents get one name more: their definition, or their
name together with those of the labels above it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import depl
from depl.core.corpus import Corpus, Label, LabelSet, among, true_pairs
from depl.evaluation.bands import BANDS, band_of
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit

VARIANTS = {
    "names alone": (0, "definition"),
    "definition, below 1": (1, "definition"),
    "definition, below 10": (10, "definition"),
    "broader, below 1": (1, "broader"),
    "broader, below 10": (10, "broader"),
}


def named(corpus: Corpus, below: int, what: str) -> Corpus:
    """The corpus with one name more for each of its rare labels."""

    def label(i: int, x: Label) -> Label:
        more = x.description if what == "definition" else " ".join((x.name, *x.broader))
        names = (*x.alt_names, more) if more and corpus.label_counts[i] < below else x.alt_names
        return Label(x.id, x.name, names)

    labels = LabelSet(label(i, x) for i, x in enumerate(corpus.labels))
    return Corpus(corpus.ids, corpus.texts, corpus.Y, labels)


def measured(model: Classifier, test: Corpus, bands: np.ndarray) -> list[float]:
    """P@5, then R@10 and macro-F1@5 over the labels of each band that are in the test documents."""
    ranking, n = model.predict(test.texts, 10), len(test.labels)
    asked = np.arange(len(test))[:, None] * n + ranking.indices
    right = among(true_pairs(test.Y), asked) & (ranking.indices >= 0)
    first = ranking.indices[:, :5]
    found5 = np.bincount(first[right[:, :5]], minlength=n)
    found10 = np.bincount(ranking.indices[right], minlength=n)
    said, true = np.bincount(first[first >= 0], minlength=n), test.label_counts
    figures = [found5.sum() / (5 * len(test))]
    for band in range(len(BANDS)):
        own = (bands == band) & (true > 0)
        figures += [
            found10[own].sum() / max(1, true[own].sum()),
            np.mean(2 * found5[own] / (said + true)[own]) if own.any() else 0.0,
        ]
    return [100 * float(x) for x in figures]


def main() -> None:
    """Print a row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variants", type=int, default=len(VARIANTS))
    options = parser.parse_args()
    train = depl.read(options.corpus, splits=["train"]).train
    order = np.random.default_rng(options.seed).permutation(len(train))
    few, test = (train.subset(np.sort(part)) for part in (order[:3000], order[3000:9000]))
    bands = band_of(few.label_counts)
    print("| names | P@5 |", " | ".join(f"{b.name}: R@10 | macro-F1@5" for b in BANDS), "|")
    for name, (below, what) in list(VARIANTS.items())[: options.variants]:
        with tempfile.TemporaryDirectory() as folder:
            run = fit(named(few, below, what), Path(folder) / "run").path
            figures = measured(Classifier.load(run), test, bands)
        print(f"| {name} |", " | ".join(f"{x:.1f}" for x in figures), "|", flush=True)


if __name__ == "__main__":
    main()
