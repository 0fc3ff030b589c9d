"""What whole names, and how names are used in training documents, are worth to the fusion.

    python benchmarks/name_use.py DATA [--cases tib-en/1000,debtags/3000]
    python benchmarks/name_use.py DATA --run RUN --cases tib-en

The first fits a sparse run on so many training documents of each case, and judges by 4,000 others
of them; the second takes a run that is there, and judges by the dev split. The fusion is fitted
again on the rankings of the held-out documents: without both, with one of them, and with both.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import depl
from depl.core.ranking import Ranking
from depl.evaluation.scores import evaluate
from depl.fusion.fusion import Fusion
from depl.pipeline.fusion import held_out_counts, held_out_rankings, label_facts
from depl.pipeline.work import Work
from depl.run.folder import Run
from depl.run.state import State
from depl.run.titles import read_titles

CASES = [f"{x}/{n}" for n in (1000, 3000) for x in ("debtags", "tib-en", "eurlex57k")]
JUDGES = 4_000
WHOLE = "whole names"
SCORES = ("P@1", "P@5", "PSP@1", "PSP@5")


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="a folder of corpora")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--run", type=Path, help="a run on the whole corpus of the only case")
    args = parser.parse_args()
    print(f"| | | {' | '.join(SCORES)} | tail | sum | R@10 | unseen R@10 |\n{'| --- ' * 10}|")
    for case in args.cases.split(","):
        name, _, size = case.partition("/")
        splits = depl.read(args.data / name, splits=["train", "dev"])
        if args.run is not None:
            compare(case, Run.open(args.run), splits.dev)
            continue
        order = np.random.default_rng(0).permutation(len(splits.train))
        train, judges = order[: int(size)], order[int(size) :][:JUDGES]
        with tempfile.TemporaryDirectory() as folder:
            depl.fit(splits.train.subset(np.sort(train)), out=folder, config="sparse")
            compare(case, Run.open(Path(folder)), splits.train.subset(np.sort(judges)))


def compare(case: str, run: Run, judges: depl.Corpus) -> None:
    """A row for each fusion."""
    config = run.config()
    work = Work(run, config, run.path, run.path / ".scratch")
    held_out = held_out_rankings(work)
    facts, of_folds = label_facts(run, titles=read_titles(held_out))
    asked = State.load(run, tuple(held_out)).rank(judges.texts, config.fusion.depth)
    without = [x for x in held_out if not x.endswith(WHOLE)]
    none = facts[:, :0], of_folds[..., :0]
    for title, parts, known in (
        ("neither", without, none),
        (WHOLE, list(held_out), none),
        ("use of names", without, (facts, of_folds)),
        ("both", list(held_out), (facts, of_folds)),
    ):
        some = {x: held_out[x] for x in parts}
        ranking = fitted_and_asked(run, some, {x: asked[x] for x in parts}, known)
        counts, n = run.train_counts()
        report = evaluate(ranking, judges, train_counts=counts, n_train=n, name=title)
        rare, unseen = report.bands["1-9"], report.bands["0"]
        row = [*(report.scores[x] for x in SCORES), rare["macroF1@5_in_test"]]
        cells = [*row, sum(row), report.scores["R@10"], unseen.get("R@10") or 0.0]
        print(f"| {case} | {title} | {' | '.join(f'{x:.2f}' for x in cells)} |", flush=True)


def fitted_and_asked(
    run: Run,
    held_out: dict[str, Ranking],
    asked: dict[str, Ranking],
    known: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> Ranking:
    """What a fusion of these parts, which knows this of the labels, suggests."""
    of_slice, n_train = run.slice.held_out, len(run.slice.rest())
    fusion = Fusion(head_loss=run.config().fusion.head_loss, seed=run.config().seed)
    Y, fold = run.Y[of_slice], run.slice.fold[of_slice]
    fusion.fit(held_out, Y, held_out_counts(run), n_train, fold, known[1])
    return fusion.rank(asked, run.train_counts()[0], 10, facts=known[0])


if __name__ == "__main__":
    main()
