"""``depl fit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from depl.cli.console import count, err, print_entry, progress
from depl.cli.interrupts import remarking
from depl.cli.next_steps import print_next
from depl.cli.options import (
    Encoding,
    Format,
    IdColumn,
    LabelColumns,
    LabelsAsTheyAre,
    LabelSeparator,
    Language,
    OnError,
    Overrides,
    PathSeparator,
    Ray,
    Sheet,
    TextColumns,
    VocabularyFile,
)
from depl.cli.taking import concepts, print_doubts, print_taken
from depl.core.errors import ConfigError
from depl.run.recipes import RECIPES

if TYPE_CHECKING:
    from depl.core.corpus import Corpus
    from depl.core.executor import Executor
    from depl.pipeline.fit import Event
    from depl.run.config import Config


def fit(
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS|RUN",
            help="All documents in a file (CSV, TSV, Excel, JSON, Parquet, MARC), a corpus folder, "
            "or a run folder to continue.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="RUN", help="Run folder to create or continue."),
    ] = None,
    text: TextColumns = None,
    labels: LabelColumns = None,
    id: IdColumn = None,
    label_separator: LabelSeparator = None,
    path_separator: PathSeparator = None,
    labels_as_they_are: LabelsAsTheyAre = False,
    vocabulary: VocabularyFile = None,
    language: Language = None,
    no_holdout: Annotated[
        bool,
        typer.Option(
            "--no-holdout",
            help="Train on all documents. By default, a tenth is set aside to measure quality if "
            "there is no dev split.",
        ),
    ] = False,
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
        str | None,
        typer.Option("--until", metavar="STAGE", help="Stop after this stage, such as features."),
    ] = None,
    redo_from: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="STAGE", help="Redo this stage, such as fusion, and all later ones."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run that was made from another corpus.")
    ] = False,
    format: Format = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    on_error: OnError = "stop",
    ray: Ray = None,
) -> None:
    """Train on a table or on a corpus folder.

    To continue an interrupted run, repeat the command or call `depl fit RUN`.
    """
    from depl.core.aside import set_aside
    from depl.core.cluster import connected
    from depl.pipeline.stages import refuse_unknown
    from depl.readers.columns import Columns
    from depl.readers.corpora import read_records
    from depl.readers.recognising import split_names
    from depl.run.config import Config
    from depl.run.folder import Run

    if out is None or Run(corpus).has_manifest:
        _continue(corpus, out, config, overrides or [], until, redo_from, ray)
        return
    settings = Config.load(config, overrides or [])  # before any long work: mistakes show at once
    refuse_unknown(until, redo_from)
    merge = not labels_as_they_are
    columns = Columns.asked(
        text, labels, id, label_separator, merge=merge, sheet=sheet, path=path_separator
    )

    def read() -> Documents:
        data, taken = read_records(
            corpus,
            columns,
            vocabulary=concepts(vocabulary, language),
            format=format,
            on_error=on_error,
            splits=["train"],
            encoding=encoding,
        )
        if taken is not None:
            print_taken(taken, data, chosen=sheet is not None)
            print_doubts(taken, data)
        train, aside = data.train, None
        if not no_holdout and split_names(corpus, format) == ["train"]:
            train, aside = set_aside(data.train)
            _print_aside(len(aside))
        return Documents(train, aside or None, None if taken is None else taken.columns.to_json())

    workers = settings.threads or None
    with progress(), connected(ray, workers=workers, torch=settings.neural) as executor:
        fit_corpus(
            read,
            out,
            settings,
            until=until,
            redo_from=redo_from,
            overwrite=overwrite,
            executor=executor,
        )
        if until is None:
            print_next(out, corpus)


def _continue(
    run: Path,
    out: Path | None,
    config: str | None,
    overrides: Sequence[str],
    until: str | None,
    redo_from: str | None,
    ray: str | None,
) -> None:
    """Continue a run, such as one that was copied from another machine."""
    from depl.core.cluster import connected
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
    workers = settings.threads or None
    cluster = connected(ray, workers=workers, torch=settings.neural)
    with progress(), remarking(_what_is_kept), cluster as executor:
        err.print(f"continuing {escape(str(run))}")
        pipeline.fit(
            None,
            run,
            settings,
            until=until,
            redo_from=redo_from,
            executor=executor,
            observe=_Report(),
        )
        if until is None:
            print_next(run)


class Documents(NamedTuple):
    """What a run is made from: documents, those set aside, and the columns of a table."""

    train: Corpus
    aside: Corpus | None = None
    columns: Mapping[str, Any] | None = None


def fit_corpus(
    read: Callable[[], Documents],
    out: Path,
    settings: Config,
    *,
    until: str | None = None,
    redo_from: str | None = None,
    overwrite: bool = False,
    executor: Executor | None = None,
) -> None:
    """Make the run from documents that are read here, and print every stage.

    Once they are in the run folder, they are not in memory any more: no stage needs all at once.
    """
    from depl.pipeline import fit as pipeline

    report = _Report()
    with remarking(_what_is_kept):
        _keep_documents(read, out, settings, redo_from=redo_from, overwrite=overwrite)
        pipeline.fit(
            None,
            out,
            settings,
            until=until,
            redo_from=None if redo_from == "corpus" else redo_from,
            executor=executor,
            observe=lambda event: None if event.stage == "corpus" else report(event),
        )


def _keep_documents(
    read: Callable[[], Documents],
    out: Path,
    settings: Config,
    *,
    redo_from: str | None,
    overwrite: bool,
) -> None:
    from depl.pipeline import fit as pipeline

    corpus, aside, columns = read()
    documents, labels = count(len(corpus), "document"), count(len(corpus.labels), "label")
    unseen = int((corpus.label_counts == 0).sum())
    if unseen:
        labels += f" ({unseen:,} of them in no training document)"
    err.print(f"[bold]{documents}[/], [bold]{labels}[/] → {escape(str(out))}")
    pipeline.fit(
        corpus,
        out,
        settings,
        aside=aside,
        columns=columns,
        until="corpus",
        redo_from="corpus" if redo_from == "corpus" else None,
        overwrite=overwrite,
        observe=_Report(),
    )


def _print_aside(n: int) -> None:
    if n:
        documents = count(n, "document is", "documents are")
        said = f"{documents} not trained on, to measure quality (--no-holdout trains on all)"
    else:
        said = "none: with so few documents, each is needed for training"
    print_entry(err, "  set aside  ", said)


def _what_is_kept() -> str:
    return "finished stages are kept, and the same command continues"


class _Report:
    """Prints what becomes of the stages; a bar moves while one is at work."""

    def __init__(self) -> None:
        self._at_work = ExitStack()

    def __call__(self, event: Event) -> None:
        from depl.core.progress import busy

        self._at_work.close()
        name = f"  {event.stage:<14}"
        if event.kind == "kept":
            err.print(f"{name}[dim]up to date[/]")
        elif event.kind == "started":
            if event.detail:
                err.print(f"{name}[yellow]{escape(event.detail)}[/]")
            self._at_work.enter_context(busy(f"  {event.stage}"))
        elif event.kind == "done":
            said = f"[green]done[/] [dim]{event.seconds:.1f} s[/] {event.detail}"
            err.print(f"{name}{said.rstrip()}")
