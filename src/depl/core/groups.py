"""Processes of a Ray cluster that work on one thing together, as a process group of torch's."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from depl.core.errors import DeplError, MissingExtraError

P = TypeVar("P")

_TRIES = 3  # after a worker or a node was lost, beside the first
_PATIENCE = 12 * 3600  # seconds that processes wait for the one that reads, validates or writes


def group_size(ray: ModuleType, *, gpus: bool) -> int:
    """A process for each GPU; where there is none, or none is wanted, for each node."""
    n_gpus = int(ray.cluster_resources().get("GPU", 0)) if gpus else 0
    return n_gpus or len(_cores_of_nodes(ray))


def call_in_group(
    ray: ModuleType, function: Callable[[P], None], task: P, *, gpus: bool, scratch: Path
) -> None:
    """Call a function in every process of a group, with Ray Train.

    When a process is lost, all of them begin again: what the function has kept on disk is there.

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
    """
    os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")  # read by the import: one kind of errors
    os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")
    try:
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError as error:
        name = error.name or "pandas"
        raise MissingExtraError(name, "ray", "Training on a Ray cluster") from None
    on_gpus = gpus and ray.cluster_resources().get("GPU", 0) >= 1
    cores = 1 if on_gpus else min(_cores_of_nodes(ray))

    def take_part(settings: dict[str, Any]) -> None:
        settings["function"](settings["task"])

    trainer = TorchTrainer(
        take_part,
        train_loop_config={"function": function, "task": task},
        torch_config=TorchConfig(timeout_s=_PATIENCE),
        scaling_config=ScalingConfig(
            num_workers=group_size(ray, gpus=gpus),
            use_gpu=bool(on_gpus),
            resources_per_worker={"CPU": cores} | ({"GPU": 1} if on_gpus else {}),
            placement_strategy="PACK" if on_gpus else "SPREAD",
        ),
        run_config=RunConfig(
            name="ray",
            storage_path=str(scratch.resolve()),
            failure_config=FailureConfig(max_failures=_TRIES),
        ),
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # Ray about its own parts
            trainer.fit()
    except TrainingFailedError as error:
        raise _explained(error) from error


def _cores_of_nodes(ray: ModuleType) -> list[int]:
    found = [int(x["Resources"].get("CPU", 0)) for x in ray.nodes() if x["Alive"]]
    return [n for n in found if n >= 1]


def _explained(error: Exception) -> Exception:
    """An error of ours as a worker raised it, or what to do about one of Ray's."""
    causes = getattr(error, "worker_failures", {}).values()
    for cause in causes:
        ours = getattr(cause, "cause", cause)
        if isinstance(ours, DeplError):
            return ours
    said = next(iter(causes), error)
    return DeplError(
        f"The processes that train together failed {_TRIES + 1} times: {said}. Give the same "
        f"command again: training goes on from its last checkpoint."
    )
