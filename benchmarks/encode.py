"""depl's encoder on a CPU against SentenceTransformer's: documents a second, in one run.

    python benchmarks/encode.py CORPUS [--documents 256] [--repeats 5] [--threads 2]

Both get the same texts, the same pretrained encoder and the same threads, and give vectors; cutting
into tokens counts for both. SentenceTransformer runs as it comes. They take turns, and the medians
are compared, so that what else the machine does hits both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sentence_transformers import SentenceTransformer

import depl
from depl.encoding import encode
from depl.pretrained import DEFAULT_ENCODER, find_encoder, load_encoder
from depl.tokens import tokenize

OURS, SMALL, THEIRS = "depl", "depl, int8", "SentenceTransformer"

console = Console(highlight=False)


def contestants(folder: Path) -> dict[str, Callable[[list[str]], np.ndarray]]:
    """Functions from texts to vectors."""
    other = SentenceTransformer(str(folder), device="cpu")

    def ours(int8: bool) -> Callable[[list[str]], np.ndarray]:
        encoder = load_encoder(folder, int8=int8)

        def run(texts: list[str]) -> np.ndarray:
            tokens = tokenize(texts, folder, other.max_seq_length)
            return encode(encoder, tokens, "document").numpy()

        return run

    return {OURS: ours(False), SMALL: ours(True), THEIRS: other.encode}


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length one: SentenceTransformer gives them so for this encoder."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main() -> None:
    """Print a table of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=256, help="so many, evenly spread")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = depl.read(args.corpus, splits=["dev"]).dev.texts
    texts = list(texts[:: max(1, len(texts) // args.documents)][: args.documents])
    functions = contestants(find_encoder(DEFAULT_ENCODER))
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    vectors = {}
    for function in functions.values():
        function(texts[:32])  # the first call is slower for both
    for _ in range(args.repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            vectors[name] = unit(function(texts))
            seconds[name].append(time.perf_counter() - start)
    title = f"{args.corpus.resolve().name}: {len(texts):,} documents, {args.threads} threads"
    table = Table("", "documents/s", "of all turns", "ratio", title=title, box=None)
    reference = float(np.median(seconds[THEIRS]))
    for name, times in seconds.items():
        speeds = len(texts) / np.array(times)
        table.add_row(
            name,
            f"{np.median(speeds):.1f}",
            f"{speeds.min():.1f} to {speeds.max():.1f}",
            f"{reference / np.median(times):.2f}",
        )
    console.print(table)
    difference = np.abs(vectors[OURS] - vectors[THEIRS]).max()
    console.print(f"Largest difference between the vectors of length one: {difference:.1e}")
    cosines = (vectors[SMALL] * vectors[THEIRS]).sum(axis=1)
    console.print(
        f"Cosines with int8: {cosines.min():.4f} at least, {cosines.mean():.4f} on average"
    )


if __name__ == "__main__":
    main()
