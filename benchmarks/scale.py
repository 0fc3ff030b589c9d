"""How time and memory of every stage grow with documents and labels, and where that leads.

    python benchmarks/scale.py CORPUS [--documents 1024,4096] [--labels 1024,4096] [--peers]
    python benchmarks/scale.py CORPUS --report

For every cell of the grid a corpus is made from CORPUS (`resampling.py`) and fitted with the sparse
recipe in a process of its own, which also trains the label tree and suggests labels. Kept are CPU
seconds, which a busy machine changes less than others, and peak memory. Where the environments of
omikuji and PECOS exist, these train on the same matrices; with --peers they are made. A peer that
takes longer than --patience in a cell is left out there. Cells that are there are not made again:
the command can be repeated, with a larger grid as well.

The report fits seconds = c x documents^a x labels^b to each stage, draws the curves, and projects
them to 10 million documents and a million labels. There `linear.solver=auto` takes the tree, both
for *linear* and, once and without a tenth of the documents, for *held_out*; *characters* is left
out; the fusion ranks a tenth of the documents and learns from 20,000 of them. It is kept as
scale.json, scale.md and scale.svg.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.sparse import csr_matrix, save_npz

import depl
from depl.evaluation.figures import COLOURS, DASHES, LINE, svg
from depl.pipeline.fit import Event, fit
from depl.run.config import Config
from depl.sparse.label_tree import LabelTreeSVM
from peers import PeerError, environment, run_peer
from peers.environments import FOLDER
from peers.running import PEERS
from resampling import Resampler

WORK = Path(__file__).parent / ".work" / "scale"
TITLES = {
    "omikuji_parabel": "omikuji, Parabel, 3 trees",
    "pecos_xrlinear": "PECOS, XR-Linear",
    "pecos_ova": "PECOS, one-vs-all",
}
SUGGESTED = 512  # documents
SMALLEST = 0.2  # seconds: below this a cell says more of the start than of the work

TREE, SUGGEST = "linear, tree", f"suggesting, {SUGGESTED} documents"
RANK = f"ranking by the tree, {SUGGESTED} documents"
HELD_OUT, FUSED = 0.1, 20_000  # the share that is held out; how many of them the fusion learns from

GOAL = 10_000_000, 1_000_000  # documents, labels
MACHINES = (1, 8, 64)
CORES = 2  # of a machine, as here
NETWORK = 1.25e9  # bytes a second into a machine: 10 Gbit
STORE = 2e9  # bytes a second into an object store
PER_TERM = 8  # bytes of a number in X or in the weights


def cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    found = (resource.getrusage(x) for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in found)


def peak_gib() -> float:
    """The largest resident memory of this process so far.

    Not from getrusage, where a process begins with the memory of the one that started it.
    """
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) / 2**20


def measure_cell(corpus: Path, out: Path, patience: float) -> None:
    """Fit the corpus of one cell and keep what it took."""
    warm_up(depl.read(corpus, splits=["dev"]).dev)
    before, start = peak_gib(), cpu_seconds()
    data = depl.read(corpus)
    train, asked = data.train, data.dev
    stages = {"reading": {"seconds": cpu_seconds() - start, "peak": peak_gib()}}
    begun: dict[str, float] = {}

    def observe(event: Event) -> None:
        if event.kind == "started":
            begun[event.stage] = cpu_seconds()
        elif event.kind == "done":
            took = cpu_seconds() - begun[event.stage]
            stages[event.stage] = {"seconds": took, "peak": peak_gib()}

    with TemporaryDirectory() as folder:
        run = fit(train, Path(folder) / "run", Config.load("sparse"), observe=observe)
        X = run.train_vectors()
        start = cpu_seconds()
        tree = LabelTreeSVM().fit(X, train.Y)
        stages[TREE] = {"seconds": cpu_seconds() - start, "peak": peak_gib()}
        model = depl.Classifier.load(run.path)
        X_asked = model.features.transform(asked.texts)
        start = cpu_seconds()
        tree.rank(X_asked, 100)
        stages[RANK] = {"seconds": cpu_seconds() - start, "peak": peak_gib()}
        start = cpu_seconds()
        model.predict(asked.texts, 5)
        stages[SUGGEST] = {"seconds": cpu_seconds() - start, "peak": peak_gib()}
        cell = {
            "documents": len(train),
            "labels": len(train.labels),
            "stages": stages,
            "before": before,
            "text_bytes": sum(len(x.encode()) for x in train.texts),
            "nonzeros": int(X.nnz),
            "terms": int(X.shape[1]),
            "weights": int(run.svm().weights_.nnz),
            "tree_weights": int(tree.weights_.nnz + tree.node_weights_.nnz),
            "peers": peer_seconds(Path(folder), X, train, X_asked, patience),
        }
    out.write_text(json.dumps(cell, indent=1))


def warm_up(train: depl.Corpus) -> None:
    """Let everything be compiled before the clock runs."""
    few = train.subset(range(min(200, len(train))))
    with TemporaryDirectory() as folder:
        run = fit(few, Path(folder) / "run", Config.load("sparse"))
        X = run.train_vectors()
        LabelTreeSVM().fit(X, few.Y).rank(X[:10], 100)
        depl.Classifier.load(run.path).predict(few.texts[:10], 5)


def peer_seconds(folder: Path, X, train: depl.Corpus, X_dev, patience: float) -> dict[str, float]:
    """CPU seconds of training of those peers whose environment exists."""
    for name, matrix in (("X_train", X), ("Y_train", train.Y), ("X_dev", X_dev)):
        save_npz(folder / f"{name}.npz", csr_matrix(matrix), compressed=False)
    found = {}
    for name in TITLES:
        if not (FOLDER / PEERS[name].environment / "complete.json").exists():
            continue
        try:
            result = run_peer(name, folder, timeout=patience)
            found[TITLES[name]] = result.more["train_cpu_seconds"]
        except PeerError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return found


def exponents(cells: list[dict], values: list[float]) -> tuple[float, float, float]:
    """The c, a and b of c x documents^a x labels^b, by least squares of logarithms."""
    rows = [i for i, value in enumerate(values) if value >= SMALLEST]
    if len(rows) < 4:
        return np.nan, np.nan, np.nan
    sizes = [[1.0, np.log(cells[i]["documents"]), np.log(cells[i]["labels"])] for i in rows]
    found, *_ = np.linalg.lstsq(np.array(sizes), np.log([values[i] for i in rows]), rcond=None)
    return float(np.exp(found[0])), float(found[1]), float(found[2])


def linear_in(cells: list[dict], values: list[float], *keys: str) -> np.ndarray:
    """Factors of some quantities, and a constant, none below 0."""
    from scipy.optimize import nnls

    sizes = np.array([[1.0, *(cell[key] for key in keys)] for cell in cells])
    scale = sizes.max(axis=0)
    return nnls(sizes / scale, np.array(values))[0] / scale


def report(cells: list[dict], out: Path) -> None:
    """Exponents, projections and the picture."""
    stages = [*cells[0]["stages"]]
    fits = {
        name: exponents(cells, [cell["stages"][name]["seconds"] for cell in cells])
        for name in stages
    }
    for name in (peers := sorted({name for cell in cells for name in cell["peers"]})):
        there = [cell for cell in cells if name in cell["peers"]]
        fits[name] = exponents(there, [cell["peers"][name] for cell in there])
    largest = cells[-1]
    rows = [
        f"| stage | CPU s at {largest['documents']:,} x {largest['labels']:,} | power of documents "
        f"| power of labels | peak GiB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (_, a, b) in fits.items():
        kept = largest["stages"].get(name)
        peak = f"{kept['peak']:.2f}" if kept else ""
        powers = ["" if np.isnan(x) else f"{x:.2f}" for x in (a, b)]
        seconds = told(seconds_of(largest, name))
        rows.append(f"| {name} | {seconds} | {' | '.join(powers)} | {peak} |")
    text = ["\n".join(rows), solvers(cells, peers), projection(cells, fits), memory(cells)]
    (out / "scale.md").write_text("\n\n".join(text) + "\n")
    kept = {"cells": cells, "fits": fits, "goal": GOAL}
    (out / "scale.json").write_text(json.dumps(kept, indent=1))
    (out / "scale.svg").write_text(svg(lambda figure: draw(figure, cells, fits), "wide"))
    print("\n\n".join(text))


def seconds_of(cell: dict, name: str) -> float | None:
    """CPU seconds of a stage, or of a peer; None where it was left out."""
    stage = cell["stages"].get(name)
    return stage["seconds"] if stage else cell["peers"].get(name)


def told(seconds: float | None) -> str:
    """As in a table."""
    return "" if seconds is None else f"{seconds:.1f}"


def solvers(cells: list[dict], peers: list[str]) -> str:
    """CPU seconds of training of ours and of the peers, in cells with as many labels."""
    shown = [x for x in cells if x["documents"] == x["labels"]]
    sizes = " | ".join(f"{x['documents']:,} x {x['labels']:,}" for x in shown)
    rows = [f"| CPU s of training | {sizes} |", "| --- |" + " --- |" * len(shown)]
    ours = {"depl, one-vs-all": "linear", "depl, tree": TREE}
    for title, name in (ours | {x: x for x in peers}).items():
        rows.append(f"| {title} | {' | '.join(told(seconds_of(x, name)) for x in shown)} |")
    return "\n".join(rows)


def projection(cells: list[dict], fits: dict[str, tuple[float, float, float]]) -> str:
    """Hours at the goal on several machines: what is shared is divided, the rest is not."""
    documents, labels = GOAL
    nonzeros = linear_in(cells, [cell["nonzeros"] for cell in cells], "documents")[1] * documents

    def seconds(stage: str, documents: float = documents) -> float:
        c, a, b = fits[stage]
        return float(c * documents**a * labels**b)

    # A beam follows as many nodes of every level; a larger tree has a few levels more.
    of_document = cells[-1]["stages"][RANK]["seconds"] / SUGGESTED
    # By row: seconds of a core that machines share, and of one of them alone.
    rows = {
        "features": (seconds("features"), 0.0),
        "linear (auto: the tree)": (seconds(TREE), 0.0),
        "held_out (auto: the tree)": (seconds(TREE, (1 - HELD_OUT) * documents), 0.0),
        "descriptions": (0.0, seconds("descriptions")),
        "fusion": (of_document * HELD_OUT * documents, seconds("fusion", FUSED / HELD_OUT)),
    }
    rows["all"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    of_one = seconds(SUGGEST) / SUGGESTED + of_document
    rows[f"suggesting, {documents:,} documents"] = of_one * documents, 0.0
    rows["one-vs-all in place of the tree, *linear* alone"] = seconds("linear"), 0.0
    last = cells[-1]
    times = documents / last["documents"] * labels / last["labels"]
    name = f"the same, from {last['documents']:,} x {last['labels']:,} in proportion"
    rows[name] = last["stages"]["linear"]["seconds"] * times, 0.0
    sent = PER_TERM * nonzeros * (1 / STORE + 1 / NETWORK)
    table = [
        "| hours | " + " | ".join(f"{n} machine{'s' * (n > 1)}" for n in MACHINES) + " |",
        "| --- |" + " --- |" * len(MACHINES),
    ]
    for name, (shared, alone) in rows.items():
        hours = []
        for n in MACHINES:
            copied = sent if n > 1 and shared else 0.0
            hours.append(f"{(shared / CORES / n + alone + copied) / 3600:,.1f}")
        table.append(f"| {name} | {' | '.join(hours)} |")
    return "\n".join(table)


def memory(cells: list[dict]) -> str:
    """GiB at the goal of what is largest; peaks of small cells say little of a large one."""
    documents, labels = GOAL
    texts = linear_in(cells, [cell["text_bytes"] for cell in cells], "documents")[1] * documents
    nonzeros = linear_in(cells, [cell["nonzeros"] for cell in cells], "documents")[1] * documents
    weights = cells[-1]["weights"] / cells[-1]["labels"] * labels
    rows = [
        "| held in memory | GiB |",
        "| --- | --- |",
        f"| texts | {texts / 2**30:,.0f} |",
        f"| X | {PER_TERM * nonzeros / 2**30:,.0f} |",
        f"| weights, one-vs-all | {PER_TERM * weights / 2**30:,.0f} |",
    ]
    return "\n".join(rows)


def draw(figure, cells: list[dict], fits: dict) -> None:
    """CPU seconds by documents, at most labels, and by labels, at most documents."""
    left, right = figure.subplots(1, 2, sharey=True)
    most = {key: max(cell[key] for cell in cells) for key in ("documents", "labels")}
    names = [name for name, found in fits.items() if not np.isnan(found[0])]
    for axes, key, other in ((left, "documents", "labels"), (right, "labels", "documents")):
        there = sorted((x for x in cells if x[other] == most[other]), key=lambda x: x[key])
        for i, name in enumerate(names):
            found = ((x[key], seconds_of(x, name)) for x in there)
            points = [x for x in found if (x[1] or 0.0) >= SMALLEST / 10]  # others were left out
            axes.plot(
                *(zip(*points, strict=True) if points else ([], [])),
                color=COLOURS[i % len(COLOURS)],
                dashes=DASHES[(i // len(COLOURS)) % len(DASHES)],
                marker="o",
                ms=3,
                label=name,
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks([x[key] for x in there], [f"{x[key]:,}" for x in there])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.1)
        axes.set_xlabel(f"{key}, with {most[other]:,} {other}")
        axes.grid(color=LINE, linewidth=0.6)
    left.set_title("CPU seconds", loc="left", fontsize=10.5)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=3, fontsize=8)


def main() -> None:
    """Measure the cells that are missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", default="512,1024,2048,4096")
    parser.add_argument("--labels", default="512,1024,2048,4096")
    parser.add_argument("--seconds", type=float, help="begin no further cell after so many")
    parser.add_argument("--peers", action="store_true", help="make the environments of all peers")
    parser.add_argument("--patience", type=float, default=1200, help="seconds for a peer in a cell")
    parser.add_argument("--report", action="store_true", help="measure nothing more")
    parser.add_argument("--cell", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cell:
        measure_cell(args.corpus, args.cell, args.patience)
        return
    for name in TITLES if args.peers else ():
        environment(PEERS[name].environment)
    work = WORK / args.corpus.resolve().name
    work.mkdir(parents=True, exist_ok=True)
    documents, labels = (
        [int(x) for x in values.split(",")] for values in (args.documents, args.labels)
    )
    start, source = time.monotonic(), None
    for d, n in sorted(product(documents, labels)):
        late = args.seconds is not None and time.monotonic() - start > args.seconds
        if args.report or late or (work / f"{d}x{n}.json").exists():
            continue
        print(f"{d:,} documents, {n:,} labels ...", file=sys.stderr)
        source = source or depl.read(args.corpus, splits=["train"]).train
        with TemporaryDirectory() as made:
            corpus = Path(made) / f"{d}x{n}"
            Resampler(source, n).write(corpus, train=d, dev=SUGGESTED)
            command = [sys.executable, __file__, str(corpus), "--patience", str(args.patience)]
            subprocess.run([*command, "--cell", str(work / f"{d}x{n}.json")], check=True)
    cells = [json.loads(path.read_text()) for path in work.glob("*x*.json")]
    if not cells:
        sys.exit("There is no cell yet.")
    report(sorted(cells, key=lambda x: (x["documents"], x["labels"])), work)


if __name__ == "__main__":
    main()
