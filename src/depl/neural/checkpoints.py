"""Training that was killed goes on where it was: weights, optimiser and place, kept as safetensors.

Everything random in training hangs on the number of the step (see ``training``), so that these
three are all there is to keep.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from depl.core.storage import explain_os_errors

_FILE = "checkpoint.safetensors"
_BEST = "best.safetensors"


class Checkpoint:
    """One training's place on disk.

    Parameters
    ----------
    folder : Path
        Where to; made when it is first needed.
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
        """Whether the last one is old enough for another."""
        return time.monotonic() - self._last >= self.every

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        place: dict[str, Any],
        best: dict[str, Tensor] | None = None,
    ) -> None:
        """Keep weights, optimiser and place, whole or not at all; and the best epoch's weights."""
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
        """Bring model and optimiser to the last checkpoint; gives the place, or None."""
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
                # A fused optimiser counts its steps where the weights are.
                optimizer.state[parameter] = {k: t.to(parameter.device) for k, t in kept.items()}
        return place

    def load_best(self) -> dict[str, Tensor] | None:
        """The weights of the best epoch so far; None if none were kept."""
        found = _read(self.folder / _BEST)
        return None if found is None else found[0]


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _write(path: Path, tensors: dict[str, Tensor], place: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    on_cpu = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            save_file(on_cpu, temporary, {"place": json.dumps(place)})
        except SafetensorError as error:  # its own type even for a full disk
            raise OSError(str(error)) from error
        temporary.replace(path)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and place; None where there is no checkpoint, or none that can be read."""
    try:
        with safe_open(path, framework="pt") as file:
            place = json.loads((file.metadata() or {}).get("place", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, place  # noqa: SIM118
    except (FileNotFoundError, SafetensorError):
        return None  # training starts afresh, which is always right
