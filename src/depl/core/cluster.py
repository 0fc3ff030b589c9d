"""A Ray cluster as an executor: ``--ray local``, ``--ray auto``, ``--ray HOST:PORT``.

Ray schedules the tasks, ships what they need and repeats those that were lost with a worker or a
node. The payload of a ``map`` is in the object store of each node once, and tasks read it there
without a copy.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from depl.core.errors import ConfigError, DeplError, MissingExtraError
from depl.core.executor import Executor
from depl.core.groups import call_in_group, group_size
from depl.core.nodes import refuse_unfit
from depl.core.workers import in_order, use_cores

P = TypeVar("P")
T = TypeVar("T")
R = TypeVar("R")

_TRIES = 3  # of a task whose worker or node was lost, beside the first
_ANSWER = 5.0  # seconds in which the head of a cluster accepts a connection
_HEAD = re.compile(r"(?P<host>[\w.-]+|\[[\da-fA-F:]+\]):(?P<port>\d{1,5})")
# A head speaks HTTP/2, in which both sides begin with a frame of settings.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = b"\x04"
_HINT = (
    "--ray takes local (Ray on this machine), auto (the cluster that this machine is a node of), "
    "or the address of the cluster's head such as 10.0.0.1:6379"
)


class RayExecutor:
    """A Ray cluster, connected to and looked over while a ``with`` block runs.

    Parameters
    ----------
    address : str
        "local": Ray on this machine; "auto": the cluster that this machine is a node of; else the
        address of its head, such as "10.0.0.1:6379".
    workers : int or None
        For "local", how many tasks are done at the same time; None means one per core. Other
        clusters have as many workers as their nodes have cores.
    run : Path or None
        A run folder that the tasks read: every node must see it.
    torch : bool
        Whether the tasks need torch.
    """

    def __init__(
        self,
        address: str,
        *,
        workers: int | None = None,
        run: Path | None = None,
        torch: bool = False,
    ) -> None:
        if address not in ("local", "auto") and not _HEAD.fullmatch(address):
            raise ConfigError(f"{_HINT}; got {address!r}.")
        self._address = address
        self._local_workers = workers
        self._run = run
        self._torch = torch
        self._ray = import_ray()
        self._connected_before = self._ray.is_initialized()

    def __enter__(self) -> RayExecutor:
        if not self._connected_before:
            _connect(self._ray, self._address, self._local_workers)
        try:
            refuse_unfit(self._ray, run=self._run, torch=self._torch)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if not self._connected_before:
            self._ray.shutdown()

    @property
    def workers(self) -> int:
        """How many tasks are done at the same time."""
        return int(self._ray.cluster_resources().get("CPU", 0)) or 1

    def map(
        self,
        function: Callable[[P, T], R],
        payload: P,
        tasks: Iterable[T],
        *,
        compiled: bool = True,
        ahead: int | None = None,
    ) -> Iterator[R]:
        """The results, in order; see ``Executor.map``."""
        shared = self._ray.put(payload)
        call = self._ray.remote(_call).options(max_retries=_TRIES)
        most = None if ahead is None else ahead * self.workers
        begin = partial(call.remote, function, shared)
        return in_order(begin, self._result, tasks, most, self._drop)

    def together(
        self, function: Callable[[P], None], task: P, *, gpus: bool, scratch: Path
    ) -> bool:
        """A process per GPU, or per node where there is none; see ``Executor.together``."""
        if group_size(self._ray, gpus=gpus) < 2:
            return False
        return call_in_group(self._ray, function, task, gpus=gpus, scratch=scratch)

    def refuse_unfit(self, run: Path, *, gpus: bool) -> None:
        """Refuse nodes that do not see the run folder or have no torch."""
        if group_size(self._ray, gpus=gpus) > 1:
            refuse_unfit(self._ray, run=run, torch=True)

    def _drop(self, references: Iterable[Any]) -> None:
        for reference in references:
            self._ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:  # noqa: ANN401
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, DeplError):
                raise error.cause from None
            raise
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        ) as error:
            raise DeplError(
                f"A task was lost {_TRIES + 1} times with the worker that did it "
                f"({type(error).__name__}); perhaps the nodes have too little memory. Give the "
                f"same command again, with fewer workers per node (ray start --num-cpus) if it "
                f"happens again."
            ) from None


def connected(
    address: str | None, *, workers: int | None = None, run: Path | None = None, torch: bool = False
) -> AbstractContextManager[Executor | None]:
    """The cluster at an address, as ``RayExecutor`` takes it; None where there is no address."""
    if address is None:
        return nullcontext()
    return RayExecutor(address, workers=workers, run=run, torch=torch)


def _call(function: Callable[[P, T], R], payload: P, task: T) -> R:
    use_cores(1)
    return function(payload, task)


def import_ray() -> ModuleType:
    """Ray; all that imports any part of it calls this first."""
    # Before the import, which reads them: nothing is reported to Ray's makers, no warning is given
    # about a default of future versions that concerns only GPUs, and workers that were lost, and
    # replaced, are not told of on standard output, which is for results.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "--ray") from None
    return ray


def _connect(ray: ModuleType, address: str, workers: int | None) -> None:
    connect = partial(ray.init, address=address, log_to_driver=False, logging_level=logging.ERROR)
    if address == "local":
        connect = partial(connect, num_cpus=workers, include_dashboard=False)
    elif address != "auto":
        refuse_silent(address)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        connect()
    except ConnectionError:
        if address == "auto":
            said, head = "No Ray cluster runs on this machine", "HEAD:6379"
        else:
            said = f"What answers at {address} is not the head of a cluster that has this machine"
            head = address
        raise DeplError(
            f"{said}. Start one with `ray start --head`, or join one with `ray start --address "
            f"{head}`; {_HINT}."
        ) from None
    except RuntimeError as error:
        if "ersion mismatch" not in str(error):
            raise
        raise DeplError(
            f"The cluster at {address} runs another version of Python or Ray than this machine: "
            f"{' '.join(str(error).split())} Install the same versions on all nodes."
        ) from None
    finally:
        with suppress(ValueError):  # not in the main thread: then Ray cannot, either
            signal.signal(signal.SIGTERM, handler)  # Ray has put its own there


def refuse_silent(address: str) -> None:
    """Refuse an address where no head of a cluster answers; Ray itself would try for minutes."""
    found = _HEAD.fullmatch(address)
    assert found is not None
    where = (found["host"].strip("[]"), int(found["port"]))
    try:
        with socket.create_connection(where, _ANSWER) as connection:
            connection.sendall(_HELLO)
            reply = connection.recv(9)
    except (OSError, OverflowError) as error:
        said = f"Nobody answers at {address}, where the head of a Ray cluster should be: {error}"
    else:
        if reply[3:4] == _SETTINGS or os.environ.get("RAY_USE_TLS") == "1":
            return
        said = f"What answers at {address} is not the head of a Ray cluster"
    raise DeplError(f"{said}. `ray start --head --port 6379` starts one, and {_HINT}.")
