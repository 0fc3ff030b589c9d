"""What ``depl serve`` was asked for: the same in one process and in each of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from depl.model.classifier import Classifier
from depl.server.app import create_app
from depl.server.batching import Batching
from depl.server.live_model import load
from depl.server.security import Access


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to serve and how; see ``create_app``.

    Parameters
    ----------
    folders : mapping of str to Path
        The runs by their names.
    tls : tuple of Path and (Path or None), or None
        Certificate and key, to answer by HTTPS.
    log_requests : bool
        Whether every request is logged.
    """

    folders: Mapping[str, Path]
    access: Access
    batching: Batching
    most_jobs: int
    tls: tuple[Path, Path | None] | None = None
    log_requests: bool = False

    def load(self) -> dict[str, Classifier]:
        """All runs."""
        return {name: load(path) for name, path in self.folders.items()}

    def app(self, models: Mapping[str, Classifier]) -> FastAPI:
        """The application that answers for the loaded runs."""
        return create_app(
            models, access=self.access, batching=self.batching, most_jobs=self.most_jobs
        )


def label_counts(models: Mapping[str, Classifier]) -> dict[str, int]:
    """How many labels each run has."""
    return {name: len(model.labels) - len(model.removed) for name, model in models.items()}
