"""Whether definitions and broader labels of a vocabulary find rare labels.

python benchmarks/definitions.py data/debtags --seed 0
python benchmarks/definitions.py data/debtags --seed 0 --recipe cpu-frozen

Sparse runs on 3,000 documents of the training split, measured on 6,000 others of it. In each run,
labels with fewer than so many training documents get one name more: their definition, or their
name together with those of the labels above it.

With a neural recipe, names stay, and definition and broader labels go into the pseudo description
that the encoder reads (``descriptions.definitions``). The documents measured on are then those that
carry a label with fewer than ten training documents.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import depl
from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.indicator import among, true_pairs
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config

VARIANTS = {
    "names alone": (0, "definition"),
    "definition, below 1": (1, "definition"),
    "definition, below 10": (10, "definition"),
    "broader, below 1": (1, "broader"),
    "broader, below 10": (10, "broader"),
}


BELOW = (0, 1, 10)  # training documents of the labels that are described by their definition


def named(corpus: Corpus, below: int, what: str) -> Corpus:
    """The corpus with one name more for each of its rare labels."""

    def label(i: int, x: Label) -> Label:
        more = x.description if what == "definition" else " ".join((x.name, *x.broader))
        names = (*x.alt_names, more) if more and corpus.label_counts[i] < below else x.alt_names
        return Label(x.id, x.name, names)

    labels = LabelSet(label(i, x) for i, x in enumerate(corpus.labels))
    return Corpus(corpus.ids, corpus.texts, corpus.Y, labels)


def measured(ranking: Ranking, test: Corpus, bands: np.ndarray) -> list[float]:
    """P@5, then R@10 and macro-F1@5 over the labels of each band that are in the test documents."""
    n = len(test.labels)
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
    parser.add_argument("--recipe", default="sparse")
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--test", type=int, default=6000)
    parser.add_argument("--below", type=int, nargs="*", default=BELOW, help="with a neural recipe")
    parser.add_argument("--out", type=Path, help="keep the runs here, to go on with them")
    options = parser.parse_args()
    train = depl.read(options.corpus, splits=["train"]).train
    order = np.random.default_rng(options.seed).permutation(len(train))
    few, rest = order[: options.train], order[options.train :]
    # The texts are short: 58 words on average.
    config = Config.load(options.recipe, [f"seed={options.seed}", "encoder.max_tokens=96"])
    corpus = train.subset(np.sort(few))
    if config.neural:
        rest = rest[train.Y[rest] @ (corpus.label_counts < BANDS[2].first) > 0]
    test = train.subset(np.sort(rest[: options.test]))
    bands = band_of(corpus.label_counts)
    print(f"{len(corpus):,} documents; measured on {len(test):,}")
    print("| variant | P@5 |", " | ".join(f"{b.name}: R@10 | macro-F1@5" for b in BANDS), "|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        for name, documents, settings in variants(corpus, config, options.below):
            # What does not depend on descriptions is kept from one neural run to the next.
            run = folder / ("run" if config.neural else name)
            model = Classifier.load(fit(documents, run, settings).path)
            rankings = model.all_rankings(test.texts, 10)
            for part in ("retrieval", "fusion") if config.neural else ("fusion",):
                figures = measured(rankings[part], test, bands)
                shown = " | ".join(f"{x:.1f}" for x in figures)
                print(f"| {name}, {part} | {shown} |", flush=True)


def variants(
    corpus: Corpus, config: Config, thresholds: Sequence[int]
) -> Iterator[tuple[str, Corpus, Config]]:
    """What is fitted: the name, the documents and the settings of each variant."""
    if config.neural:
        for below in thresholds:
            name = f"definitions below {below}" if below else "none"
            yield name, corpus, config.changed([f"descriptions.definitions={below}"])
        return
    for name, (below, what) in VARIANTS.items():
        yield name, named(corpus, below, what), config


if __name__ == "__main__":
    main()
