"""depl's SVM, one-vs-all and over a tree, against its peers: time, memory, quality, in one run.

    python benchmarks/linear.py CORPUS [--threads 2] [--only depl,pecos_ova]

CORPUS is a folder that `depl` reads, with a train and a dev split. Everything is made in
benchmarks/.work/<corpus>; the table is printed and kept there as results.json and results.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix, save_npz

import depl
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS, band_of
from depl.evaluation.scores import Report, evaluate
from peers import PeerResult, run_peer

HERE = Path(__file__).parent
FULL = ("depl", "depl_tree", "pecos_ova", "pecos_xrlinear", "omikuji_parabel", "omikuji_bonsai")
SAMPLE_SIZE = 100
# LinearSVC at its own default tolerance, and at the loosest that still gives these objectives.
SKLEARN_TOLERANCES = (1e-4, 1e-2)
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")

console = Console(highlight=False, width=160)


def prepare(corpus: Path, work: Path) -> tuple[depl.Corpus, depl.Corpus]:
    """Read the corpus and write what contestants get: matrices, or texts and labels."""
    data = depl.read(corpus, splits=["train", "dev"])
    features = depl.TfidfFeatures(title_weight=0.0)  # no peer knows of titles
    X_train = features.fit_transform(data.train.texts)
    matrices = {
        "X_train": X_train,
        "X_dev": features.transform(data.dev.texts),
        "Y_train": data.train.Y,
    }
    work.mkdir(parents=True, exist_ok=True)
    for name, matrix in matrices.items():
        save_npz(work / f"{name}.npz", csr_matrix(matrix), compressed=False)
    for split in ("train", "dev"):
        write_texts(work / f"{split}.jsonl", data[split])
    write_labels(work / "labels.jsonl", data.labels)
    console.print(
        f"{corpus.name}: {X_train.shape[0]:,} documents, {X_train.shape[1]:,} terms, "
        f"{X_train.nnz:,} non-zeros, {len(data.labels):,} labels"
    )
    return data.train, data.dev


def write_texts(path: Path, documents: depl.Corpus) -> None:
    """Documents with the positions of their labels, a line each."""
    Y = documents.Y
    with path.open("w", encoding="utf-8") as lines:
        for i, text in enumerate(documents.texts):
            labels = Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
            lines.write(json.dumps({"text": text, "labels": labels}) + "\n")


def write_labels(path: Path, labels: depl.LabelSet) -> None:
    """Names of labels and the positions of what is broader, a line each."""
    with path.open("w", encoding="utf-8") as lines:
        for label in labels:
            known = [labels.get(x) for x in label.broader]
            lines.write(
                json.dumps(
                    {
                        "id": label.id,
                        "name": label.name,
                        "alt_names": list(label.alt_names),
                        "broader": [x for x in known if x >= 0],
                    }
                )
                + "\n"
            )


def sample_labels(counts: np.ndarray) -> list[int]:
    """A hundred labels, a third from each band, evenly spread over its frequencies."""
    order = np.argsort(counts, kind="stable")
    bands = [order[band_of(counts)[order] == b] for b in range(1, len(BANDS))]
    shares = [SAMPLE_SIZE - 2 * (SAMPLE_SIZE // 3), SAMPLE_SIZE // 3, SAMPLE_SIZE // 3]
    picked = [
        band[np.linspace(0, len(band) - 1, min(n, len(band))).astype(int)]
        for band, n in zip(bands, shares, strict=True)
    ]
    return np.concatenate(picked).tolist()


def score(result: PeerResult, train: depl.Corpus, dev: depl.Corpus) -> Report:
    """A contestant's predictions under depl's metrics."""
    indices, scores = result.read_predictions()
    return evaluate(
        Ranking(indices, scores),
        dev,
        train_counts=train.label_counts,
        n_train=len(train),
        name=result.peer,
    )


def full_rows(
    names: list[str], work: Path, threads: int, train: depl.Corpus, dev: depl.Corpus
) -> list[dict[str, object]]:
    """Train and predict with every contestant on all labels."""
    rows = []
    for name in names:
        console.print(f"[dim]{name} …[/]")
        result = run_peer(name, work, threads=threads)
        report = score(result, train, dev)
        rows.append(
            {
                "name": name,
                "version": result.version,
                "train_seconds": result.train_seconds,
                "train_cpu_seconds": result.more["train_cpu_seconds"],
                "predict_seconds": result.predict_seconds,
                "train_peak_mb": result.train_peak_rss_mb,
                "model_mb": result.model_mb,
                **{metric: report.scores[metric] for metric in METRICS},
                "tail macro-F1@5": report.bands["1-9"]["macroF1@5_in_test"],
            }
        )
    return rows


def sample_rows(work: Path, threads: int, train: depl.Corpus) -> list[dict[str, object]]:
    """Solve a hundred labels of all bands with every binary solver, and compare objectives."""
    labels = work / "sample.json"
    labels.write_text(json.dumps(sample_labels(train.label_counts)))
    reference = run_peer("liblinear_sample", work, threads=threads, labels=labels)
    best = np.array(reference.more["objectives"])
    runs = [("depl", run_peer("depl_sample", work, threads=threads, labels=labels, C=1.0))]
    for tol in SKLEARN_TOLERANCES:
        result = run_peer("sklearn_sample", work, threads=threads, labels=labels, tol=tol)
        runs.append((f"LinearSVC tol={tol:g}", result))
    runs.append(("liblinear, tight", reference))
    rows = []
    for name, result in runs:
        excess = 100 * (np.array(result.more["objectives"]) / best - 1)
        rows.append(
            {
                "name": name,
                "train_seconds": result.train_seconds,
                "train_cpu_seconds": result.more["train_cpu_seconds"],
                "worst objective over liblinear, %": float(excess.max()),
            }
        )
    return rows


def as_markdown(rows: list[dict[str, object]]) -> str:
    """A table whose times are multiples of depl's."""
    base = next(row for row in rows if row["name"] == "depl")
    hidden = ("train_cpu_seconds", "version")
    keys = [key for key in rows[0] if key not in hidden]
    lines = ["| " + " | ".join(keys) + " |", "|" + " --- |" * len(keys)]
    for row in rows:
        cells = []
        for key in keys:
            value = row[key]
            if key.endswith("_seconds") and value:
                cells.append(f"{value:.1f} ({value / base[key]:.1f}x)")
            elif value is None:
                cells.append("–")
            else:
                cells.append(f"{value:.3g}" if "%" in key else _cell(value))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return str(value)


