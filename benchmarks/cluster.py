"""What two one-core nodes of a Ray cluster gain over one: the SVM, and suggestions in bulk.

    python benchmarks/cluster.py RUN CORPUS [--documents 4000]

RUN is a sparse run, whose SVM is fitted again; the documents are the first of CORPUS' train split.
Clusters of one and of two nodes run on this machine, in turns. Seconds mean little where other
programs run, so CPU seconds are counted as well, of this process and of all processes of the
cluster: what cannot be shared is this process's, what is shared is divided by the nodes, and their
sum is the shortest time that so many idle cores would take.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import depl
from depl.core.cluster import RayExecutor
from depl.core.executor import Executor
from depl.model.bulk import Asked, identity, rank_chunks
from depl.model.classifier import Classifier
from depl.readers.document import Document
from depl.run.folder import Run
from depl.sparse.svm import OneVsAllSVM
from memory import cpu_seconds

NODE = {"num_cpus": 1, "object_store_memory": 1_000_000_000, "include_dashboard": False}
CHUNK = 250  # documents of a task


def main() -> None:
    """Measure both on clusters of one and two nodes; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=4_000)
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
    print("| | nodes | seconds | CPU s here | CPU s of the nodes | shortest time |")
    print("| --- | --- | --- | --- | --- | --- |")
    shortest: dict[tuple[str, int], float] = {}
    for nodes in (1, 2):
        for name, (wall, here, there) in on_cluster(nodes, work).items():
            shortest[name, nodes] = here + there / nodes
            figures = f"{wall:.1f} | {here:.1f} | {there:.1f} | {shortest[name, nodes]:.1f}"
            print(f"| {name} | {nodes} | {figures} |", flush=True)
    for name in work:
        print(f"{name}: {shortest[name, 1] / shortest[name, 2]:.2f} times as fast, by CPU seconds")


def on_cluster(
    nodes: int, work: dict[str, Callable[[Executor], object]]
) -> dict[str, tuple[float, float, float]]:
    """Seconds, and CPU seconds of this process and of the cluster's, for each kind of work."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    for _ in range(nodes - 1):
        cluster.add_node(**NODE)
    found = {}
    try:
        with RayExecutor(cluster.address) as executor:
            for name, do in work.items():
                do(executor)  # workers start, and load what they need
                wall, here, everywhere = time.monotonic(), time.process_time(), all_cpu()
                do(executor)
                here = time.process_time() - here
                there = all_cpu() - everywhere - here
                found[name] = time.monotonic() - wall, here, there
    finally:
        cluster.shutdown()
    return found


def all_cpu() -> float:
    """CPU seconds of this process and of all that it has started."""
    return cpu_seconds(os.getpid())


if __name__ == "__main__":
    main()
