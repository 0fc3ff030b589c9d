"""The paper's experiments, each one command; what is measured goes into experiments/results.

    python experiments/run.py systems   data/eurlex57k --seed 0    Tables 3 and 4, Figures 1 and 3
    python experiments/run.py ablations data/eurlex57k --seed 0    Table 6
    python experiments/run.py lengths   data/eurlex57k --seed 0    Figure 4
    python experiments/run.py laptop    data/tib-en    --seed 0    what there is without a GPU
    python experiments/run.py           --list                     what there is

experiments.toml says what each of them fits and what is expected of it. A run is made (or found, or
finished) in --out; systems that are in the result file already are not made again unless --redo
says so. The command fails if a score is further from what is expected than the tolerance.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from corpora import repeated
from measured import (
    RESULTS,
    add_system,
    in_a_line,
    keep_ranking,
    origin,
    read_systems,
    scores_apart,
    value,
)
from paper import SEEN_ONLY

import depl
from depl.core.ranking import Ranking
from depl.evaluation.scores import Report, aligned_with_counts, evaluate
from depl.pipeline import fit as pipeline

HERE = Path(__file__).parent
DEPTH = 100  # of rankings: deep enough to hold several rare labels, or to leave some out
# What the parts of a run are called in the paper's tables.
PARTS = {"svm": "svm", "retrieval": "depl+c retrieval", "depl+c": "depl+c", "fusion": "fusion"}


def main() -> None:
    """Run one experiment on one corpus with one seed."""
    experiments = tomllib.loads((HERE / "experiments.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", nargs="?", choices=list(experiments))
    parser.add_argument("corpus", nargs="?", type=Path, help="a corpus folder with train and dev")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the runs are")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--only", action="append", metavar="SYSTEM", help="not all its systems")
    parser.add_argument("--redo", action="store_true", help="measure again what is there")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    args = parser.parse_args()
    if args.list or args.experiment is None or args.corpus is None:
        for name, experiment in experiments.items():
            print(f"{name}: {experiment['shows']}\n    {', '.join(experiment['systems'])}")
        sys.exit(0 if args.list else 2)
    experiment = experiments[args.experiment]
    found = measure(experiment, args)
    sys.exit(compare(experiment.get("expected", {}).get(args.corpus.resolve().name, {}), found))


def measure(experiment: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Fit what is to be fitted, score what is to be scored; the result file's systems."""
    name = args.corpus.resolve().name
    stem = f"{name}-seed{args.seed}"
    suffix = ""
    if "suffix" in experiment:  # another kind of run than that of the paper's systems
        stem, suffix = f"{stem}-{experiment['config']}", f", {experiment['suffix']}"
    path = args.results / f"{stem}.json"
    wanted = args.only or experiment["systems"]
    known = read_systems(path)
    if not args.redo:
        wanted = [s for s in wanted if s not in known]
    if not wanted:
        print(f"{path} has all of it.")
        return known
    overrides = [*experiment.get("set", {}).get(name, []), f"seed={args.seed}", *args.set]
    config = depl.Config.load(experiment["config"], overrides)
    data = depl.read(args.corpus, splits=["train", "dev"])
    until = experiment.get("until")
    run = pipeline.fit(data.train, args.out / stem, config, until=until, observe=_tell)
    facts = {
        **origin(name, "torch", "transformers", "scikit-learn", seed=args.seed),
        "stages": {s: e["seconds"] for s, e in run.manifest()["stages"].items()},
    }
    command = f"python experiments/run.py {args.experiment} data/{name}"
    counts, n_train = run.train_counts()
    _, again = repeated(data.train.texts, data.dev.texts)

    def keep(system: str, ranking: Ranking, seconds: float | None) -> None:
        dev, known = aligned_with_counts(data.dev, run.labels, counts)
        report = evaluate(ranking, dev, train_counts=known, n_train=n_train)
        entry = {
            "command": f"{command} --seed {args.seed}",
            "seconds": seconds,
            **scores_apart(ranking, dev, known, n_train, again),
            "report": report.to_json(bins=True),
        }
        add_system(path, facts, system, entry)  # at once: the next one may take minutes
        keep_ranking(args.out / "recipes" / data.name, system, args.seed, ranking)
        print(f"{name} seed {args.seed}  {system}: {in_a_line(report)}", flush=True)

    parts = {s + suffix: part for part, s in PARTS.items() if s + suffix in wanted}
    if parts or SEEN_ONLY in wanted:
        rankings = depl.Classifier.load(run.path).all_rankings(data.dev.texts, DEPTH)
        for system, part in parts.items():
            keep(system, rankings[part], None)
        if SEEN_ONLY in wanted:
            keep(SEEN_ONLY, rankings["fusion"].keep((counts > 0)[rankings["fusion"].indices]), None)
    trained = [s for s in wanted if s not in parts and s != SEEN_ONLY]
    if trained:
        import variants

        start = time.perf_counter()
        for system, ranking in variants.rankings(run, data.dev, trained, DEPTH):
            keep(system, ranking, round(time.perf_counter() - start, 1))
            start = time.perf_counter()
    return read_systems(path)


def compare(expected: dict[str, dict[str, float]], found: dict[str, Any]) -> int:
    """Say which scores are not what was expected; 1 if any is too far off."""
    off = 0
    for system, scores in expected.items():
        tolerance = scores["tolerance"]
        for metric, wanted in scores.items():
            if metric == "tolerance" or system not in found:
                continue
            got = value(Report.from_json(found[system]["report"]), metric)
            if abs(got - wanted) > tolerance:
                off += 1
                print(f"{system}: {metric} is {got:.2f}, expected {wanted} +- {tolerance}")
    print("All scores are as expected." if not off else f"{off} scores are not as expected.")
    return int(off > 0)


def _tell(event: pipeline.Event) -> None:
    if event.kind == "done":
        print(f"  {event.stage} {event.seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
