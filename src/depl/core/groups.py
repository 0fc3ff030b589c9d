"""Processes of a Ray cluster that work on one thing together, as a process group of torch's."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from depl.core.errors import DeplError, MissingExtraError

P = TypeVar("P")

_TRIES = 3  # after a worker or a node was lost, beside the first
_ROOM = "20"  # seconds that Ray waits for free cores before the nodes are counted again
_PATIENCE = 12 * 3600  # seconds that processes wait for the one that reads, validates or writes


def group_size(ray: ModuleType, *, gpus: bool) -> int:
    """A process for each GPU; where there is none, or none is wanted, for each node."""
    n_gpus = int(ray.cluster_resources().get("GPU", 0)) if gpus else 0
    return n_gpus or len(_cores_of_nodes(ray))


def call_in_group(
    ray: ModuleType, function: Callable[[P], None], task: P, *, gpus: bool, scratch: Path
) -> bool:
    """Call a function in every process of a group, with Ray Train.

    When a process is lost, all of them begin again: what the function has kept on disk is there.
    When a node is lost, a smaller group does. (Ray Train alone would wait for another node.)

    Parameters
    ----------
    ray : module
        Ray, connected.
    function : callable
        What every process calls with the task, once the group is there.
    task : object
        What is to be done.
    gpus : bool
        Whether GPUs are wanted.
    scratch : Path
        A folder on storage that all nodes have.

    Returns
    -------
    bool
        False where after losses there would be one process: the rest is left to the caller.
    """
    _set_up()
    try:
        from ray.train import TrainingFailedError
    except ImportError as error:
        name = error.name or "pandas"
        raise MissingExtraError(name, "ray", "Training on a Ray cluster") from None
    lost, interrupted = 0, signal.getsignal(signal.SIGINT)
    while (size := group_size(ray, gpus=gpus)) > 1:
        try:
            with warnings.catch_warnings(action="ignore"):  # Ray about its own parts
                _trainer(ray, function, task, size, gpus=gpus, scratch=scratch).fit()
            return True
        except TrainingFailedError as error:
            if _found_no_room(error):
                continue  # other work is there, or a node has just gone
            lost += 1
            ours = _own_error(error)
            if ours is not None or lost > _TRIES:
                raise (ours or _explained(error)) from error
        finally:
            with suppress(ValueError):  # not in the main thread: then Ray cannot, either
                signal.signal(signal.SIGINT, interrupted)  # Ray has put its own there
    return False


def _set_up() -> None:
    """Variables that Ray Train reads: the first when it is imported."""
    os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")  # one kind of errors
    os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", _ROOM)


def _trainer(
    ray: ModuleType,
    function: Callable[[P], None],
    task: P,
    size: int,
    *,
    gpus: bool,
    scratch: Path,
) -> Any:  # noqa: ANN401 - a TorchTrainer
    """What starts so many processes, once."""
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    on_gpus = gpus and ray.cluster_resources().get("GPU", 0) >= 1
    cores = 1 if on_gpus else min(_cores_of_nodes(ray))

    def take_part(settings: dict[str, Any]) -> None:
        settings["function"](settings["task"])

    return TorchTrainer(
        take_part,
        train_loop_config={"function": function, "task": task},
        torch_config=TorchConfig(timeout_s=_PATIENCE),
        scaling_config=ScalingConfig(
            num_workers=size,
            use_gpu=bool(on_gpus),
            resources_per_worker={"CPU": cores} | ({"GPU": 1} if on_gpus else {}),
            placement_strategy="PACK" if on_gpus else "SPREAD",
        ),
        run_config=RunConfig(
            name="ray",
            storage_path=str(scratch.resolve()),
            failure_config=FailureConfig(max_failures=0, controller_failure_limit=0),  # type: ignore[call-arg]
        ),
    )


def _cores_of_nodes(ray: ModuleType) -> list[int]:
    found = [int(x["Resources"].get("CPU", 0)) for x in ray.nodes() if x["Alive"]]
    return [n for n in found if n >= 1]


def _found_no_room(error: Exception) -> bool:
    """Whether no process was started, because cores or GPUs were not free in time."""
    cause = getattr(error, "controller_failure", None)
    return type(cause).__name__ == "WorkerGroupStartupTimeoutError"


def _own_error(error: Exception) -> DeplError | None:
    """The error of ours that a process raised, if that was it: it would raise it again."""
    for cause in getattr(error, "worker_failures", {}).values():
        ours = getattr(cause, "cause", cause)
        if isinstance(ours, DeplError):
            return ours
    return None


def _explained(error: Exception) -> DeplError:
    said = next(iter(getattr(error, "worker_failures", {}).values()), error)
    return DeplError(
        f"The processes that train together failed {_TRIES + 1} times: {said}. Give the same "
        f"command again: training goes on from its last checkpoint."
    )
