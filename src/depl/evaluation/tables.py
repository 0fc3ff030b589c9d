"""Several reports side by side: the rows of the table that the terminal and the page show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from depl.evaluation.bands import BANDS
from depl.evaluation.scores import Report


class Row(NamedTuple):
    """One metric of several reports.

    ``group`` is "all" or the name of a band. A value is None where a report does not have it.
    """

    group: str
    metric: str
    values: tuple[float | None, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The values as text: counts with commas, percentages with two decimals."""
        return tuple("–" if v is None else _text(v) for v in self.values)

    @property
    def best(self) -> tuple[bool, ...]:
        """Which values are the best to two decimals; none of them where all are equal."""
        shown = [round(v, 2) if isinstance(v, float) else None for v in self.values]
        scores = [v for v in shown if v is not None]
        if len(set(scores)) < 2:
            return (False,) * len(shown)
        best = min(scores) if self.metric.startswith("ECE") else max(scores)
        return tuple(v == best for v in shown)


def names(reports: Sequence[Report]) -> list[str]:
    """The names of the reports; "run 1" and so on for those without one."""
    return [report.name or f"run {i}" for i, report in enumerate(reports, 1)]


def comparison(reports: Sequence[Report]) -> tuple[list[str], list[Row]]:
    """Several reports side by side.

    Returns
    -------
    header : list of str
        "labels", "metric", and the name of each report.
    rows : list of Row
        All metrics over all labels, then each band's at its report's largest k. Bands that are
        empty in every report are left out.
    """
    header = ["labels", "metric", *names(reports)]
    rows = _rows("all", [report.scores for report in reports])
    for band in BANDS:
        columns = [_at_k(report.bands[band.name], report.k) for report in reports]
        if any(column["labels"] for column in columns):
            rows += _rows(band.name, columns)
    return header, rows


def _rows(group: str, columns: Sequence[Mapping[str, float]]) -> list[Row]:
    keys = list(dict.fromkeys(key for column in columns for key in column))
    return [Row(group, _title(key), tuple(c.get(key) for c in columns)) for key in keys]


def _at_k(band: Mapping[str, float], k: int) -> dict[str, float]:
    """A band's scores without those at smaller cut-offs, which would make the table too long."""
    wanted = ("labels", "labels_in_test", f"macroF1@{k}", f"macroF1@{k}_in_test", f"R@{k}", "R@10")
    return {key: band[key] for key in wanted if key in band}


def _title(key: str) -> str:
    return key.replace("macroF1", "macro-F1").replace("_in_test", " in split")


def _text(value: float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
