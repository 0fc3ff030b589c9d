"""Whether a hierarchy of labels helps the fusion.

    python benchmarks/relatives.py data/debtags --seed 0

A sparse run on 3,000 documents of the training split is measured on 6,000 others of it, as it is
and with a further part: how many of a label's relatives (labels above, below, or under the same
label) the SVM expects the document to carry.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

import depl
from definitions import measured
from depl.core.corpus import LabelSet
from depl.core.indicator import carried
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.fusion.calibration import logistic_line
from depl.fusion.fusion import Fusion
from depl.pipeline.fit import fit
from depl.pipeline.fusion import held_out_counts, held_out_rankings
from depl.pipeline.work import Work
from depl.run.config import Config

Line = tuple[float, float]


def relatives(labels: LabelSet) -> csr_array:
    """Which labels are above or below each other, or under the same label or heading."""
    under: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        for above in label.broader:
            under.setdefault(above, []).append(i)
    families = [[*members, *_known(labels, above)] for above, members in under.items()]
    pairs = {(i, j) for family in families for i in family for j in family if i != j}
    rows, columns = zip(*sorted(pairs), strict=True) if pairs else ((), ())
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(labels), len(labels)))


def _known(labels: LabelSet, above: str) -> list[int]:
    return [labels.index(above)] if above in labels else []


def line_of(ranking: Ranking, Y: csr_array) -> Line:
    """What makes the SVM's scores log-odds."""
    rows, columns = np.nonzero(ranking.indices >= 0)
    labels = ranking.indices[rows, columns]
    return logistic_line(ranking.scores[rows, columns], carried(Y, rows, labels))


def expected(ranking: Ranking, line: Line, family: csr_array) -> Ranking:
    """Labels by how many of their relatives are expected."""
    rows, columns = np.nonzero(ranking.indices >= 0)
    probability = expit(line[0] * ranking.scores[rows, columns] + line[1])
    at = (rows, ranking.indices[rows, columns])
    P = csr_array((probability, at), shape=(len(ranking), family.shape[0]))
    found = (P @ family).tocoo()
    i, j = found.coords
    return Ranking.from_pairs(
        i, j.astype(np.int64), found.data.astype(np.float32), len(ranking), ranking.k
    )


def main() -> None:
    """Print a row without and one with the relatives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--test", type=int, default=6000)
    options = parser.parse_args()
    train = depl.read(options.corpus, splits=["train"]).train
    order = np.random.default_rng(options.seed).permutation(len(train))
    corpus = train.subset(np.sort(order[: options.train]))
    test = train.subset(np.sort(order[options.train :][: options.test]))
    family = relatives(corpus.labels)
    config = Config.load("sparse", [f"seed={options.seed}"])
    print("| | P@5 |", " | ".join(f"{b.name}: R@10 | macro-F1@5" for b in BANDS), "|")
    with tempfile.TemporaryDirectory() as folder:
        run = fit(corpus, Path(folder) / "run", config)
        there = held_out_rankings(Work(run, config, Path(folder), Path(folder)))
        held_out, fold = run.slice.held_out, run.slice.fold[run.slice.held_out]
        Y, counts = run.Y[held_out], held_out_counts(run)
        model = depl.Classifier.load(run.path)
        asked = model.parts(test.texts)
        line = line_of(there["svm"], Y)
        for name in ("without", "with relatives"):
            fusion = Fusion(seed=options.seed).fit(there, Y, counts, len(run.slice.rest()), fold)
            ranking = fusion.rank(asked, model.train_counts, 10)
            figures = measured(ranking, test, band_of(corpus.label_counts))
            print(f"| {name} | {' | '.join(f'{x:.1f}' for x in figures)} |", flush=True)
            there = there | {"relatives": expected(there["svm"], line, family)}
            asked = asked | {"relatives": expected(asked["svm"], line, family)}


if __name__ == "__main__":
    main()
