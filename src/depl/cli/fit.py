"""``depl fit``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from depl import pipeline, readers
from depl.cli.console import err, progress
from depl.config import Config
from depl.corpus import Corpus


def fit(
    corpus: Path,
    out: Path,
    *,
    config: Path | None,
    overrides: Sequence[str],
    until: str | None,
    redo_from: str | None,
    overwrite: bool,
    format: str | None,
    on_error: Literal["stop", "skip"],
) -> None:
    """Read the training split and make the run, telling of every stage."""
    settings = Config.load(config, overrides)  # before any long work: mistakes show at once
    with progress():
        data = readers.read(corpus, format=format, on_error=on_error, splits=["train"])
        fit_corpus(data.train, out, settings, until=until, redo_from=redo_from, overwrite=overwrite)


def fit_corpus(
    corpus: Corpus,
    out: Path,
    settings: Config,
    *,
    until: str | None = None,
    redo_from: str | None = None,
    overwrite: bool = False,
) -> None:
    """Make the run from documents already read."""
    err.print(f"[bold]{len(corpus):,}[/] documents, [bold]{len(corpus.labels):,}[/] labels → {out}")
    pipeline.fit(
        corpus,
        out,
        settings,
        until=until,
        redo_from=redo_from,
        overwrite=overwrite,
        observe=_tell,
    )


def _tell(event: pipeline.Event) -> None:
    if event.kind == "kept":
        err.print(f"  {event.stage:<14}[dim]up to date[/]")
    elif event.kind == "started" and event.detail:
        err.print(f"  {event.stage:<14}[yellow]{event.detail}[/]")
    elif event.kind == "done":
        err.print(f"  {event.stage:<14}[green]done[/] [dim]{event.seconds:.1f} s[/]")
