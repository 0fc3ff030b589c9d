"""Stages that several processes make together: those of ``accelerate launch``, or of a cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from depl.pipeline.stages import STAGES, Stage
from depl.pipeline.work import Work
from depl.run.config import Config
from depl.run.folder import Run

if TYPE_CHECKING:
    from depl.neural.distributed import Processes

NOTHING: str | None = None  # what the first process sends to the others where a stage is kept


def launched(config: Config) -> Processes | None:
    """The processes of ``accelerate launch``; None where there is only one."""
    if not config.neural or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return None
    from depl.neural.distributed import Processes

    return Processes.launched(config.device)


def follow(run: Run, config: Config, team: Processes, until: str | None) -> None:
    """What every process but the first does: take part in the stages that are made together."""
    if until == "corpus":
        return
    for stage in STAGES:
        if stage.wanted(config) and stage.shared:
            scratch = team.agree(NOTHING)
            if scratch is not None:
                with TemporaryDirectory() as nowhere:
                    stage.make(Work(Run(run.path), config, Path(nowhere), Path(scratch), team))
            team.wait()
        if stage.name == until:
            break


@dataclass(frozen=True)
class _Part:
    """What a process of a cluster takes part in."""

    stage: str
    run: Path
    config: Config
    folder: Path
    scratch: Path


def make_on_cluster(stage: Stage, work: Work) -> bool:
    """Make a stage by several processes of a cluster; False where there is one process."""
    if not stage.shared or work.executor is None:
        return False
    what = (work.run.path.resolve(), work.config, work.folder.resolve(), work.scratch.resolve())
    return work.executor.together(
        _take_part,
        _Part(stage.name, *what),
        gpus=work.config.device != "cpu",
        scratch=work.scratch,
    )


def _take_part(part: _Part) -> None:
    from depl.neural.distributed import Processes

    team = Processes.of_ray()
    (stage,) = (x for x in STAGES if x.name == part.stage)
    with TemporaryDirectory() as nowhere:
        folder = part.folder if team.first else Path(nowhere)
        stage.make(Work(Run(part.run), part.config, folder, part.scratch, team))
        team.wait()