def show(title: str, rows: list[dict[str, object]]) -> None:
    """Print the markdown table as a real one."""
    header, _, *body = as_markdown(rows).splitlines()
    table = Table(*header.strip("| ").split(" | "), title=title, title_justify="left", box=None)
    for line in body:
        table.add_row(*line.strip("| ").split(" | "))
    console.print(table)


def main() -> None:
    """Run what was asked for and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--only", default=",".join(FULL), help="contestants, separated by commas; none if empty"
    )
    parser.add_argument("--no-sample", action="store_true", help="leave out the binary solvers")
    args = parser.parse_args()
    work = HERE / ".work" / args.corpus.resolve().name
    train, dev = prepare(args.corpus, work)
    names = [name for name in args.only.split(",") if name]
    tables = {}
    if names:
        tables["all labels"] = full_rows(names, work, args.threads, train, dev)
    if not args.no_sample:
        title = f"{SAMPLE_SIZE} labels of all bands"
        tables[title] = sample_rows(work, args.threads, train)
    for title, rows in tables.items():
        show(title, rows)
    kept = work / "results.json"
    tables = (json.loads(kept.read_text()) if kept.exists() else {}) | tables
    kept.write_text(json.dumps(tables, indent=2))
    text = "\n\n".join(f"{title}\n\n{as_markdown(rows)}" for title, rows in tables.items())
    (work / "results.md").write_text(text + "\n")
    console.print(f"[dim]Kept in {work}[/]")


if __name__ == "__main__":
    main()
