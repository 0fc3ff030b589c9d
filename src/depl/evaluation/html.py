"""One self-contained HTML page about one or several evaluations, with its figures.

The page is the Jinja2 template ``page/report.html``: its tables are loops and everything in it is
escaped, which ``string.Template`` would leave to Python code. Jinja2 is small, comes with PyTorch
anyway, and is imported only when a page is written. The same reports give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from depl.core.errors import DeplError
from depl.core.storage import write_text
from depl.evaluation.figures import (
    SIZES,
    draw_bands,
    draw_bins,
    draw_reliability,
    in_split,
    inline_svg,
    legend_style,
    macro_f1,
    shown_bands,
    svg,
)
from depl.evaluation.mistakes import Mistakes
from depl.evaluation.scores import BIN_SIZE, Report
from depl.evaluation.sentences import summary
from depl.evaluation.tables import Row, comparison, names

if TYPE_CHECKING:
    from jinja2 import Environment

_DRAWINGS = {"bins": draw_bins, "bands": draw_bands, "reliability": draw_reliability}


def write_report(
    path: Path, reports: Sequence[Report], *, title: str, details: Mapping[str, str]
) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
        The file to write, whole or not at all.
    reports : sequence of Report
        One per run, on the same split, in the order of the page's columns.
    title : str
        The heading.
    details : mapping of str to str
        What the reader should know about the runs: corpus, split, version, settings.
    """
    _require_some(reports)
    page = _environment().get_template("report.html")
    write_text(path, page.render(title=title, details=details, **_values(reports)))


def save_figures(folder: Path, reports: Sequence[Report]) -> list[Path]:
    """Write ``figure1.svg`` and ``bands.svg``, each with a legend, and return their paths."""
    _require_some(reports)
    drawings: dict[str, Callable[..., None]] = {"figure1.svg": draw_bins, "bands.svg": draw_bands}
    for name, draw in drawings.items():
        drawn = svg(partial(draw, reports=reports), "wide", legend=names(reports))
        write_text(folder / name, drawn)
    return [folder / name for name in drawings]


def _require_some(reports: Sequence[Report]) -> None:
    if not reports:
        raise DeplError("There is nothing to show: got no report. Evaluate at least one run first.")


def _environment() -> Environment:
    """Jinja2 as the page needs it: escapes everything, and fails on a name it does not know."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def printable(value: object) -> object:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        seen = value.replace("\N{SOFT HYPHEN}", "")  # of books' texts; nobody sees it
        return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in seen)

    return Environment(
        loader=PackageLoader("depl.evaluation", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _values(reports: Sequence[Report]) -> dict[str, Any]:
    """What the template shows."""
    named = list(zip(names(reports), reports, strict=True))
    overall, bands = _groups(reports)
    calibrated = [(name, r.reliability) for name, r in named if r.reliability is not None]
    return {
        "reports": reports,
        "first": reports[0],
        "names": names(reports),
        "overall": overall,
        "bands": bands,
        "macro_f1": macro_f1(reports),
        "bin_size": BIN_SIZE,
        "quarters": [(name, *_quarters(report)) for name, report in named if report.bins],
        "in_split": {b: [in_split(report, b) for report in reports] for b in shown_bands(reports)},
        "calibrated": calibrated,
        "calibrated_columns": [f"{n}: {x}" for n, _ in calibrated for x in ("count", "correct, %")],
        "legend": [(name, *legend_style(i)) for i, (name, _) in enumerate(named)],
        "sentences": [(name, summary(report)) for name, report in named],
        "weak": _weakest(named),
        "drawings": partial(_drawings, reports),
    }


def _weakest(named: Sequence[tuple[str, Report]]) -> tuple[str, Mistakes] | None:
    """The run whose mistakes are shown, the best one, and these mistakes."""
    found = [(name, report) for name, report in named if report.mistakes is not None]
    if not found:
        return None
    name, report = max(found, key=lambda pair: pair[1].scores[f"P@{pair[1].k}"])
    assert report.mistakes is not None
    return name, report.mistakes


def _drawings(reports: Sequence[Report], kind: str) -> Iterator[tuple[str, str]]:
    """A figure in every size, as SVG."""
    draw = partial(_DRAWINGS[kind], reports=reports)
    for size in SIZES:
        yield size, inline_svg(draw, size, prefix=f"{kind}-{size}")


def _quarters(report: Report) -> tuple[float, float]:
    """Mean macro-F1 of the rarest and of the most common quarter of the labels."""
    scores = [b.macro_f1 for b in report.bins]
    quarter = max(1, len(scores) // 4)
    return fmean(scores[:quarter]), fmean(scores[-quarter:])


class _Group(NamedTuple):
    """Rows of a table that belong together: one metric at all cut-offs, or one band.

    ``sizes`` has the numbers of a band's labels and of those in the split, where all runs agree.
    """

    rows: Sequence[Row]
    band: str | None = None
    sizes: tuple[float | None, ...] | None = None


def _groups(reports: Sequence[Report]) -> tuple[list[_Group], list[_Group]]:
    """The rows over all labels by metric, and those of the bands."""
    _, rows = comparison(reports)
    by_band = {band: list(group) for band, group in groupby(rows, key=lambda row: row.group)}
    families = groupby(by_band.pop("all"), key=lambda row: row.metric.split("@")[0])
    return (
        [_Group(list(family)) for _, family in families],
        [_band_group(band, rows) for band, rows in by_band.items()],
    )


def _band_group(band: str, rows: list[Row]) -> _Group:
    """Say how many labels a band has once, where all runs agree on it."""
    counts, scores = rows[:2], rows[2:]
    if all(len(set(row.values)) == 1 for row in counts):
        return _Group(scores, band, tuple(row.values[0] for row in counts))
    return _Group(rows, band)
