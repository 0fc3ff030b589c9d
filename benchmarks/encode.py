"""depl's encoder against SentenceTransformer's: documents a second, in one run.

    python benchmarks/encode.py CORPUS [--documents 256] [--repeats 5] [--threads 2]
    python benchmarks/encode.py CORPUS --device cuda --documents 6000 --threads 8

Both get the same texts, the same pretrained encoder and the same threads, and give vectors; cutting
into tokens counts for both. SentenceTransformer runs as it comes. They take turns, and the medians
are compared, so that what else the machine does hits both; on a machine that is busy, the ratio of
documents for each CPU second with one thread is the one to trust. On a GPU depl computes in bf16,
and one more row has depl's encoder alone, with the tokens ready.
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
from depl.neural.encoder import encode
from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder, load_encoder
from depl.neural.tokens import tokenize

OURS, SMALL, THEIRS = "depl", "depl, int8", "SentenceTransformer"
READY = "depl, tokens ready"

console = Console(highlight=False)


def contestants(
    folder: Path, device: str, texts: list[str], max_tokens: int
) -> dict[str, Callable[[list[str]], np.ndarray]]:
    """Functions from texts to vectors."""
    other = SentenceTransformer(str(folder), device=device)
    other.max_seq_length = max_tokens

    def ours(int8: bool, ready: bool = False) -> Callable[[list[str]], np.ndarray]:
        encoder = load_encoder(folder, int8=int8).to(device)
        known = tokenize(texts, folder, max_tokens) if ready else None

        def run(texts: list[str]) -> np.ndarray:
            tokens = known or tokenize(texts, folder, max_tokens)
            return encode(encoder, tokens, "document").cpu().numpy()

        return run

    own = {READY: ours(False, ready=True)} if device == "cuda" else {SMALL: ours(True)}
    return {OURS: ours(False), **own, THEIRS: other.encode}


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
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--encoder", default=DEFAULT_ENCODER)
    parser.add_argument("--max-tokens", type=int, default=256)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = depl.read(args.corpus, splits=["dev"]).dev.texts
    texts = list(texts[:: max(1, len(texts) // args.documents)][: args.documents])
    folder = find_encoder(args.encoder)
    functions = contestants(folder, args.device, texts, args.max_tokens)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    computed: dict[str, list[float]] = {name: [] for name in functions}
    vectors = {}
    for function in functions.values():
        function(texts[:32])  # the first call is slower for both
    for _ in range(args.repeats):
        for name, function in functions.items():
            start, cpu = time.perf_counter(), time.process_time()
            vectors[name] = unit(function(texts))
            seconds[name].append(time.perf_counter() - start)
            computed[name].append(time.process_time() - cpu)
    where = torch.cuda.get_device_name() if args.device == "cuda" else f"{args.threads} threads"
    title = f"{args.corpus.resolve().name}: {len(texts):,} documents, {where}"
    heads = ("documents/s", "of all turns", "ratio", "documents/CPU s", "ratio")
    table = Table("", *heads, title=title, box=None)
    reference, computing = (float(np.median(x[THEIRS])) for x in (seconds, computed))
    for name, times in seconds.items():
        speeds = len(texts) / np.array(times)
        table.add_row(
            name,
            f"{np.median(speeds):.1f}",
            f"{speeds.min():.1f} to {speeds.max():.1f}",
            f"{reference / np.median(times):.2f}",
            f"{len(texts) / np.median(computed[name]):.1f}",
            f"{computing / np.median(computed[name]):.2f}",
        )
    console.print(table)
    difference = np.abs(vectors[OURS] - vectors[THEIRS]).max()
    console.print(f"Largest difference between the vectors of length one: {difference:.1e}")
    for name in (OURS, SMALL):
        if name in vectors:
            cosines = (vectors[name] * vectors[THEIRS]).sum(axis=1)
            console.print(
                f"Cosines of {name} with {THEIRS}: {cosines.min():.4f} at least, "
                f"{cosines.mean():.4f} on average"
            )


if __name__ == "__main__":
    main()
