"""Memory at a million labels: training steps, label vectors and search.

    python benchmarks/million_labels.py [--labels 1000000] [--head] [--device cuda]

Names are made up of real words, documents of names; what is measured is memory, not quality. A
documents x labels matrix would be 80 GB here; nothing of that kind is ever held.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch

from depl.core.indicator import indicator
from depl.core.ranking import Ranking
from depl.neural.encoder import encode
from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder, load_encoder
from depl.neural.index import LabelIndex
from depl.neural.retriever import unit_vectors
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import Tokens, load_tokenizer
from depl.neural.training import Schedule, train

DOCUMENTS = 20_000
PER_DOCUMENT = 5
STEPS = 20
BATCH = 256


def main() -> None:
    """Measure, and print a line for every step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--head", action="store_true", help="with a classification head: DEPL+c")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--encoder", default=DEFAULT_ENCODER)
    given = parser.parse_args()
    device = torch.device(given.device)
    folder = find_encoder(given.encoder)
    rng = np.random.default_rng(0)

    names = made_up_names(given.labels, folder, rng)
    carried = rng.integers(given.labels, size=(DOCUMENTS, PER_DOCUMENT))
    documents = Tokens.from_rows([names.take(row).ids[:256].tolist() for row in carried])
    Y = indicator([sorted(set(row)) for row in carried.tolist()], given.labels)
    hard = Ranking(
        rng.integers(given.labels, size=(DOCUMENTS, 20)).astype(np.int32),
        np.zeros((DOCUMENTS, 20), np.float32),
    )
    tell(f"{given.labels:,} labels, {DOCUMENTS:,} documents")

    encoder = load_encoder(folder, n_labels=given.labels if given.head else 0).to(device)
    rows = np.arange(STEPS * BATCH)
    start = time.perf_counter()
    train(
        encoder,
        documents.take(rows),
        Y[rows],
        objective="joint" if given.head else "dual",
        schedule=Schedule(epochs=1, batch_size=BATCH),
        labels=names,
        sampler=LabelSampler(Y, hard, n_hard=10, size=5_000),
    )
    seconds = (time.perf_counter() - start) / STEPS
    tell(f"{STEPS} training steps, {1000 * seconds:.0f} ms each")

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    vectors = unit_vectors(encode(encoder, names, "label"))
    tell(f"label vectors, {given.labels / (time.perf_counter() - start):,.0f} labels/s")
    queries = unit_vectors(encode(encoder, documents.take(np.arange(512)), "document"))
    start = time.perf_counter()
    LabelIndex.build(vectors).search(queries, 10)
    tell(f"exact search, {len(queries) / (time.perf_counter() - start):,.0f} documents/s")


def made_up_names(n: int, folder, rng: np.random.Generator) -> Tokens:
    """Two to six whole words each, with the special tokens around them."""
    vocabulary = load_tokenizer(folder).get_vocab()
    words = np.array([i for word, i in vocabulary.items() if word.isalpha() and len(word) > 3])
    first, last = vocabulary["[CLS]"], vocabulary["[SEP]"]
    lengths = rng.integers(2, 7, n) + 2
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ids = rng.choice(words, indptr[-1]).astype(np.int32)
    ids[indptr[:-1]], ids[indptr[1:] - 1] = first, last
    return Tokens(ids, indptr)


def tell(what: str) -> None:
    """What was done, and the most memory that was ever held."""
    ram = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    gpu = torch.cuda.max_memory_allocated() / 1024**3 if torch.cuda.is_available() else 0.0
    print(f"{what:<52} peak RAM {ram:5.2f} GiB   peak GPU {gpu:5.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
