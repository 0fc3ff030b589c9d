"""Is one system better than others? A paired bootstrap over the dev documents.

    python experiments/significance.py data/debtags svm DiSMEC PfastreXML [--seed 0]

compares the first with each of the others. The rankings are those that compare.py, peers.py and
run.py kept. For P@k and PSP@k it prints both systems, their difference and its 95 % interval over
2,000 samples of documents, the same documents for both; then the same without dev documents that
repeat a training document (see corpora.py). The differences go into
experiments/results/<corpus>-significance.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from corpora import repeated
from measured import KS, RESULTS, kept_ranking
from numpy.typing import NDArray

import depl
from depl.core.storage import write_text
from depl.evaluation.metrics import inverse_propensities, precision_and_psp_by_document

SAMPLES = 2_000
Floats = NDArray[np.float64]


class Difference(NamedTuple):
    """The mean difference of two systems, and where 95 % of the samples are."""

    mean: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0


def main() -> None:
    """Compare one system with others, and keep the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with train and dev")
    parser.add_argument("first")
    parser.add_argument("others", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="where runs are")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    data = depl.read(args.corpus, splits=["train", "dev"])
    name = args.corpus.resolve().name
    path = args.results / f"{name}-significance.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = found.get("significance", {}).get(args.first, {})
    for other in args.others:
        known[other] = compare(data, args.first, other, args)
    pairs = found.get("significance", {}) | {args.first: known}
    content = {"corpus": name, "seed": args.seed, "significance": pairs}
    write_text(path, json.dumps(content, indent=1) + "\n")


def compare(
    data: depl.Dataset, first: str, second: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Print how two systems differ, on all documents and without repeated ones; and say it."""
    inverse = inverse_propensities(data.train.label_counts, len(data.train))
    folder = args.out / data.name
    pair = [kept_ranking(folder, system, args.seed).indices for system in (first, second)]
    _, again = repeated(data.train.texts, data.dev.texts)
    found: dict[str, Any] = {}
    for title, rows in (("all documents", again | True), ("without repeated ones", ~again)):
        print(f"{first} and {second}, {title}: {rows.sum():,}")
        truth = data.dev.Y[np.flatnonzero(rows)]
        scores = [precision_and_psp_by_document(x[rows], truth, inverse, KS) for x in pair]
        found[title] = {}
        for metric in scores[0]:
            a, b = (x[metric] for x in scores)
            d = paired_bootstrap(a, b, np.random.default_rng(args.seed))
            found[title][metric] = [round(x, 2) for x in d]
            sure = "significant" if d.significant else "not significant"
            print(
                f"  {metric:6} {a.mean():6.2f} {b.mean():6.2f}   {d.mean:+.2f} "
                f"[{d.low:+.2f}, {d.high:+.2f}]  {sure}"
            )
    return found


def paired_bootstrap(a: Floats, b: Floats, rng: np.random.Generator) -> Difference:
    """The difference of means, and the 2.5 and 97.5 % quantiles of resampled ones."""
    difference = a - b
    means = [rng.choice(difference, len(difference)).mean() for _ in range(SAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(float(difference.mean()), float(low), float(high))


if __name__ == "__main__":
    main()
