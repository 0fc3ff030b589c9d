"""``depl fit``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from depl import readers
from depl.cli.console import err, progress
from depl.core.corpus import Corpus
from depl.core.errors import ConfigError
from depl.pipeline import fit as pipeline
from depl.run.config import Config
from depl.run.folder import Run


def fit(
    corpus: Path,
    out: Path | None,
    *,
    config: str | None,
    overrides: Sequence[str],
    until: str | None,
    redo_from: str | None,
    overwrite: bool,
    format: str | None,
    on_error: Literal["stop", "skip"],
) -> None:
    """Read the training split and make the run, telling of every stage."""
    if out is None or Run(corpus).has_manifest:
        _continue(corpus, out, config, overrides, until, redo_from)
        return
    settings = Config.load(config, overrides)  # before any long work: mistakes show at once
    with progress():
        data = readers.read(corpus, format=format, on_error=on_error, splits=["train"])
        fit_corpus(data.train, out, settings, until=until, redo_from=redo_from, overwrite=overwrite)


def _continue(
    run: Path,
    out: Path | None,
    config: str | None,
    overrides: Sequence[str],
    until: str | None,
    redo_from: str | None,
) -> None:
    """Go on with a run, such as one that was copied from another machine."""
    if not Run(run).has_manifest:
        raise ConfigError(
            f"Where should the run on {run} go? Give --out RUN. (Without --out, depl fit continues "
            f"a run, and {run} is none.)"
        )
    if out is not None and out.resolve() != run.resolve():
        raise ConfigError(
            f"{run} is a run folder, and a run is continued where it is: leave --out {out} out, or "
            f"copy the folder there first."
        )
    settings = (Run(run).config() if config is None else Config.load(config)).changed(overrides)
    with progress():
        err.print(f"continuing {run}")
        pipeline.fit(None, run, settings, until=until, redo_from=redo_from, observe=_tell)


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
