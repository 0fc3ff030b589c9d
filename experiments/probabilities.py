"""Whether a run's probabilities are right, and thresholds give the precision that was asked for.

    python experiments/probabilities.py RUN CORPUS [--split dev]
    python experiments/probabilities.py FOLDER CORPUS --documents 1000 [--samples 2 3 4]

The run's thresholds come from the validation slice of its training documents; what they give is
counted on documents that nothing was chosen on. Prints the tables of docs/probabilities.md.

The second form is about small runs: it fits one on each random sample of so many training documents
(``FOLDER/CORPUS-DOCUMENTS-SAMPLE``; what is there already is kept), and judges it on ``--others``
further training documents, or on those of ``--split``. It prints a table of all samples together:
the mean probability of the first five suggestions less the share that is right, by band, in points,
and the precision reached less that asked for. Behind each stands its standard error, by documents,
and how far single samples are off (root of the mean square).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
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
from depl.pipeline.fit import fit

DEPTH = 200  # suggestions a document that a threshold chooses from
BEST = 5  # those whose probabilities are checked
BINS = (0, 4, 7, 10, 12, 14)  # shown, of 15
ASKED = (0.7, 0.8, 0.9)
BY_BAND = 0.8  # asked of every band
QUALITY = ("P@1", "P@5", "PSP@5")

# By band, or by what was asked and band: for each run, two numbers of every suggestion that are to
# be the same on average, and its document.
Found = dict[tuple, list[tuple[np.ndarray, np.ndarray, np.ndarray]]]


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument(
        "--split", help="dev by default; with --documents, other training documents"
    )
    parser.add_argument("--documents", type=int, help="fit runs on samples of so many")
    parser.add_argument("--samples", type=int, nargs="+", default=[0, 1, 2], help="their seeds")
    parser.add_argument("--others", type=int, default=4_000, help="documents to judge them on")
    parser.add_argument("--set", nargs="*", default=[], help="settings, as SECTION.KEY=VALUE")
    args = parser.parse_args()
    if args.documents:
        print_samples(args)
        return
    args.split = args.split or "dev"
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


def print_samples(args: argparse.Namespace) -> None:
    """Two tables of runs on random samples."""
    splits = ["train"] if args.split is None else ["train", args.split]
    data, n = depl.read(args.corpus, splits=splits), args.documents
    gaps: Found = defaultdict(list)
    reached: Found = defaultdict(list)
    quality = []
    for seed in args.samples:
        order = np.random.default_rng(seed).permutation(len(data.train))
        others = data.train.subset(order[n : n + args.others])
        judged = others if args.split is None else data[args.split]
        path = args.run / f"{args.corpus.name}-{n}-{seed}"
        if not (path / "fusion").exists():
            fit(data.train.subset(np.sort(order[:n])), path, depl.Config.load("sparse", args.set))
        model = depl.Classifier.load(path)
        judge(model, judged, gaps, reached)
        report = depl.evaluate(model, judged)
        tail = report.bands["1-9"]["macroF1@5_in_test"]
        quality.append([*(report.scores[x] for x in QUALITY), tail])
    said = [f"{x} {m:.2f}" for x, m in zip([*QUALITY, "tail"], np.mean(quality, 0), strict=True)]
    print(f"{args.corpus.name}, {n} documents, {len(args.samples)} samples: {', '.join(said)}\n")
    print_table(("labels", "suggestions a run", "mean, %", "off", "single runs off"), off(gaps))
    print_table(("asked", "labels", "suggestions a run", "beyond", "single runs"), beyond(reached))


def judge(model: depl.Classifier, corpus: depl.Corpus, gaps: Found, reached: Found) -> None:
    """Add what one run is like: probabilities, 0 or 1 for each suggestion, and its document."""
    documents, counts = aligned_with_counts(corpus, model.labels, model.train_counts)
    ranking = model.predict(corpus.texts, k=DEPTH)
    assert model.thresholds is not None
    band = band_of(counts)

    def suggested(kept: Ranking, kind: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        there = kept.indices >= 0
        if kind is not None:
            there &= band[kept.indices] == kind
        right = Hits.of(kept.indices, documents.Y).correct[there]
        return kept.scores[there].astype(np.float64), right.astype(np.float64), there.nonzero()[0]

    for kind, name in [*((i, b.name) for i, b in enumerate(BANDS)), (None, "all")]:
        gaps[name,].append(suggested(ranking.top(BEST), kind))
        for asked in ASKED:
            if kind is None:
                least = model.thresholds.for_precision(asked)
            else:
                least = model.thresholds.of_band(name, asked)
            kept = keep(ranking, np.inf if least is None else least)
            _, right, of = suggested(kept, kind)
            reached[asked, name].append((right, np.full(len(right), asked), of))


def error(off: np.ndarray, of: np.ndarray) -> float:
    """The standard error of a mean over suggestions; those of one document go together."""
    sums = np.bincount(of, off - off.mean())
    return float(np.sqrt((sums**2).sum()) / len(off))


def together(runs: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[int, str, str]:
    """How many suggestions a run has, how far off all are with an error, and single runs."""
    some = [x for x in runs if len(x[0])]
    sizes = np.array([len(x[0]) for x in some])
    means = 100 * np.array([(a - b).mean() for a, b, _ in some])
    errors = 100 * np.array([error(a - b, of) for a, b, of in some])
    share = sizes / sizes.sum()
    mean, chance = (share * means).sum(), np.sqrt(((share * errors) ** 2).sum())
    single = f"{np.sqrt((means**2).mean()):.1f} (±{np.sqrt((errors**2).mean()):.1f})"
    return round(sizes.sum() / len(runs)), f"{mean:+.1f} ± {chance:.1f}", single


def off(gaps: Found) -> Iterator[Sequence[str]]:
    """Rows of the first table."""
    for (name,), runs in gaps.items():
        if any(len(x[0]) for x in runs):
            n, mean, single = together(runs)
            said = 100 * np.concatenate([x[0] for x in runs]).mean()
            yield name, f"{n:,}", f"{said:.1f}", mean, single


def beyond(reached: Found) -> Iterator[Sequence[str]]:
    """Rows of the second table."""
    for (asked, name), runs in sorted(reached.items(), key=lambda x: x[0][0]):
        inside = sum(len(x[0]) > 0 for x in runs)
        if inside:
            n, mean, single = together(runs)
            yield f"{asked}", name, f"{n:,}", mean, f"{single}, {inside} of {len(runs)}"
        else:
            yield f"{asked}", name, "out of reach", "–", "–"


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
