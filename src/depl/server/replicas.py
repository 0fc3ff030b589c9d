"""``depl serve --ray``: replicas of the service on the machines of a Ray cluster.

Every replica is a process with the whole service in it, as those of ``--workers`` are. Ray Serve
listens on every machine that has one, gives each request to a replica, and replaces one that dies.
What changes is in the run folder, on storage that all machines have, and each replica looks there
before it answers. What remains for this process: start, let all reload, stop.
"""

from __future__ import annotations

import logging
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

from depl.core.cluster import RayExecutor, import_ray
from depl.core.errors import DeplError, MissingExtraError
from depl.core.nodes import refuse_unfit
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import ReviewQueue
from depl.server.board import Board
from depl.server.connections import MAX_SILENCE
from depl.server.logs import log_event
from depl.server.plan import Plan, label_counts
from depl.server.process import GRACE
from depl.server.replica import build_app

if TYPE_CHECKING:
    from fastapi import FastAPI

NAME = "depl"  # of the application in Ray Serve

_STARTS = 3  # of a replica that fails, before the service is given up
_HEALTH = 2.0  # seconds between two looks whether a replica lives
_LISTENING = 60.0  # seconds in which all machines listen
# A process that listens is given up, and another started, if it takes longer to begin: by default
# 5 seconds, in which a busy machine does not even import what it needs.
_PATIENCE = {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60"}


@dataclass(frozen=True)
class Service:
    """Replicas that answer.

    Parameters
    ----------
    labels : mapping of str to int
        The number of labels of each run.
    board : actor
        A ``Board``.
    """

    labels: Mapping[str, int]
    board: Any

    def reload(self) -> None:
        """Let all replicas load all runs again; where that fails, the old ones stay in use."""
        import ray

        seconds, error = ray.get(self.board.reload.remote())
        if error is not None:
            log_event(logging.ERROR, "reload failed", error=error)
        else:
            log_event(logging.WARNING, "reloaded", seconds=round(seconds, 3))


def run_replicas(
    plan: Plan,
    address: str,
    *,
    host: str,
    port: int,
    replicas: int | None,
    started: Callable[[Mapping[str, int]], None],
) -> None:
    """Serve until SIGTERM or Ctrl-C; SIGHUP reloads.

    ``started`` is called once all answer, with the number of labels of each run.
    """
    events: SimpleQueue[str] = SimpleQueue()
    answering = False

    def stop(*_: object) -> None:
        if not answering:  # what has been started is stopped on the way out
            raise KeyboardInterrupt
        events.put("stop")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if hasattr(signal, "SIGHUP"):  # not on Windows
        signal.signal(signal.SIGHUP, lambda *_: events.put("reload"))
    with serving(plan, address, host=host, port=port, replicas=replicas) as service:
        answering = True
        started(service.labels)
        while events.get() != "stop":
            service.reload()


@contextmanager
def serving(
    plan: Plan, address: str, *, host: str, port: int, replicas: int | None = None
) -> Iterator[Service]:
    """Replicas that answer while the block runs.

    Parameters
    ----------
    plan : Plan
        What to serve.
    address : str
        Of the cluster, as ``RayExecutor`` takes it.
    host, port : str, int
        Where every machine listens.
    replicas : int or None
        How many, on all machines together; None: as many as there are machines.
    """
    ray = import_ray()
    serve = _import_serve()
    cluster = RayExecutor(address, workers=replicas)  # which refuses what is no address
    models = plan.load()  # what is wrong with a run shows at once, and here
    torch = any(model.retriever is not None for model in models.values())
    labels = label_counts(models)
    del models
    folders = {name: path.resolve() for name, path in plan.folders.items()}
    with cluster:
        for folder in folders.values():
            refuse_unfit(ray, run=folder, torch=torch, serve=True)
        nodes = [x for x in ray.nodes() if x["Alive"] and x["Resources"].get("CPU", 0) >= 1]
        n = replicas or len(nodes)
        if n > cluster.workers:
            raise DeplError(
                f"{n} replicas need a core each, but the cluster has {cluster.workers}. Give fewer "
                f"--workers, or add machines to it."
            )
        if serve.status().applications or serve.status().proxies:
            raise DeplError(
                "Ray Serve runs on this cluster already, and has one address for all that it "
                "serves. `serve status` says what it serves, `serve shutdown` ends it."
            )
        if address != "local" and plan.access.writable:
            for folder in folders.values():
                FeedbackStore(folder).share()
                ReviewQueue(folder).share()
        names = {x["NodeManagerHostname"].lower() for x in nodes}
        access = replace(plan.access, hosts=(*plan.access.hosts, *sorted(names)))
        board = ray.remote(Board).options(num_cpus=0, max_concurrency=1_000).remote()
        try:
            everywhere = replace(plan, folders=folders, access=access)
            _start(ray, serve, everywhere, board, host, port, n, torch)
            yield Service(labels, board)
        finally:
            serve.shutdown()
            ray.kill(board)


def _start(
    ray: ModuleType,
    serve: ModuleType,
    plan: Plan,
    board: Any,  # noqa: ANN401
    host: str,
    port: int,
    n: int,
    torch: bool,
) -> None:
    """Start the replicas, and wait until they answer on all machines."""

    def build() -> FastAPI:
        return build_app(plan, board)

    gpus = 1 if torch and ray.cluster_resources().get("GPU", 0) >= n else 0
    deployment = serve.deployment(serve.ingress(build)()).options(
        name=NAME,
        num_replicas=n,
        ray_actor_options={"num_cpus": 1, "num_gpus": gpus},
        max_ongoing_requests=plan.batching.queue,  # the service itself says when it has too many
        max_constructor_retry_count=_STARTS,
        health_check_period_s=_HEALTH,
        graceful_shutdown_timeout_s=GRACE,
        graceful_shutdown_wait_loop_s=0.1,
    )
    quiet = {"log_level": "WARNING", "enable_access_log": False}
    try:
        serve.start(
            proxy_location="EveryNode",
            http_options={"host": host, "port": port, "keep_alive_timeout_s": int(MAX_SILENCE)},
            logging_config=quiet,
            controller_options={"runtime_env": {"env_vars": _PATIENCE}},
        )
    except (RuntimeError, TimeoutError, ray.exceptions.RayError) as error:
        if "bind" in str(error):
            why = f"cannot listen at {host}, port {port}; perhaps something else does there. "
            remedy = "Choose another --port or --host."
        else:
            why, remedy = f"does not start ({type(error).__name__}). ", "Try again when it is idle."
        raise DeplError(f"The head of the cluster {why}{remedy}") from None
    try:
        serve.run(deployment.bind(), name=NAME, route_prefix="/", logging_config=quiet)
    except RuntimeError as error:
        trouble = ray.get(board.trouble.remote())
        raise DeplError(trouble or f"Ray could not start the replicas: {error}") from None
    end = time.monotonic() + _LISTENING
    while silent := [x for x in serve.status().proxies.values() if x != "HEALTHY"]:
        if time.monotonic() > end:
            raise DeplError(
                f"{len(silent)} of the machines do not listen at {host}, port {port}; perhaps "
                f"something else does there. Choose another --port."
            )
        time.sleep(0.1)


def _import_serve() -> ModuleType:
    try:
        with warnings.catch_warnings():  # what its authors have yet to adapt to pydantic
            warnings.simplefilter("ignore")
            from ray import serve
    except ImportError:
        raise MissingExtraError("ray[serve]", "ray-serve", "depl serve --ray") from None
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    return serve
