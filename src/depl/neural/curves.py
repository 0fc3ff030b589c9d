"""Training curves on disk."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Any

from depl.core.storage import write_text
from depl.neural.training import Progress


class Curves:
    """Loss, speed and validation scores as JSON lines, and for TensorBoard where wanted."""

    def __init__(self, folder: Path, title: str, tensorboard: bool) -> None:
        self._path = folder / f"{title.replace(' ', '-').replace('(', '').replace(')', '')}.jsonl"
        self._open = False  # whether the file was written by this training
        self._writer: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(folder / "tensorboard" / self._path.stem)
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Curves:
        return self

    def add(self, progress: Progress) -> None:
        """Write one reading; drop what a killed training wrote after its last checkpoint."""
        line = {k: v for k, v in asdict(progress).items() if v is not None}
        if not self._open:
            kept = []
            if self._path.exists():
                lines = self._path.read_text("utf-8", "replace").splitlines()
                kept = list(takewhile(lambda x: _step(x) < progress.step, lines))
            write_text(self._path, "".join(f"{x}\n" for x in kept))
            self._open = True
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._writer is not None:
            self._writer.add_scalar("loss", progress.loss, progress.step)
            for branch, scores in (line.get("validation") or {}).get("branches", {}).items():
                for name, value in scores.items():
                    self._writer.add_scalar(f"{branch}/{name}", value, progress.step)

    def __exit__(self, *ignored: object) -> None:
        if self._writer is not None:
            self._writer.close()


def _step(line: str) -> float:
    """The step of a reading; infinite where a line is torn or damaged."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return math.inf
