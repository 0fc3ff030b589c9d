"""How many documents a second depl and its peers can label, in one run.

    python benchmarks/predict.py CORPUS [--threads 2] [--only pecos_xrlinear,omikuji_parabel]

CORPUS is a folder that `depl` reads, with a train and a dev split. All get the same tf-idf matrix
of the dev documents, and give the 5 best labels of each: that is the column "from the matrix". What
comes before, from texts to that matrix, the peers leave to others; depl does it itself, and has two
more columns: `Classifier.predict` from texts, and the whole command `depl predict` with starting,
loading the run, reading the file and writing the result. Everything is made in
benchmarks/.work/<corpus>-predict; the table is printed and kept there as results.md.

`--only pecos_ova` adds PECOS' one-vs-all, whose training takes ten times as long as depl's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from scipy.sparse import csr_array, load_npz

import depl
from depl.core.ranking import Ranking
from depl.evaluation.scores import evaluate
from linear import prepare
from peers import run_peer

HERE = Path(__file__).parent
PEERS = ("pecos_xrlinear", "omikuji_parabel", "omikuji_bonsai")
K = 5

console = Console(highlight=False, width=140)


@dataclass
class Speed:
    """Wall-clock and CPU seconds for all documents."""

    seconds: float
    cpu_seconds: float


@contextmanager
def clock():
    """Measure the block; children count once they have ended."""
    speed = Speed(0.0, 0.0)
    start, cpu = time.perf_counter(), _cpu_seconds()
    yield speed
    speed.seconds, speed.cpu_seconds = time.perf_counter() - start, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def time_depl(
    train: depl.Corpus, dev: depl.Corpus, work: Path, threads: int
) -> tuple[dict[str, Speed], Ranking]:
    """Time depl from the matrix, from texts and as a command; give its suggestions, too."""
    config = depl.Config.from_dict({"threads": threads})
    model = depl.fit(train, out=work / "run", config=config)
    X = csr_array(load_npz(work / "X_dev.npz"))
    model.predict(dev.texts[:10], K)  # compile
    speeds = {}
    with clock() as speeds["from the matrix"]:
        ranking = model.svm.rank(X, K)
    with clock() as speeds["from texts"]:
        model.predict(dev.texts, K)
    documents, output = work / "dev.jsonl", work / "suggested.jsonl"
    with documents.open("w", encoding="utf-8") as file:
        for own_id, text in zip(dev.ids, dev.texts, strict=True):
            file.write(json.dumps({"id": own_id, "text": text}) + "\n")
    program = [str(Path(sys.executable).with_name("depl")), "predict", str(work / "run")]
    options = ["-k", str(K), "--output", str(output), "--overwrite"]
    with clock() as speeds["depl predict"]:
        subprocess.run([*program, str(documents), *options], check=True, stderr=subprocess.DEVNULL)
    return speeds, ranking


def precision(ranking: Ranking, train: depl.Corpus, dev: depl.Corpus) -> tuple[float, float]:
    """P@1 and P@5: speed says little about suggestions that are not as good."""
    report = evaluate(
        ranking, dev, train_counts=train.label_counts, n_train=len(train), name="predicted"
    )
    return report.scores["P@1"], report.scores["P@5"]


def as_markdown(rows: dict[str, tuple[dict[str, Speed], tuple[float, float]]], n: int) -> str:
    """Documents a second, by the clock and by CPU time, with multiples of depl's."""
    base = rows["depl"][0]["from the matrix"]
    columns = list(rows["depl"][0])
    lines = [
        "| | "
        + " | ".join(f"{c}, documents/s" for c in columns)
        + " | CPU ms/document | P@1 | P@5 |",
        "|" + " --- |" * (len(columns) + 4),
    ]
    for name, (speeds, scores) in rows.items():
        cells = [f"{n / speeds[c].seconds:,.0f}" if c in speeds else "–" for c in columns]
        matrix = speeds["from the matrix"]
        cells[0] += f" ({base.seconds / matrix.seconds:.2f}x)"
        cells.append(" / ".join(f"{1000 * s.cpu_seconds / n:.2f}" for s in speeds.values()))
        cells += [f"{score:.2f}" for score in scores]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Train everything, predict with everything, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default=",".join(PEERS), help="peers, separated by commas")
    args = parser.parse_args()
    work = HERE / ".work" / f"{args.corpus.resolve().name}-predict"
    train, dev = prepare(args.corpus, work)
    rows = {}
    for name in args.only.split(",") if args.only else []:
        console.print(f"[dim]{name} …[/]")
        result = run_peer(name, work, k=K, threads=args.threads)
        speed = Speed(result.predict_seconds, result.more["predict_cpu_seconds"])
        scores = precision(Ranking(*result.read_predictions()), train, dev)
        rows[f"{name} {result.version}"] = ({"from the matrix": speed}, scores)
    console.print("[dim]depl …[/]")
    speeds, ranking = time_depl(train, dev, work, args.threads)
    rows = {"depl": (speeds, precision(ranking, train, dev)), **rows}
    table = as_markdown(rows, len(dev))
    (work / "results.md").write_text(table + "\n")
    print(f"{len(dev):,} documents, {K} labels each, {args.threads} threads\n\n{table}")


if __name__ == "__main__":
    main()
