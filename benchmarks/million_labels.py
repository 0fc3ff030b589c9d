"""Memory at a million labels: training steps, label vectors and search.

    python benchmarks/million_labels.py [--labels 1000000] [--head] [--device cuda]
    python benchmarks/million_labels.py --search CORPUS [--labels 1000000] [--part 131072]

Names are made up of real words, documents of names; what is measured is memory, not quality. A
documents x labels matrix would be 80 GB here; nothing of that kind is ever held.

With --search, graphs are compared with exact search: time and memory, and the share of the exact
top 10 and top 100 that they find. Vectors of noise would all be equally far from each other. So the
names of CORPUS' labels are encoded, and each further vector is that of a name plus half of the
difference between two others, scaled to length 1; the queries are texts of the dev split.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

import depl
from depl.core.indicator import indicator
from depl.core.ranking import Ranking
from depl.neural.encoder import encode
from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder, load_encoder
from depl.neural.graphs import PART, Graphs
from depl.neural.index import LabelIndex
from depl.neural.retriever import unit_vectors
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import Tokens, cutting_tokenizer, load_tokenizer, tokenize_with
from depl.neural.training import Schedule, train
from memory import memory

DOCUMENTS = 20_000
PER_DOCUMENT = 5
STEPS = 20
BATCH = 256
QUERIES = 512


def main() -> None:
    """Measure, and print a line for every step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--head", action="store_true", help="with a classification head: DEPL+c")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--encoder", default=DEFAULT_ENCODER)
    parser.add_argument("--search", type=Path, metavar="CORPUS", help="compare graphs with exact")
    parser.add_argument("--part", type=int, default=PART, help="vectors of a graph")
    given = parser.parse_args()
    if given.search is not None:
        search(given.search, given.labels, given.part, find_encoder(given.encoder))
        return
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


def search(corpus: Path, n: int, part: int, folder: Path) -> None:
    """Compare graphs with exact search; print a table."""
    torch.set_num_threads(1)
    data = depl.read(corpus, splits=["dev"])
    encoder, texts = load_encoder(folder), data.dev.texts[:QUERIES]
    tokens = tokenize_with(cutting_tokenizer(folder, 128), texts, 128)
    queries = unit_vectors(encode(encoder, tokens, "document"))
    names = tokenize_with(cutting_tokenizer(folder, 32), list(data.labels.names), 32)
    vectors = combined(unit_vectors(encode(encoder, names, "label")), n)
    exact = LabelIndex.build(vectors)
    start = time.process_time()
    graphs = LabelIndex(vectors, Graphs.build(vectors, part))
    built = time.process_time() - start
    print(f"{n:,} vectors of {len(data.labels):,} names, {len(queries)} queries, one thread\n")
    print("| search | ms of a query | ms of one in a batch | recall@10 | recall@100 |")
    print("| --- | --- | --- | --- | --- |")
    wanted = None
    for name, index in (("exact", exact), (f"graphs of {part:,}", graphs)):
        alone = [cpu(index, queries[i : i + 1])[0] for i in range(20)]
        together, found = cpu(index, queries)
        wanted = found if wanted is None else wanted
        times = f"{1000 * np.median(alone):.1f} | {1000 * together / len(queries):.1f}"
        shares = " | ".join(f"{share(found, wanted, k):.4f}" for k in (10, 100))
        print(f"| {name} | {times} | {shares} |", flush=True)
    with TemporaryDirectory() as kept:
        graphs.save(Path(kept))
        sizes = [x.stat().st_size for x in Path(kept).glob("graph*")]
        before = memory(os.getpid())[0]
        loaded = LabelIndex.load(Path(kept))
        loaded.search(queries, 100)
        own = memory(os.getpid())[0] - before
    print(f"\nbuilt in {built:,.0f} CPU s; {sum(sizes) / 2**30:.2f} GiB in {len(sizes)} files")
    print(f"loaded, they take {own:.2f} GiB; vectors of exact search are mapped")
    tell("all of it")


def cpu(index: LabelIndex, queries: np.ndarray) -> tuple[float, np.ndarray]:
    """CPU seconds of a search for 100 labels each, and what it finds."""
    start = time.process_time()
    found = index.search(queries, 100).indices
    return time.process_time() - start, found


def share(found: np.ndarray, wanted: np.ndarray, k: int) -> float:
    """How much of the first k that are wanted is among the first k that were found."""
    both = zip(found[:, :k], wanted[:, :k], strict=True)
    return sum(np.isin(b, a).sum() for a, b in both) / wanted[:, :k].size


def combined(real: np.ndarray, n: int) -> np.ndarray:
    """So many vectors: the real ones first, then such as lie between them."""
    rng = np.random.default_rng(0)
    out = np.empty((n, real.shape[1]), np.float32)
    out[: len(real)] = real[:n]
    for first in range(len(real), n, 65_536):
        i, j, k = rng.integers(len(real), size=(3, min(65_536, n - first)))
        some = real[i] + 0.5 * (real[j] - real[k])
        some /= np.linalg.norm(some, axis=1, keepdims=True)
        out[first : first + len(some)] = some
    return out


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
