"""Is one system better than another? A paired bootstrap over the dev documents.

    python experiments/significance.py data/debtags DiSMEC PfastreXML [--seed 0]

The rankings are those that compare.py kept. For P@k and PSP@k it prints both systems, their
difference and its 95 % interval over 2,000 samples of documents, the same documents for both; then
the same without dev documents that repeat a training document (see corpora.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from corpora import repeated
from measured import kept_ranking
from numpy.typing import NDArray

import depl
from depl.evaluation.metrics import inverse_propensities, precision_and_psp_by_document

KS = (1, 3, 5)
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
    """Compare two systems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with train and dev")
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="where runs are")
    args = parser.parse_args()
    data = depl.read(args.corpus, splits=["train", "dev"])
    inverse = inverse_propensities(data.train.label_counts, len(data.train))
    systems = (args.first, args.second)
    pair = [kept_ranking(args.out / data.name, system, args.seed).indices for system in systems]
    _, again = repeated(data.train.texts, data.dev.texts)
    for title, rows in (("all documents", again | True), ("without repeated ones", ~again)):
        print(f"{title}: {rows.sum():,}")
        truth = data.dev.Y[np.flatnonzero(rows)]
        found = [precision_and_psp_by_document(x[rows], truth, inverse, KS) for x in pair]
        for metric in found[0]:
            a, b = (x[metric] for x in found)
            d = paired_bootstrap(a, b, np.random.default_rng(args.seed))
            sure = "significant" if d.significant else "not significant"
            print(
                f"  {metric:6} {a.mean():6.2f} {b.mean():6.2f}   {d.mean:+.2f} "
                f"[{d.low:+.2f}, {d.high:+.2f}]  {sure}"
            )


def paired_bootstrap(a: Floats, b: Floats, rng: np.random.Generator) -> Difference:
    """The difference of means, and the 2.5 and 97.5 % quantiles of resampled ones."""
    difference = a - b
    means = [rng.choice(difference, len(difference)).mean() for _ in range(SAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(float(difference.mean()), float(low), float(high))


if __name__ == "__main__":
    main()
