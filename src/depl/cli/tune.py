"""``depl tune``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from depl.cli.console import copied, count, err, progress
from depl.cli.console import out as console
from depl.cli.interrupts import remarking
from depl.cli.options import CorpusFolder, Format, Overrides, Ray
from depl.core.errors import MissingExtraError
from depl.run.recipes import RECIPES

if TYPE_CHECKING:
    from depl.tuning.search import Trial

_SHOWN = 5  # trials in the table, the best


def tune(
    corpus: CorpusFolder,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder for the results of the search.")
    ],
    trials: Annotated[
        int,
        typer.Option(
            "--trials",
            metavar="N",
            min=1,
            help="How many settings to try, including those of earlier calls.",
        ),
    ] = 30,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="SECTION.KEY=LOW..HIGH|A,B,...",
            help="A setting to vary, and its range or values; may be repeated. By default, five "
            "settings of the sparse half are varied.",
        ),
    ] = None,
    documents: Annotated[
        int,
        typer.Option(
            "--documents",
            metavar="N",
            min=50,
            help="Training documents of a trial; poor ones stop after a quarter or half of them.",
        ),
    ] = 4_000,
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            metavar="NAME[+NAME...]",
            help="Score to maximise, or several, whose mean is maximised.",
        ),
    ] = "P@5+PSP@5",
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE|RECIPE",
            help=f"Settings to start from: a TOML file, or a recipe ({', '.join(RECIPES)}).",
        ),
    ] = None,
    overrides: Overrides = None,
    format: Format = None,
    ray: Ray = None,
) -> None:
    """Search for better settings on a slice of the training documents.

    Repeat the command to continue an interrupted search; no dev or test split is read.
    """
    if importlib.util.find_spec("optuna") is None:  # before anything is read
        raise MissingExtraError("optuna", "tune", "Tuning")
    from depl.core.cluster import connected
    from depl.readers.columns import Columns
    from depl.readers.corpora import read_records
    from depl.run.config import Config
    from depl.tuning.results import BEST, PICTURE, TABLE, best_of, write_results
    from depl.tuning.search import Search
    from depl.tuning.space import parse_space

    base = Config.load(config, overrides or [])
    space = parse_space(vary or [], base)
    with progress(), connected(ray, workers=base.threads or None) as executor:
        data, _ = read_records(corpus, Columns.asked(), format=format, splits=["train"])
        search = Search(
            data.train,
            out,
            base=base,
            space=space,
            documents=documents,
            measure=measure,
            executor=executor,
        )
        part = "by the SVM alone" if search.svm_alone else "by all parts of a run"
        sizes = ", ".join(f"{size:,}" for size in search.sizes)
        err.print(f"slices of {sizes} documents, ranked {part} → {escape(str(out))}")
        with remarking(lambda: "finished trials are kept, and the same command continues"):
            found = search.run(trials, _report)
    best = best_of(found)
    write_results(out, found, search.config(best), measure)
    console.print(_table(found, best, measure))
    err.print(f"\n{escape(str(out))}: {BEST}, {TABLE}, {PICTURE}\n\nNext:")
    command = f"depl fit {copied(corpus)} --out RUN --config {copied(out / BEST)}"
    err.print(f"  {command}", soft_wrap=True)


def _report(trial: Trial) -> None:
    settings = " ".join(f"{name}={_short(value)}" for name, value in trial.settings.items())
    stopped = f"stopped at {count(trial.documents, 'document')}  " if trial.stopped else ""
    err.print(
        f"  {trial.number:<4} {trial.score:6.2f}  [dim]{trial.seconds:.0f} s[/]  {stopped}"
        f"{escape(settings)}"
    )


def _table(trials: list[Trial], best: Trial, measure: str) -> Table:
    whole = sorted((x for x in trials if not x.stopped), key=lambda x: (-x.score, x.number))
    shown = whole[:_SHOWN]
    first = next((x for x in whole if x.number == 0), None)
    if first is not None and first not in shown:
        shown.append(first)
    table = Table("trial", measure, *(x.rpartition(".")[2] for x in best.settings), box=None)
    for x in shown:
        name = f"{x.number}, unchanged" if x is first else str(x.number)
        table.add_row(name, f"{x.score:.2f}", *map(_short, x.settings.values()))
    return table


def _short(value: str) -> str:
    try:
        return f"{float(value):.3g}"
    except ValueError:
        return value
