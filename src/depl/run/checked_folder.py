"""A run folder as files: which stages are complete, and whether files are what was written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, Self

from depl.core import storage
from depl.core.errors import RunError
from depl.core.hashes import FileRecord, first_difference
from depl.core.locks import locked
from depl.run import manifest
from depl.run.learned import LearnedStates

# Files of the stage "corpus" that cannot be made again from anything else in the run.
GIVEN = ("labels.parquet", "train.parquet", "aside.parquet", "columns.json")


class CheckedFolder:
    """A folder with a manifest.

    Parameters
    ----------
    path : path
        The folder; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """An existing run; anything else is a ``RunError`` that says what it is."""
        run = cls(path)
        if not run.path.exists():
            raise RunError(
                f"There is no run folder {path}. `depl fit CORPUS --out {path}` makes one."
            )
        if run.path.is_file():
            raise RunError(
                f"{path} is a file, where the run folder belongs: it comes first, and files after "
                f"it. Give the folder that `depl fit --out` wrote."
            )
        if not run.has_manifest:
            raise RunError(
                f"{path} is not a run folder: it has no manifest.json. Give the folder that "
                f"`depl fit --out` wrote."
            )
        return run

    @property
    def has_manifest(self) -> bool:
        """Whether the folder is a run."""
        return manifest.exists(self.path)

    def manifest(self) -> dict[str, Any]:
        """What is complete in this folder; an empty manifest when there is none."""
        return manifest.read(self.path)

    def write_manifest(self, contents: Mapping[str, Any]) -> None:
        """Replace the manifest, whole or not at all."""
        manifest.write(self.path, contents)

    def version(self) -> str:
        """Identifies what suggests labels: the stages, and what was learnt since."""
        learned = self.learned.current()
        stages = self.stages_version()
        return f"{stages}-{learned}" if learned else stages

    def stages_version(self) -> str:
        """Identifies what the stages were made from: documents and settings."""
        stages = self.manifest()["stages"]
        return storage.fingerprint({name: x["fingerprint"] for name, x in stages.items()})

    @property
    def learned(self) -> LearnedStates:
        """What was learnt from feedback since the run was fitted."""
        return LearnedStates(self.path, self.stages_version)

    def has(self, stage: str) -> bool:
        """Whether a stage is complete."""
        return stage in self.manifest()["stages"]

    def files(self, stage: str) -> dict[str, FileRecord]:
        """The files of a complete stage, as they were written; none in a run of format 3."""
        kept = self._entry(stage).get("files", {})
        return {name: FileRecord.from_json(value) for name, value in kept.items()}

    def settings(self, stage: str) -> dict[str, Any]:
        """The settings that a stage was made with."""
        settings: dict[str, Any] = self._entry(stage)["settings"]
        return settings

    def _entry(self, stage: str) -> dict[str, Any]:
        entry: dict[str, Any] | None = self.manifest()["stages"].get(stage)
        if entry is None:
            raise RunError(
                f"The run {self.path} has no finished {stage!r} stage. "
                f"Give its `depl fit` command again; it continues where it stopped."
            )
        return entry

    def verified(self, stage: str, *names: str) -> Path:
        """The folder of a complete stage whose files are what was written.

        Parameters
        ----------
        stage : str
            Which stage.
        names : str
            The files, or folders of files, that will be read; all if none is given.
        """
        files = self.files(stage)
        wanted: dict[str, FileRecord] = {}
        for name in names:
            found = {x: files[x] for x in files if x == name or x.startswith(f"{name}/")}
            if files and not found:
                self._refuse(stage, name, "is missing")
            wanted |= found
        wrong = first_difference(self.path / stage, wanted if names else files, self.path)
        if wrong is not None:
            self._refuse(stage, *wrong)
        return self.path / stage

    def damage(self, stage: str) -> str | None:
        """Which file of a complete stage is not what was written, in words; None if all are."""
        wrong = first_difference(self.path / stage, self.files(stage), self.path)
        return None if wrong is None else f"{stage}/{wrong[0]} {wrong[1]}"

    def _refuse(self, stage: str, name: str, what: str) -> NoReturn:
        raise RunError(f"{self.path / stage / name} {what}; {self.remedy(stage, name)}")

    def remedy(self, stage: str, name: str) -> str:
        """What to do about a file that is not what was written."""
        if stage == "corpus" and name in GIVEN:
            return f"fit the run again from its corpus: depl fit CORPUS --out {self.path}"
        return f"make it again with: depl fit {self.path}"

    def locked(self) -> AbstractContextManager[None]:
        """Prevent a second process from fitting the same folder at the same time."""
        return locked(
            self.path / ".lock",
            busy=f"Another process is fitting {self.path} right now",
            remedy="Wait for it, or choose another --out.",
        )
