"""How much the power that favours rare labels depends on chance, and what it costs the head.

    python benchmarks/favour.py DATA [--cases tib-en/3000,debtags/3000]

``depl.fusion.rare`` chooses the power on held-out documents. For every case (as in
out_of_the_box.py) a run is fitted on the training documents, and its power is chosen on random
halves of its held-out ones: as it is, and by counting, the largest power whose loss is at most
``head_loss`` as counted and as expected. Up to 3,000 other training documents of the corpus judge:
they were neither fitted nor held out. The table has mean and standard deviation of the powers, the
losses of P@1 and P@5 against having no favour, and the sum of P@1, P@5, PSP@1, PSP@5 and
macro-F1@5 of rare labels, means over the halves; of the sum the standard deviation, too.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
from rich.console import Console

import depl
from depl.core.ranking import Ranking
from depl.fusion.rare import CUTS, Order, Precisions, choose_order
from depl.run.folder import Run
from fill import SUMMED, fitted
from out_of_the_box import WORK, case_of, scores_of

CASES = "tib-en/3000,debtags/3000,eurlex57k/3000,tib-en/1000,debtags/1000,eurlex57k/1000"
JUDGES = 3_000
HALVES = 40
POWERS = tuple(step / 20 for step in range(21))


def counted(rows, labels, log_odds, probability, Y, inverse, rare, head_loss) -> Order:
    """The order by counting."""

    def precisions(power: float) -> np.ndarray:
        keys = Order(power).keys(log_odds, probability, inverse[labels])
        best = Ranking.from_pairs(rows, labels, probability, Y.shape[0], max(CUTS), order=keys)
        found = Precisions.of(best, Y)
        return np.concatenate([found.counted.mean(axis=0), found.likely])

    plain = precisions(0.0)
    return Order(max(x for x in POWERS if (plain - precisions(x)).max() <= head_loss))


def measure(name: str, data: Path) -> None:
    """Print the rows of a case."""
    train, _ = case_of(name, data)
    others = depl.read(data / name.split("/")[0], splits=["train"]).train
    known = set(train.ids)
    rest = np.array([i for i, x in enumerate(others.ids) if x not in known])
    drawn = np.random.default_rng(1).permutation(rest)[:JUDGES]
    judge = others.subset(np.sort(drawn))
    folder = WORK / f"favour-{name.replace('/', '-')}"
    shutil.rmtree(folder, ignore_errors=True)
    model = depl.fit(train, out=folder, config="sparse")
    fusion, choose = fitted(Run.open(folder))
    rankings = model.parts(judge.texts)
    kept: dict[float, dict[str, float]] = {}

    def scores(power: float) -> dict[str, float]:
        if power not in kept:
            fusion.order_ = Order(power)
            ranking = fusion.rank(rankings, model.train_counts, 10, facts=model.state.facts)
            kept[power] = scores_of(ranking, train, judge, name)
        return kept[power]

    rows, labels, log_odds, probability, Y, inverse, rare, head_loss = choose.args
    rng = np.random.default_rng(0)
    halves = [np.sort(rng.permutation(Y.shape[0])[: Y.shape[0] // 2]) for _ in range(HALVES)]
    found: dict[str, list[float]] = {"by counting": [], "by times the expected loss": []}
    for half in halves:
        place = np.full(Y.shape[0], -1)
        place[half] = np.arange(len(half))
        mine = place[rows] >= 0
        pairs = place[rows[mine]], labels[mine], log_odds[mine], probability[mine]
        given = (*pairs, Y[half], inverse, rare, head_loss)
        found["by counting"].append(counted(*given).power)
        found["by times the expected loss"].append(choose_order(*given, fills=(0.0,)).power)
    for way, powers in found.items():
        lost = [[scores(0.0)[x] - scores(p)[x] for x in ("P@1", "P@5")] for p in powers]
        sums = [sum(scores(p)[x] for x in SUMMED) for p in powers]
        cells = [
            f"{np.mean(powers):.2f} ({np.std(powers):.2f})",
            *(f"{x:+.2f}" for x in np.mean(lost, axis=0)),
            f"{np.mean(sums):.2f} ({np.std(sums):.2f})",
        ]
        print(f"| {name} | {way} | {' | '.join(cells)} |", flush=True)
    shutil.rmtree(folder)


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cases", default=CASES)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    Console(stderr=True).print("[dim]Each case takes some minutes.[/]")
    print("| | | power | P@1 lost | P@5 lost | sum |\n" + "| --- " * 6 + "|")
    for name in args.cases.split(","):
        measure(name, args.data)


if __name__ == "__main__":
    main()
