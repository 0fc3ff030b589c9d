"""What a stage is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depl.run.config import Config
from depl.run.folder import Run

if TYPE_CHECKING:
    from depl.neural.distributed import Processes


@dataclass(frozen=True)
class Work:
    """What a stage is given to do its work."""

    run: Run
    config: Config
    folder: Path  # becomes the stage's folder when it is whole
    scratch: Path  # outlives a kill, so that long work can be continued; need not exist
    processes: Processes | None = None  # with whom a shared stage is made


@dataclass(frozen=True)
class Stage:
    """One step: where its result goes, which settings it depends on, and how it is made."""

    name: str
    settings: Callable[[Config], dict[str, Any]]
    make: Callable[[Work], None]
    needed: Callable[[Config], bool] = lambda config: True
    shared: bool = False  # made by all processes together where there are several
