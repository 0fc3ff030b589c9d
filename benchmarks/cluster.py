"""What two one-core nodes of a Ray cluster gain over one: the SVM, and suggestions in bulk.

    python benchmarks/cluster.py RUN CORPUS [--documents 4000] [--ray-data]

RUN is a sparse run, whose SVM is fitted again; the documents are the first of CORPUS' train split.
Clusters of one and of two nodes run on this machine, in turns. Seconds mean little where other
programs run, so CPU seconds are counted as well, of this process and of all processes of the
cluster: what cannot be shared is this process's, what is shared is divided by the nodes, and their
sum is the shortest time that so many idle cores would take.

With --ray-data, Ray Data suggests labels, too, for the same documents in the same chunks; that they
come in the same order is checked. What an import takes is told as well. GiB are the most that all
processes together had of their own, the object stores included.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa

import depl
from depl.core.cluster import RayExecutor
from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.model.bulk import Asked, _rank_there, identity, rank_chunks
from depl.model.classifier import Classifier
from depl.readers.document import Document
from depl.run.folder import Run
from depl.sparse.svm import OneVsAllSVM
from memory import cpu_seconds, memory

NODE = {"num_cpus": 1, "object_store_memory": 1_000_000_000, "include_dashboard": False}
CHUNK = 250  # documents of a task
RAY_DATA = "suggestions by Ray Data"
IMPORT = """
import os, {module}
from memory import memory
print(f"import {module}: {{sum(os.times()[:2]):.2f}} CPU s, {{memory(os.getpid())[0]:.2f}} GiB")
"""


def main() -> None:
    """Measure both on clusters of one and two nodes; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=4_000)
    parser.add_argument("--ray-data", action="store_true", help="compare with Ray Data")
    args = parser.parse_args()
    texts = depl.read(args.corpus, splits=["train"]).train.texts[: args.documents]
    documents = [Document(str(i), text) for i, text in enumerate(texts)]
    chunks = [documents[i : i + CHUNK] for i in range(0, len(documents), CHUNK)]
    folder = args.run.resolve()
    run, model = Run.open(folder), Classifier.load(folder)
    X, Y, asked = run.train_vectors(), run.Y, Asked(folder, identity(folder, model), 5)
    work: dict[str, Callable[[Executor], object]] = {
        "SVM": lambda executor: OneVsAllSVM().fit(X, Y, executor),
        "suggestions": lambda executor: list(rank_chunks(model, asked, chunks, executor)),
    }
    if args.ray_data:
        expected = [ranking for _, ranking in rank_chunks(model, asked, chunks)]
        work = {"suggestions": work["suggestions"]}
        work[RAY_DATA] = lambda _: compare(expected, by_ray_data(asked, chunks))
        for module in ("ray", "ray.data"):
            command = [sys.executable, "-c", IMPORT.format(module=module)]
            subprocess.run(command, cwd=Path(__file__).parent, check=True)
    print("| | nodes | seconds | CPU s here | CPU s of the nodes | shortest time | GiB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    shortest: dict[tuple[str, int], float] = {}
    for nodes in (1, 2):
        for name, (wall, here, there, most) in on_cluster(nodes, work).items():
            shortest[name, nodes] = here + there / nodes
            figures = f"{wall:.1f} | {here:.1f} | {there:.1f} | {shortest[name, nodes]:.1f}"
            print(f"| {name} | {nodes} | {figures} | {most:.2f} |", flush=True)
    for name in work:
        print(f"{name}: {shortest[name, 1] / shortest[name, 2]:.2f} times as fast, by CPU seconds")


def on_cluster(
    nodes: int, work: dict[str, Callable[[Executor], object]]
) -> dict[str, tuple[float, float, float, float]]:
    """For each kind of work: seconds, CPU seconds of this process and of the cluster's, GiB."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    for _ in range(nodes - 1):
        cluster.add_node(**NODE)
    found = {}
    try:
        with RayExecutor(cluster.address) as executor:
            for name, do in work.items():
                do(executor)  # workers start, and load what they need
                with most_memory() as most:
                    wall, here, everywhere = time.monotonic(), time.process_time(), all_cpu()
                    do(executor)
                    here = time.process_time() - here
                    there = all_cpu() - everywhere - here
                    wall = time.monotonic() - wall
                found[name] = wall, here, there, most[0]
    finally:
        cluster.shutdown()
    return found


def by_ray_data(asked: Asked, chunks: Sequence[Sequence[Document]]) -> Iterator[Ranking]:
    """The suggestions for each chunk, which is a block of Ray Data's."""
    import ray

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    tables = [pa.table({"text": [document.text for document in chunk]}) for chunk in chunks]
    ranked = ray.data.from_arrow(tables).map_batches(
        partial(rank_block, asked), batch_size=None, batch_format="pyarrow", num_cpus=1
    )
    for block in ranked.iter_batches(batch_size=None, batch_format="numpy"):
        yield Ranking(block["indices"], block["scores"])


def rank_block(asked: Asked, block: pa.Table) -> dict[str, np.ndarray]:
    """What a worker of Ray Data does, which keeps the model between its tasks as ours do."""
    ranking = _rank_there(asked, block["text"].to_pylist())
    return {"indices": ranking.indices, "scores": ranking.scores}


def compare(expected: Sequence[Ranking], found: Iterator[Ranking]) -> None:
    """See that the same comes in the same order."""
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.scores, other.scores)


@contextmanager
def most_memory() -> Iterator[list[float]]:
    """A list with the most GiB that this process and all that it has started had meanwhile."""
    most, done = [0.0], Event()

    def look() -> None:
        while not done.wait(0.2):
            most[0] = max(most[0], memory(os.getpid())[0])

    looking = Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        done.set()
        looking.join()


def all_cpu() -> float:
    """CPU seconds of this process and of all that it has started."""
    return cpu_seconds(os.getpid())


if __name__ == "__main__":
    main()
