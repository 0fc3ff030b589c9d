"""The service's metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class RunMetrics(NamedTuple):
    """The metrics of one run."""

    documents: Counter
    batches: Histogram
    batch_seconds: Histogram
    queue: Gauge
    labels: Gauge
    reloads: Counter

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Read the length of the queue from this function."""
        self.queue.set_function(lambda: float(length()))

    def batch_done(self, texts: int, seconds: float) -> None:
        """Count a batch."""
        self.documents.inc(texts)
        self.batches.observe(texts)
        self.batch_seconds.observe(seconds)


class Metrics:
    """The metrics of one service; two services in one process have separate ones."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "depl_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "depl_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._batches = Histogram(
            "depl_batch_texts", "Texts in a batch.", ("run",), buckets=_TEXTS, registry=registry
        )
        self._batch_seconds = Histogram(
            "depl_batch_seconds",
            "Time the model takes for a batch.",
            ("run",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._documents = Counter("depl_documents", "Texts labelled.", ("run",), registry=registry)
        self._queue = Gauge("depl_queue", "Texts and calls waiting.", ("run",), registry=registry)
        self._labels = Gauge("depl_labels", "Labels of the model.", ("run",), registry=registry)
        self._reloads = Counter(
            "depl_reloads", "Times the run was reloaded.", ("run",), registry=registry
        )
        ProcessCollector(registry=registry)

    def of_run(self, name: str) -> RunMetrics:
        """What is counted for one of the runs."""
        return RunMetrics(
            self._documents.labels(name),
            self._batches.labels(name),
            self._batch_seconds.labels(name),
            self._queue.labels(name),
            self._labels.labels(name),
            self._reloads.labels(name),
        )

    def request_done(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
