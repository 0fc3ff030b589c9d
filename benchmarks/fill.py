"""Which labels are improbable, and in which orders they may follow: by training documents.

    python benchmarks/fill.py DATA [--cases debtags/3000,tib-en/3000]

``depl.fusion.rare`` puts labels below a probability behind all others, in the best of a few orders.
Probability and orders are constants. For every case (as in out_of_the_box.py) a quarter of the
training documents, at most 2,000, judges; a run is fitted on the rest, and its order is chosen once
for every combination of constants. No dev document is looked at. The table has, for each
combination, what the sum of P@1, P@5, PSP@1, PSP@5 and macro-F1@5 of rare labels gains against
having no such order, case by case, and their mean.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

import depl
from depl.fusion import rare
from depl.fusion.fusion import Fusion
from depl.pipeline.fusion import held_out_counts, held_out_rankings, label_facts
from depl.pipeline.work import Work
from depl.run.folder import Run
from depl.run.titles import read_titles
from out_of_the_box import TAIL, WORK, case_of, scores_of

BELOW = (0.005, 0.01, 0.02, 0.05, 0.1)
ORDERS = {
    "1": (0.0, 1.0),
    "2": (0.0, 2.0),
    "4": (0.0, 4.0),
    "1, 2, 4": (0.0, 1.0, 2.0, 4.0),
}
SUMMED = ("P@1", "P@5", "PSP@1", "PSP@5", TAIL)
CASES = (
    "debtags/1000,debtags/3000,debtags/one-label/3000,tib-en/one-label/3000,eurlex57k/3000,"
    "eurlex57k/one-label/3000,wordnet/3000,debian-sources-fr/3000,debian-sources-fr,debian-depends/3000"
)
MOST = 2_000  # documents that judge
PLAIN = "none"

console = Console(highlight=False, width=160)


def measure(name: str, data: Path) -> dict[str, dict[str, float]]:
    """The scores with every combination of constants."""
    corpus, _ = case_of(name, data)
    order = np.random.default_rng(1).permutation(len(corpus))
    cut = min(MOST, len(corpus) // 4)
    judge, train = (corpus.subset(np.sort(rows)) for rows in (order[:cut], order[cut:]))
    folder = WORK / f"fill-{name.replace('/', '-')}"
    shutil.rmtree(folder, ignore_errors=True)
    model = depl.fit(train, out=folder, config="sparse")
    fusion, choose = fitted(Run.open(folder))
    rankings = model.parts(judge.texts)
    found: dict[str, dict[str, float]] = {}
    known: dict[rare.Order, dict[str, float]] = {}
    for key, below, fills in [
        (PLAIN, rare.IMPROBABLE, (0.0,)),
        *((f"{b:.1%}: {x}", b, orders) for b in BELOW for x, orders in ORDERS.items()),
    ]:
        order = fusion.order_ = choose(below=below, fills=fills)
        if order not in known:
            ranking = fusion.rank(rankings, model.train_counts, 10, facts=model.state.facts)
            known[order] = scores_of(ranking, train, judge, key) | {"fill": order.fill}
        found[key] = known[order]
    shutil.rmtree(folder)
    return found


def fitted(run: Run) -> tuple[Fusion, Callable[..., rare.Order]]:
    """The fusion of a run fitted once more, and what chooses an order for it, with its inputs."""
    work = Work(run, run.config(), run.path, run.path / ".scratch")
    held_out, counts = run.slice.held_out, held_out_counts(run)
    Y, n_train = run.Y[held_out], len(run.slice.rest())
    rankings, fold = held_out_rankings(work), run.slice.fold[held_out]
    _, facts = label_facts(run, titles=read_titles(rankings))
    fusion = Fusion()
    with mock.patch("depl.fusion.fusion.choose_order", wraps=rare.choose_order) as chosen:
        fusion.fit(rankings, Y, counts, n_train, fold, facts)
    return fusion, partial(rare.choose_order, *chosen.call_args.args)


def main() -> None:
    """Measure what is not there yet, and print the gains."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cases", default=CASES)
    args = parser.parse_args()
    names = args.cases.split(",")
    WORK.mkdir(parents=True, exist_ok=True)
    gains: dict[str, list[float]] = {}
    for name in names:
        kept = WORK / f"fill-{name.replace('/', '-')}.json"
        if not kept.exists():
            console.print(f"[dim]{name} …[/]")
            kept.write_text(json.dumps(measure(name, args.data), indent=2))
        scores = json.loads(kept.read_text())
        for key in (PLAIN, *(f"{below:.1%}: {x}" for below in BELOW for x in ORDERS)):
            row = scores[key]
            gain = sum(row[x] - scores[PLAIN][x] for x in SUMMED)
            gains.setdefault(key, []).append(gain)
    table = Table("below: orders", *names, "mean", "worst", box=None)
    for key, row in gains.items():
        cells = [f"{x:+.2f}" for x in (*row, float(np.mean(row)), min(row))]
        table.add_row(key, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
