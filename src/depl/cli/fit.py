"""``depl fit``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from depl.cli.console import count, err, progress
from depl.cli.options import Format, OnError, Overrides
from depl.core.errors import ConfigError
from depl.run.recipes import RECIPES

if TYPE_CHECKING:
    from depl.core.corpus import Corpus
    from depl.pipeline.fit import Event
    from depl.run.config import Config


def fit(
    corpus: Annotated[
        Path,
        typer.Argument(metavar="CORPUS|RUN", help="Corpus folder, or a run folder to continue."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="RUN", help="Run folder to create or continue."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE|RECIPE",
            help=f"Settings: a TOML file, or a recipe ({', '.join(RECIPES)}).",
        ),
    ] = None,
    overrides: Overrides = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="STAGE", help="Stop after this stage.")
    ] = None,
    redo_from: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="Redo this stage and all later ones."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run that was made from another corpus.")
    ] = False,
    format: Format = None,
    on_error: OnError = "stop",
) -> None:
    """Train on a corpus.

    To continue an interrupted run, repeat the command or call `depl fit RUN`.
    """
    from depl import readers
    from depl.run.config import Config
    from depl.run.folder import Run

    if out is None or Run(corpus).has_manifest:
        _continue(corpus, out, config, overrides or [], until, redo_from)
        return
    settings = Config.load(config, overrides or [])  # before any long work: mistakes show at once
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
    """Continue a run, such as one that was copied from another machine."""
    from depl.pipeline import fit as pipeline
    from depl.run import manifest
    from depl.run.config import Config
    from depl.run.folder import Run

    if not Run(run).has_manifest:
        raise ConfigError(
            f"Give --out RUN, the folder for the run on {run}. (Without --out, depl fit continues "
            f"an existing run, and {run} is not a run folder.)"
        )
    if out is not None and out.resolve() != run.resolve():
        raise ConfigError(
            f"{run} is a run folder, and a run is continued in place: omit --out {out}, or copy "
            f"the folder there first."
        )
    manifest.restore(run)
    settings = (Run(run).config() if config is None else Config.load(config)).changed(overrides)
    with progress(), _resumable():
        err.print(f"continuing {escape(str(run))}")
        pipeline.fit(None, run, settings, until=until, redo_from=redo_from, observe=_report)


def fit_corpus(
    corpus: Corpus,
    out: Path,
    settings: Config,
    *,
    until: str | None = None,
    redo_from: str | None = None,
    overwrite: bool = False,
) -> None:
    """Make the run from documents already read, and print every stage."""
    from depl.pipeline import fit as pipeline

    documents, labels = count(len(corpus), "document"), count(len(corpus.labels), "label")
    err.print(f"[bold]{documents}[/], [bold]{labels}[/] → {escape(str(out))}")
    with _resumable():
        pipeline.fit(
            corpus,
            out,
            settings,
            until=until,
            redo_from=redo_from,
            overwrite=overwrite,
            observe=_report,
        )


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        err.print("\nFinished stages are kept; run the same command again to continue.")
        raise


def _report(event: Event) -> None:
    if event.kind == "kept":
        err.print(f"  {event.stage:<14}[dim]up to date[/]")
    elif event.kind == "started" and event.detail:
        err.print(f"  {event.stage:<14}[yellow]{escape(event.detail)}[/]")
    elif event.kind == "done":
        err.print(f"  {event.stage:<14}[green]done[/] [dim]{event.seconds:.1f} s[/] {event.detail}")
