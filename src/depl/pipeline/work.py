"""What a stage gets to do its work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from depl.core.executor import Executor
from depl.run.config import Config
from depl.run.folder import Run

if TYPE_CHECKING:
    from depl.neural.distributed import Processes


@dataclass(frozen=True)
class Work:
    """A stage's inputs, settings, and where its result goes."""

    run: Run
    config: Config
    folder: Path  # becomes the stage's folder when it is complete
    scratch: Path  # survives a kill, so that long work can be continued; need not exist
    processes: Processes | None = None  # the processes that make a shared stage together
    executor: Executor | None = None  # what does parallel work; None: this machine
