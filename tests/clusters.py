"""Ray clusters on this machine, and an executor with which workers or nodes die meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from depl.core.cluster import RayExecutor
from depl.core.corpus import Corpus
from depl.core.ranking import Ranking
from depl.model.bulk import Asked, identity, rank_chunks
from depl.model.classifier import Classifier
from depl.pipeline.fit import Event
from depl.readers.document import Document
from depl.run import manifest

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}

# A head notices within a second that a node is gone; by default after a quarter of a minute.
HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
}

Moment = tuple[str, str]  # a stage, and the name of the function that its workers call


@contextmanager
def one_node() -> Iterator[Any]:
    """A cluster of its head alone, with one core."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"_system_config": HEALTH})
    try:
        yield cluster
    finally:
        cluster.shutdown()


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes with a core each: its head, and one that may be killed."""
    with one_node() as cluster:
        cluster.add_node(**NODE)
        yield cluster


def files(run: Path) -> dict[str, Any]:
    """The hash of every file of a run, by stage."""
    return {name: stage["files"] for name, stage in manifest.read(run)["stages"].items()}


class Disturbed:
    """An executor with which, at some moments, the first task of a worker kills it, or its node.

    Parameters
    ----------
    executor : RayExecutor
        What does the tasks.
    moments : set of Moment
        When something is killed, once at each.
    marks : Path
        An empty folder; gets a file for each moment at which something was killed.
    cluster : Cluster or None
        The second node of it is killed, and there is another when the next stage begins; None:
        only a worker is killed.
    """

    def __init__(
        self, executor: RayExecutor, moments: set[Moment], marks: Path, cluster: Any = None
    ) -> None:
        self.executor = executor
        self.moments = moments
        self.marks = marks
        self.cluster = cluster
        self.stage = ""
        self.shared: set[Moment] = set()  # all at which there were two tasks or more

    @property
    def workers(self) -> int:
        return self.executor.workers

    @property
    def killed(self) -> set[Moment]:
        """When something was killed."""
        found = (mark.name.split(".") for mark in self.marks.iterdir())
        return {(stage, name) for stage, name in found}

    def observe(self, event: Event) -> None:
        """Learn from a fit which stage is being made; it begins with all nodes."""
        self.stage = event.stage
        if self.cluster is not None and event.kind == "started":
            (node,) = self.cluster.worker_nodes
            if node.dead_processes():
                self.cluster.remove_node(node, allow_graceful=False)
                self.cluster.add_node(**NODE)

    def map(
        self, function: Callable[..., Any], payload: Any, tasks: Iterable[Any], **options: Any
    ) -> Iterator[Any]:
        tasks, moment = iter(tasks), (self.stage, function.__name__)
        first = list(islice(tasks, 2))  # one task may never be where it is to be killed
        if len(first) == 2:
            self.shared.add(moment)
            if moment in self.moments - self.killed:
                function = killing(function, str(self.marks / ".".join(moment)), self.victim())
        return self.executor.map(function, payload, chain(first, tasks), **options)

    def together(self, *_: object, **__: object) -> bool:
        """Training is not what is disturbed here: it is done by this process."""
        return False

    def refuse_unfit(self, *_: object, **__: object) -> None:
        """All nodes are as this machine is."""

    def victim(self) -> str | None:
        """The node to be killed; None: no node."""
        if self.cluster is None:
            return None
        (node,) = self.cluster.worker_nodes
        return node.node_id


def assert_suggests_the_same(run: Path, corpus: Corpus, disturbed: Disturbed) -> None:
    """With it, a run suggests what it suggests here, though something is killed meanwhile."""
    model = Classifier.load(run)
    asked = Asked(run, identity(run, model), 3)
    documents = [Document(i, t) for i, t in zip(corpus.ids, corpus.texts, strict=True)]
    some = [documents[i : i + 2] for i in range(0, len(documents), 2)]
    disturbed.observe(Event("predict", "started"))
    found = list(rank_chunks(model, asked, some, disturbed))
    assert disturbed.killed == disturbed.moments
    assert [chunk for chunk, _ in found] == some
    whole = Ranking.concatenate([ranking for _, ranking in found])
    expected = model.predict(corpus.texts, 3)
    np.testing.assert_array_equal(whole.indices, expected.indices)
    np.testing.assert_array_equal(whole.scores, expected.scores)


def killing(function: Callable[..., Any], mark: str, node: str | None) -> Callable[..., Any]:
    """The function, which before its first task kills the worker, or the node if it is there."""

    # A function of a function travels by value: the workers need not find this file.
    def call(payload: object, task: object) -> object:
        import os
        import signal
        import time

        import ray

        for _ in range(2_000):  # wait until a task is where it is to be killed
            if os.path.exists(mark):
                break
            if node in (None, ray.get_runtime_context().get_node_id()):
                os.close(os.open(mark, os.O_CREAT))
                if node is not None:
                    os.kill(os.getppid(), signal.SIGKILL)  # the raylet: with it goes the node
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
        return function(payload, task)

    return call
