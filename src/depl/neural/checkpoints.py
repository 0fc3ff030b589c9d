"""Killed training resumes where it was: weights, optimiser and position, kept as safetensors.

Everything random in training depends on the step number (see ``training``), so nothing else has
to be kept.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from depl.core.errors import RunError
from depl.core.tensors import read_tensors, write_tensors

_FILE = "checkpoint.safetensors"
_BEST = "best.safetensors"
_PLACE, _DIGEST = "place", "digest"


class Checkpoint:
    """The checkpoints of one training.

    Parameters
    ----------
    folder : Path
        Where they are kept; created when first needed.
    every : float
        Seconds between two checkpoints within an epoch.
    """

    def __init__(self, folder: Path, every: float = 60.0) -> None:
        self.folder = folder
        self.every = every
        self._last = time.monotonic()
        self._best: dict[str, Tensor] | None = None  # what was written last, to write it once

    @property
    def due(self) -> bool:
        """Whether it is time for another."""
        return time.monotonic() - self._last >= self.every

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        place: dict[str, Any],
        best: dict[str, Tensor] | None = None,
    ) -> None:
        """Write weights, optimiser and position, atomically; and the best epoch's weights."""
        if best is not None and best is not self._best:
            _write(self.folder / _BEST, best, {})
            self._best = best
        tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
        for i, parameter in enumerate(_parameters(optimizer)):
            for key, value in optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{i}.{key}"] = value
        _write(self.folder / _FILE, tensors, place)
        self._last = time.monotonic()

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Restore model and optimiser from the last checkpoint; returns the position, or None."""
        found = _read(self.folder / _FILE)
        if found is None:
            return None
        tensors, place = found
        model.load_state_dict(
            {k.removeprefix("model."): t for k, t in tensors.items() if k.startswith("model.")}
        )
        for i, parameter in enumerate(_parameters(optimizer)):
            prefix = f"optimizer.{i}."
            kept = {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
            if kept:
                # A fused optimiser keeps its step count on the device of the weights.
                optimizer.state[parameter] = {k: t.to(parameter.device) for k, t in kept.items()}
        return place

    def load_best(self) -> dict[str, Tensor] | None:
        """The weights of the best epoch so far; None if none were kept."""
        found = _read(self.folder / _BEST)
        return None if found is None else found[0]


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _write(path: Path, tensors: dict[str, Tensor], place: dict[str, Any]) -> None:
    arrays = {name: t.detach().cpu().numpy() for name, t in tensors.items()}
    arrays[_PLACE] = np.frombuffer(json.dumps(place).encode(), np.uint8)
    write_tensors(path, arrays | {_DIGEST: _digest(arrays)})


def _digest(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """A hash of names and numbers: training must not continue from damaged weights."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + b"\0")
        digest.update(np.ascontiguousarray(arrays[name]).view(np.uint8).data)
    return np.frombuffer(digest.digest(), np.uint8)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and position; None where there is no checkpoint, or none that can be read."""
    try:
        arrays = read_tensors(path, _PLACE, _DIGEST)
        if arrays.pop(_DIGEST).tobytes() != _digest(arrays).tobytes():
            return None
        place: dict[str, Any] = json.loads(arrays.pop(_PLACE).tobytes())
    except (RunError, ValueError):
        return None  # training starts from the beginning, which is always correct
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, place
