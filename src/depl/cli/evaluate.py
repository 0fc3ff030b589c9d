"""``depl evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from depl.cli.console import count, err, out, print_json, progress
from depl.cli.measured import (
    read_measured,
    said_unknown,
    say_unknown,
    set_aside_by,
    taken_as_unknown,
    warn,
)
from depl.cli.options import (
    Encoding,
    Format,
    IdColumn,
    Json,
    LabelColumns,
    LabelsAsTheyAre,
    LabelSeparator,
    Language,
    OnError,
    PathSeparator,
    Sheet,
    Split,
    TextColumns,
    VocabularyFile,
)
from depl.cli.report_details import report_details
from depl.cli.taking import concepts
from depl.core.errors import ConfigError

if TYPE_CHECKING:
    from depl.evaluation.scores import Report

_GAP = 2  # between columns of the table
_FIRST = (6 + _GAP, 19 + _GAP)  # its first columns, as wide as "macro-F1@5 in split"
_NUMBER = 6  # how wide a percentage or a count is
_USUAL = (0.55, 1.5)  # A and B for all data sets but Amazon's and Wikipedia's large ones


def evaluate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN... [CORPUS]",
            help="One or more run folders, then a corpus folder or a table; without one, the "
            "documents that `depl fit` set aside.",
        ),
    ],
    text: TextColumns = None,
    labels: LabelColumns = None,
    id: IdColumn = None,
    label_separator: LabelSeparator = None,
    path_separator: PathSeparator = None,
    labels_as_they_are: LabelsAsTheyAre = False,
    vocabulary: VocabularyFile = None,
    language: Language = None,
    split: Split = "dev",
    parts: Annotated[
        bool, typer.Option("--parts", help="Score each part of the run on its own as well.")
    ] = False,
    k: Annotated[
        str,
        typer.Option(
            "-k",
            "--k",
            metavar="K,K,...",
            help="The values of k in P@k and the other scores; rare and frequent labels are scored "
            "at the largest.",
        ),
    ] = "1,3,5",
    propensity: Annotated[
        str,
        typer.Option(
            "--propensity",
            metavar="A,B",
            help="Propensity parameters of PSP@k; the usual ones are 0.6,2.6 for Amazon-670K and "
            "Amazon-3M, and 0.5,0.4 for Wikipedia-500K.",
        ),
    ] = "0.55,1.5",
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="HTML report to write; by default report/SPLIT.html in the first run.",
        ),
    ] = None,
    format: Format = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    on_error: OnError = "stop",
    as_json: Json = False,
) -> None:
    """Score one or more runs on a corpus; print a table or JSON, and write an HTML report."""
    from depl import api
    from depl.evaluation.html import write_report
    from depl.model.classifier import Classifier
    from depl.readers.columns import Columns
    from depl.run.folder import Run

    merge = not labels_as_they_are
    columns = Columns.asked(
        text, labels, id, label_separator, merge=merge, sheet=sheet, path=path_separator
    )
    ks = cut_offs(k)
    A, B = propensities(propensity)
    own = Run(paths[-1]).has_manifest or len(paths) == 1
    runs = paths if own else paths[:-1]
    if parts and len(runs) > 1:
        raise ConfigError(f"--parts takes a single run; got {len(runs)}. Give one.")
    with progress():
        if own:
            found = set_aside_by(runs)
        else:
            found = read_measured(
                paths[-1],
                runs,
                columns,
                split,
                vocabulary=concepts(vocabulary, language),
                format=format,
                on_error=on_error,
                encoding=encoding,
            )
        corpus = found.corpus
        details = {"corpus": found.name, "documents": f"{len(corpus):,}, {found.split}"}
        reports = []
        for run in runs:
            say_unknown(corpus, run)
            model = Classifier.load(run)
            unknown = taken_as_unknown(model) if own else []
            if unknown:
                details["not known"] = said_unknown(corpus, unknown) + "."
                warn(said_unknown(corpus, unknown))
            measure = api.evaluate_parts if parts else api.evaluate
            found_by = measure(model, corpus, ks=ks, A=A, B=B, unknown=unknown)
            reports += found_by if isinstance(found_by, list) else [found_by]
    path = report or runs[0] / "report" / f"{found.report}.html"
    details |= report_details(runs)
    write_report(path, reports, title=f"{found.name}, {found.split}", details=details)
    if as_json:
        objects = [r.to_json() for r in reports]
        names = [r.name for r in reports]
        if len(set(names)) < len(names):  # runs of one name in different folders
            names = [str(run) for run in runs]
        print_json(objects[0] if len(objects) == 1 else dict(zip(names, objects, strict=True)))
    else:
        title = f"{found.name}, {found.split}: {count(len(corpus), 'document')}"
        if (A, B) != _USUAL:
            title += f"; PSP with A = {A:g}, B = {B:g}"
        print_table(reports, title=title)
    err.print(f"[dim]Report with figures: {escape(str(path))}[/]")


def cut_offs(text: str) -> tuple[int, ...]:
    """The numbers in what was given as --k, ascending.

    Examples
    --------
    >>> cut_offs("5, 1,19")
    (1, 5, 19)
    """
    items = [item.strip() for item in text.split(",")]
    if not all(item.isascii() and item.isdigit() and int(item) > 0 for item in items):
        raise ConfigError(
            f"--k takes positive whole numbers separated by commas, such as 1,3,5,19; got {text!r}."
        )
    return tuple(sorted({int(item) for item in items}))


def propensities(text: str) -> tuple[float, float]:
    """A and B of PSP@k, from what was given as --propensity.

    Examples
    --------
    >>> propensities("0.6,2.6")
    (0.6, 2.6)
    """
    try:
        A, B = map(float, text.split(","))
    except ValueError:
        A = B = nan
    if not (0 < A < inf and 0 < B < inf):
        raise ConfigError(
            f"--propensity takes A and B, two positive numbers separated by a comma, such as "
            f"0.6,2.6; got {text!r}."
        )
    return A, B


def _headlines(ks: Sequence[int]) -> set[str]:
    """What papers compare: P and PSP at all cut-offs, the other metrics at the largest."""
    last = ks[-1]
    rest = (f"nDCG@{last}", f"R@{last}", "R@10", f"macro-F1@{last}")
    return {f"{metric}@{k}" for metric in ("P", "PSP") for k in ks} | {*rest}


def print_table(reports: Sequence[Report], *, title: str) -> None:
    """Several reports side by side, the best value of every row in bold.

    The terminal gets the figures that papers compare; JSON and the HTML report have all of them.
    Where it is too narrow for all reports, a second table has those that are left.
    """
    from rich.table import Table

    from depl.evaluation.tables import comparison

    header, rows = comparison(reports)
    headlines = _headlines(reports[0].ks)
    rows = [row for row in rows if row.group != "all" or row.metric in headlines]
    first = 0
    for last in _ends(header[2:], out.width - sum(_FIRST)):
        table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
        for name, width in zip(header, _FIRST, strict=False):
            table.add_column(name, min_width=width - _GAP)
        for name in header[2 + first : 2 + last]:
            table.add_column(escape(name), justify="right")
        previous = ""
        for row in rows:
            if previous not in ("", row.group):
                table.add_section()
                table.add_row()
            cells = [
                f"[bold]{cell}[/]" if best else cell
                for cell, best in zip(row.cells[first:last], row.best[first:last], strict=True)
            ]
            table.add_row(row.group if row.group != previous else "", row.metric, *cells)
            previous = row.group
        out.print(table)
        first, title = last, ""


def _ends(names: Sequence[str], width: int) -> list[int]:
    """Where tables end that have as many columns as there is room for, one at least."""
    ends, used = [], 0
    for i, name in enumerate(names):
        needs = max(_NUMBER, *map(len, name.split() or [""])) + _GAP
        if i and used + needs > width:
            ends.append(i)
            used = 0
        used += needs
    return [*ends, len(names)]
