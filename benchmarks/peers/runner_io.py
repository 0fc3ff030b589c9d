"""What every runner shares: its command line, the data, the clock, and the files it leaves.

Runners start in the peers' own environments, so this module knows numpy and scipy and no more.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


@dataclass
class Stage:
    """Wall-clock and CPU seconds, and the peak resident memory in MiB, of one part of a run."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_mb: float = 0.0


def command_line(description: str) -> ArgumentParser:
    """The options that every runner takes."""
    parser = ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("work", type=Path, help="folder of X_train.npz, Y_train.npz, X_dev.npz")
    parser.add_argument("--peer", required=True, help="the name to report under")
    parser.add_argument("--out", type=Path, required=True, help="prefix of the .json and the .npz")
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def settings(args: Namespace) -> dict:
    """What a run was asked for, less its name and the places of its files."""
    given = vars(args).items()
    return {key: value for key, value in given if key != "peer" and not isinstance(value, Path)}


def load_matrix(work: Path, name: str) -> sp.csr_matrix:
    """One csr matrix of the work folder, in float32 and with sorted 32-bit indices."""
    matrix = sp.csr_matrix(sp.load_npz(work / f"{name}.npz"), dtype=np.float32)
    matrix.sort_indices()
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


class Text(NamedTuple):
    """A document, and the positions of its labels."""

    text: str
    labels: list[int]


def load_texts(work: Path, split: str) -> list[Text]:
    """The documents of a split, in the order of the matrices' rows."""
    with (work / f"{split}.jsonl").open(encoding="utf-8") as lines:
        return [Text(**json.loads(line)) for line in lines]


def best_of_dense(scores: np.ndarray, columns: np.ndarray, k: int) -> Iterator[tuple]:
    """The k highest scores of every row, as ``write_predictions`` takes them."""
    k = min(k, scores.shape[1])
    for row in scores:
        best = np.argpartition(-row, k - 1)[:k]
        yield columns[best], row[best]


def csr_rows(scores: sp.csr_matrix, columns: np.ndarray) -> Iterator[tuple]:
    """The labels and scores of every row, as ``write_predictions`` takes them."""
    for start, stop in zip(scores.indptr, scores.indptr[1:], strict=False):
        yield columns[scores.indices[start:stop]], scores.data[start:stop]


def seen_labels(Y: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray]:
    """Y without the labels that no document carries, and the original column of each one kept.

    A model of a label without examples costs time and says nothing: no peer is charged for it.
    """
    columns = np.flatnonzero(Y.getnnz(axis=0)).astype(np.int32)
    return Y[:, columns], columns


def hardware() -> str:
    """The GPU that PyTorch computes on, else the kind of processor; and the number of cores."""
    torch = sys.modules.get("torch")
    there = torch is not None and torch.cuda.is_available()
    name = torch.cuda.get_device_name(0) if torch and there else platform.machine()
    return f"{name}, {os.cpu_count()} cores"


@contextmanager
def measured() -> Iterator[Stage]:
    """Measure the block; the stage is filled in when it ends."""
    stage = Stage()
    # Linux starts its count of the peak (VmHWM) afresh when asked like this. Where that cannot be,
    # the peak is that of the process so far: too high rather than too low.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    start, cpu = time.perf_counter(), time.process_time()
    yield stage
    stage.seconds = time.perf_counter() - start
    stage.cpu_seconds = time.process_time() - cpu
    stage.peak_rss_mb = _peak_rss_mb()


def measured_command(command: list[str], **how: object) -> Stage:
    """Run a program and measure it; what it prints is not kept. Fails where it fails."""
    start = time.perf_counter()
    child = subprocess.Popen(command, **how)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"`{' '.join(command)}` left with code {child.returncode}.")
    return Stage(
        time.perf_counter() - start,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024),
    )


def _peak_rss_mb() -> float:
    # Not ru_maxrss where there is a choice: on Linux a child inherits the peak of its parent.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def folder_mb(folder: Path) -> float:
    """Size of all files below a folder, in MiB."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1024**2


def write_predictions(out: Path, rows: Iterator[tuple], n: int, k: int) -> None:
    """Write the k best labels of n documents; each row is (label positions, scores)."""
    indices = np.full((n, k), -1, np.int32)
    scores = np.full((n, k), -np.inf, np.float32)
    for i, (labels, values) in enumerate(rows):
        labels, values = np.asarray(labels, np.int32), np.asarray(values, np.float32)
        best = np.lexsort((labels, -values))[:k]  # higher first, ties by label position
        indices[i, : len(best)] = labels[best]
        scores[i, : len(best)] = values[best]
    np.savez(out.with_suffix(".npz"), indices=indices, scores=scores)


def write_report(
    out: Path,
    *,
    peer: str,
    version: str,
    settings: dict,
    stages: dict[str, Stage],
    model_mb: float | None = None,
    **more: object,
) -> None:
    """Write what was measured, as the JSON that ``run_peer`` reads.

    ``stages`` has "train", mostly "predict", and "load" where the peer reads its own files.
    """
    report = {
        "peer": peer,
        "version": version,
        "settings": settings,
        "hardware": hardware(),
        "predict_seconds": None,
        "peak_rss_mb": max(stage.peak_rss_mb for stage in stages.values()),
        "model_mb": model_mb,
    }
    for name, stage in stages.items():
        report |= {f"{name}_{key}": value for key, value in asdict(stage).items()}
    out.with_suffix(".json").write_text(json.dumps(report | more, indent=2), encoding="utf-8")
