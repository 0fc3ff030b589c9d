"""Whether a run's probabilities are right, and thresholds give the precision that was asked for.

    python experiments/probabilities.py RUN CORPUS [--split dev]

The run's thresholds come from the validation slice of its training documents; what they give is
counted on documents that nothing was chosen on. Prints the tables of docs/probabilities.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from blocks import row
from scipy.sparse import csr_array

import depl
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.evaluation.metrics import Hits
from depl.evaluation.reliability import Reliability, reliability
from depl.evaluation.scores import aligned_with_counts
from depl.fusion.thresholds import Thresholds, keep

DEPTH = 200  # suggestions a document that a threshold chooses from
BEST = 5  # those whose probabilities are checked
BINS = (0, 4, 7, 10, 12, 14)  # shown, of 15
ASKED = (0.7, 0.8, 0.9)
BY_BAND = 0.8  # asked of every band


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--split", default="dev")
    args = parser.parse_args()
    model = depl.Classifier.load(args.run)
    if model.thresholds is None:
        parser.error(f"{args.run} was not fitted to its end and has no probabilities.")
    split = getattr(depl.read(args.corpus, splits=[args.split]), args.split)
    documents, counts = aligned_with_counts(split, model.labels, model.train_counts)
    ranking = model.predict(split.texts, k=DEPTH)
    best = ranking.top(BEST)
    hits = Hits.of(best.indices, documents.Y)
    found = reliability(hits, best.scores)
    print(f"ECE@{BEST}: {100 * found.error:.2f} %\n")
    print_table(("probability, %", "suggestions", "mean, %", "right, %"), bins(found))
    bands = np.where(best.indices >= 0, band_of(counts)[best.indices], -1)
    print_table(
        ("training documents", "suggestions", "mean probability, %", "right, %"),
        by_band(best, hits, bands),
    )
    print_table(
        ("asked", "labels", "threshold", "precision", "suggestions", "recall"),
        asked_and_got(model.thresholds, ranking, documents.Y, counts),
    )


def bins(found: Reliability) -> Iterator[Sequence[str]]:
    """How often suggestions of some probabilities are right."""
    n = len(found.counts)
    for i in BINS:
        yield (
            f"{100 * i / n:.0f}–{100 * (i + 1) / n:.0f}",
            f"{found.counts[i]:,}",
            f"{100 * found.probability[i]:.1f}",
            f"{100 * found.right[i]:.1f}",
        )


def by_band(best: Ranking, hits: Hits, bands: np.ndarray) -> Iterator[Sequence[str]]:
    """The same over labels of some frequency."""
    for i, band in enumerate(BANDS):
        there = bands == i
        if there.any():
            said, right = best.scores[there].mean(), hits.correct[there].mean()
            yield band.name, f"{there.sum():,}", f"{100 * said:.1f}", f"{100 * right:.1f}"


def asked_and_got(
    thresholds: Thresholds, ranking: Ranking, Y: csr_array, counts: np.ndarray
) -> Iterator[Sequence[str]]:
    """What the run's thresholds give on these documents."""
    band = band_of(counts)

    def got(at_least: float | np.ndarray, kind: int | None = None) -> list[str]:
        kept = keep(ranking, at_least)
        hits = Hits.of(kept.indices, Y)
        there, carried = kept.indices >= 0, np.ones(len(hits.labels), bool)
        if kind is not None:
            there, carried = there & (band[kept.indices] == kind), band[hits.labels] == kind
        right, suggested, all_ = (int(x.sum()) for x in (hits.correct[there], there, carried))
        precision = f"{right / suggested:.3f}" if suggested else "–"
        return [precision, f"{suggested:,}", f"{right / all_:.3f}" if all_ else "–"]

    for precision in ASKED:
        threshold = thresholds.for_precision(precision)
        if threshold is not None:
            yield f"{precision}", "all", f"{threshold:.3f}", *got(threshold)
    for i, b in reversed(list(enumerate(BANDS))):
        threshold = thresholds.for_precision(BY_BAND, b.name)
        if threshold is None:
            yield f"{BY_BAND}", b.name, "out of reach", "–", "–", "–"
        else:
            yield f"{BY_BAND}", b.name, f"{threshold:.3f}", *got(threshold, i)
    by_label = thresholds.of_labels(counts, BY_BAND)
    yield f"{BY_BAND}", "all, `--per-band`", "", *got(by_label)
    best = thresholds.for_f1()
    if best is not None:
        yield "best F1", "all", f"{best:.3f}", *got(best)


def print_table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """As markdown."""
    for cells in (head, ["---"] * len(head), *rows):
        print(row(cells))
    print()


if __name__ == "__main__":
    main()
