"""``depl evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.table import Table

from depl import api, readers
from depl.classifier import Classifier
from depl.cli.console import err, out, print_json, progress
from depl.errors import ConfigError
from depl.evaluation import Report, comparison
from depl.report import write_report

_HEADLINES = {f"{m}@{k}" for m in ("P", "PSP") for k in (1, 3, 5)} | {
    "nDCG@5",
    "R@5",
    "R@10",
    "macro-F1@5",
}


def evaluate(
    paths: Sequence[Path],
    *,
    split: str,
    parts: bool,
    report: Path | None,
    format: str | None,
    on_error: Literal["stop", "skip"],
    as_json: bool,
) -> None:
    """Score the runs on one split; print a table or JSON, and write the HTML report."""
    if len(paths) < 2:
        raise ConfigError(
            f"depl evaluate takes one run folder or more and then a corpus folder; got only "
            f"{', '.join(map(str, paths))}. For example: depl evaluate runs/a data/my-corpus"
        )
    *runs, folder = paths
    with progress():
        data = readers.read(folder, format=format, on_error=on_error, splits=[split])
        [corpus] = data.splits.values()  # whatever the split was called
        if parts and len(runs) > 1:
            raise ConfigError(f"--parts looks into one run; got {len(runs)}. Give one.")
        if parts:
            reports = api.evaluate_parts(Classifier.load(runs[0]), corpus)
        else:
            reports = [api.evaluate(Classifier.load(run), corpus) for run in runs]
    path = report or runs[0] / "report" / f"{split}.html"
    details = {"corpus": folder.resolve().name, "split": split, "documents": f"{len(corpus):,}"}
    write_report(path, reports, title=f"{details['corpus']}, {split}", details=details)
    if as_json:
        objects = [r.to_json() for r in reports]
        names = [r.name for r in reports]
        if len(set(names)) < len(names):  # runs of one name in different folders
            names = [str(run) for run in runs]
        print_json(objects[0] if len(objects) == 1 else dict(zip(names, objects, strict=True)))
    else:
        print_table(reports, title=f"{details['corpus']}, {split}: {len(corpus):,} documents")
    err.print(f"[dim]Report with figures: {path}[/]")


def print_table(reports: Sequence[Report], *, title: str) -> None:
    """Several reports side by side, the best value of every row in bold.

    The terminal gets the figures that papers compare; JSON and the HTML report have all of them.
    """
    header, rows = comparison(reports)
    rows = [row for row in rows if row.group != "all" or row.metric in _HEADLINES]
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i < 2 else "right")
    previous = ""
    for row in rows:
        if previous not in ("", row.group):
            table.add_section()
            table.add_row()
        cells = [
            f"[bold]{cell}[/]" if best else cell
            for cell, best in zip(row.cells, row.best, strict=True)
        ]
        table.add_row(row.group if row.group != previous else "", row.metric, *cells)
        previous = row.group
    out.print(table)
