"""The service's metrics, for Prometheus."""

from __future__ import annotations

import os
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
from prometheus_client.multiprocess import MultiProcessCollector

_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client looks for it when it is imported
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

    def batch_done(self, texts: int, seconds: float) -> None:
        """Count a batch."""
        self.documents.inc(texts)
        self.batches.observe(texts)
        self.batch_seconds.observe(seconds)


class Metrics:
    """The metrics of one service; two services in one process have separate ones.

    Where several processes answer, each writes its own to the folder that they share, and whichever
    is asked adds up those of all. Memory and time of the process are left out there: they would be
    those of one.
    """

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
        self._queue = Gauge(
            "depl_queue",
            "Texts and calls waiting.",
            ("run",),
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._labels = Gauge(
            "depl_labels",
            "Labels of the model.",
            ("run",),
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._reloads = Counter(
            "depl_reloads", "Times the run was reloaded.", ("run",), registry=registry
        )
        if _SHARED in os.environ:
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        else:
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
