"""The paper's Figures 1, 3 and 4 from what was measured, in the style of depl's own reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from measured import TAIL_ALL, Measured, Score
from paper import CURVES, DRAWN, LENGTHS, SYSTEMS

from depl.evaluation.figures import COLOURS, INK, LINE, draw_bins, svg
from depl.evaluation.scores import Bin, Report
from depl.evaluation.tables import names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 60  # of a curve: more are only noise to the eye
# As in Figure 1, whose curves take the first colours; the other peers share a grey.
COLOUR = dict(zip((*CURVES, "depl+c"), COLOURS, strict=False))
COLOUR["de-ret"] = COLOUR["depl"]  # both rank by labels' texts


def figure_1(measured: Measured) -> str | None:
    """Macro-F1 from rare to common labels; None where there is nothing to draw."""
    systems = curves(measured)
    reports = [mean_curve(list(measured.reports[s].values()), DRAWN[s]) for s in systems]
    if not reports:
        return None
    return svg(partial(draw_bins, reports=reports), "wide", legend=names(reports))


def curves(measured: Measured) -> list[str]:
    """The systems of Figure 1 that were measured label by label, not just as a whole."""
    known = [(s, measured.reports.get(s, {}).values()) for s in CURVES]
    return [s for s, reports in known if reports and all(r.bins for r in reports)]


def together(n_bins: int) -> int:
    """How many neighbouring bins make one point of Figure 1."""
    return -(-n_bins // MOST_POINTS)


def mean_curve(reports: Sequence[Report], name: str) -> Report:
    """One report whose bins are the means of several seeds', and of neighbours if they are many."""
    columns = zip(*(report.bins for report in reports), strict=True)
    bins = [b[0]._replace(macro_f1=fmean(x.macro_f1 for x in b)) for b in columns]
    n = together(len(bins))
    joined = [_join(bins[i : i + n]) for i in range(0, len(bins), n)]
    return replace(reports[0], name=name, bins=tuple(joined))


def _join(bins: Sequence[Bin]) -> Bin:
    sizes = [b.last - b.first + 1 for b in bins]

    def mean(values: Sequence[float]) -> float:
        return sum(v * n for v, n in zip(values, sizes, strict=True)) / sum(sizes)

    return Bin(
        first=bins[0].first,
        last=bins[-1].last,
        mean_count=mean([b.mean_count for b in bins]),
        labels_in_test=sum(b.labels_in_test for b in bins),
        macro_f1=mean([b.macro_f1 for b in bins]),
    )


def figure_3(corpora: Mapping[str, Measured]) -> str | None:
    """Macro-F1 of the rare labels, a bar for each system, a panel for each corpus."""
    found = {name: scores(measured, SYSTEMS) for name, measured in corpora.items()}
    found = {name: rows for name, rows in found.items() if rows}
    systems = [s for s in SYSTEMS if any(s in rows for rows in found.values())]

    def draw(figure: Figure) -> None:
        figure.set_figheight(1.1 + 0.3 * len(systems))
        panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axes, (name, rows) in zip(panels, found.items(), strict=True):
            _bars(axes, systems, rows)
            axes.set_title(corpora[name].title, loc="left", fontsize=10.5)
        said = dict.fromkeys(_measure(corpora[name]) for name in found)
        figure.supxlabel(", ".join(said), fontsize=10.5, color=INK)
        panels[0].set_yticks(range(len(systems)), [DRAWN[s] for s in systems])
        panels[0].invert_yaxis()  # once: the panels share it

    return svg(draw, "wide") if found else None


def _bars(axes: Axes, systems: Sequence[str], rows: Mapping[str, Score]) -> None:
    places = [i for i, s in enumerate(systems) if s in rows]
    bars = [rows[systems[i]] for i in places]
    colours = [COLOUR.get(systems[i], COLOURS[-1]) for i in places]
    axes.barh(places, [b.mean for b in bars], 0.72, color=colours, zorder=2)
    highest = max(b.mean + (b.spread or 0) for b in bars)
    for place, bar in zip(places, bars, strict=True):
        spread = bar.spread or 0.0
        if bar.spread is not None:
            axes.errorbar(bar.mean, place, xerr=spread, color=INK, capsize=2.5, lw=1.1, zorder=3)
        end = bar.mean + spread + 0.015 * highest
        axes.text(end, place, f"{bar.mean:.2f}", va="center", fontsize=9.5)
    axes.set_xlim(0, 1.16 * highest if highest else 1)
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def figure_4(corpora: Mapping[str, Measured]) -> str | None:
    """Macro-F1 of the rare labels over the length of a label's text, a panel for each corpus."""
    found = {name: scores(measured, LENGTHS) for name, measured in corpora.items()}
    found = {name: rows for name, rows in found.items() if len(rows) > 1}

    def draw(figure: Figure) -> None:
        figure.set_figheight(3.2)
        panels = figure.subplots(1, len(found), squeeze=False)[0]
        for i, (axes, (name, rows)) in enumerate(zip(panels, found.items(), strict=True)):
            places = [j for j, system in enumerate(LENGTHS) if system in rows]
            points = [rows[system] for system in LENGTHS if system in rows]
            means, spreads = [p.mean for p in points], [p.spread or 0.0 for p in points]
            axes.errorbar(
                places, means, spreads, color=COLOURS[i], marker="o", ms=5, lw=1.7, capsize=3
            )
            for place, point in zip(places, points, strict=True):
                above = (0, 9 + 30 * (point.spread or 0) / max(means))
                axes.annotate(
                    f"{point.mean:.2f}", (place, point.mean), above, textcoords="offset points",
                    ha="center", fontsize=9.5,
                )  # fmt: skip
            axes.set_xticks(range(len(LENGTHS)), list(LENGTHS.values()), fontsize=8.5)
            axes.set_xlim(-0.5, len(LENGTHS) - 0.5)
            axes.set_ylim(0, 1.2 * max(means) or 1)
            axes.grid(axis="y", color=LINE, linewidth=0.6)
            axes.spines["left"].set_visible(False)
            head = f"{corpora[name].title}: {_measure(corpora[name])}"
            axes.set_title(head, loc="left", fontsize=10.5)

    return svg(draw, "wide") if found else None


def _measure(measured: Measured) -> str:
    return f"macro-F1@{measured.k} of rare labels, %"


def scores(measured: Measured, systems: Mapping[str, str]) -> dict[str, Score]:
    """Macro-F1 over all labels with 1 to 9 training documents, of the systems that are there."""
    return {s: measured.score(s, TAIL_ALL) for s in systems if s in measured.reports}
