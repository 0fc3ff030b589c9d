"""The figures of a report, drawn by matplotlib as SVG: the same reports give the same bytes.

In the report page their colours are CSS variables, so that they follow the reader's light or dark
mode.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from depl.evaluation.bands import BANDS
from depl.evaluation.scores import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Draw: TypeAlias = Callable[[Figure], None]

INK, LINE, GROUND = "#5b6470", "#d3d9e0", "#eceff3"
COLOURS = ("#1d6fb8", "#d1495b", "#24936a", "#8457c9", "#b9770e", "#0d8a9e", "#a84a8f", "#66707c")
# Curves differ in their dashes too: not every reader or printer can tell the colours apart.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5))
_SHORT_NAME = 30  # characters: two such names fit beside each other in a legend


def svg(draw: Draw, size: str, *, legend: Sequence[str] = ()) -> str:
    """The drawing as an SVG file that depends on nothing but what is drawn.

    Parameters
    ----------
    draw : callable
        Draws on the matplotlib figure that it is given.
    size : str
        A key of ``SIZES``.
    legend : sequence of str
        Names of the curves, in the order of their colours, for a legend above the drawing.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks is still text in the reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=SIZES[size], layout="constrained")
        draw(figure)
        if legend:
            _add_legend(figure, legend)
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=no_metadata)
    return buffer.getvalue()


def inline_svg(draw: Draw, size: str, *, prefix: str) -> str:
    """The drawing as an element of a page.

    Its ids begin with ``prefix`` and are its own, it has no size and no style rules, and its
    colours are CSS variables.
    """
    drawn = svg(draw, size)
    text = drawn[drawn.index("<svg") :]
    text = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub("#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], found[0]), text)
    return re.sub(r' width="[^"]*" height="[^"]*"', "", text, count=1)


def draw_bins(figure: Figure, reports: Sequence[Report]) -> None:
    """The paper's Figure 1: macro-F1@k over labels from rare to common."""
    axes = figure.subplots()
    bins = reports[0].bins
    shares = [100 * b.labels_in_test / (b.last - b.first + 1) for b in bins]
    axes.stairs(shares, [0, *(b.last for b in bins)], fill=True, color=GROUND, zorder=0)
    for i, report in enumerate(reports):
        middles = [(b.first + b.last) / 2 for b in report.bins]
        curve = [b.macro_f1 for b in report.bins]
        thickness = 1.7 if len(curve) < 100 else 1.1
        axes.plot(middles, curve, color=colour(i), dashes=_dashes(i), linewidth=thickness, zorder=3)
    highest = max((b.macro_f1 for report in reports for b in report.bins), default=0)
    axes.set_ylim(0, min(100, max(1.1 * highest, 10)))
    axes.set_xlim(0, bins[-1].last if bins else 1)
    axes.set_xlabel("rank of the label, rare to common")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=int(1.3 * figure.get_figwidth()), integer=True)
    percent_axis(axes, f"{macro_f1(reports)}, %", pad=20)  # level with the upper axis' name
    # Ticks need some 24 points between them.
    ticks = _count_ticks(reports[0], room=reports[0].labels / (3 * figure.get_figwidth()))
    for rank in ticks:
        axes.axvline(rank, color=LINE, linewidth=0.8, zorder=1)
    top = axes.secondary_xaxis("top")
    top.set_xticks(list(ticks), list(ticks.values()))
    top.set_xlabel("training documents of a label", loc="right", labelpad=5)
    top.spines["top"].set_visible(False)
    top.tick_params(length=0)


def _count_ticks(report: Report, room: float) -> dict[int, str]:
    """Ranks at which labels reach a round number of training documents.

    They are exact where a band begins, and to the nearest bin elsewhere.
    """
    reached, rank = {}, 0
    for band, following in pairwise(BANDS):
        rank += int(report.bands[band.name]["labels"])
        reached[following.first] = rank
    for count in (2, 5, 20, 50, 200, 500, 1_000, 2_000, 5_000, 10_000):
        at = [b.first for b in report.bins if b.mean_count >= count]
        reached[count] = at[0] if at else report.labels
    ticks: dict[int, str] = {}
    for count, rank in reached.items():
        if rank < report.labels and all(abs(rank - other) > room for other in ticks):
            ticks[rank] = f"{count:,}"
    return ticks


def draw_bands(figure: Figure, reports: Sequence[Report]) -> None:
    """Macro-F1@k of the labels in the split: a group of bars per band, a bar per run."""
    axes = figure.subplots()
    bands = shown_bands(reports)
    width = 0.82 / len(reports)
    numbers_fit = len(reports) * len(bands) <= 2.5 * figure.get_figwidth()
    for i, report in enumerate(reports):
        places = [j + (i - (len(reports) - 1) / 2) * width for j in range(len(bands))]
        heights = [in_split(report, band) for band in bands]
        bars = axes.bar(places, heights, width * 0.9, color=colour(i), zorder=2)
        if numbers_fit:
            axes.bar_label(bars, fmt="{:.1f}", padding=2, fontsize=9.5, color=INK)
    counts = [reports[0].bands[band] for band in bands]
    ticks = [
        f"{band}\n{count['labels_in_test']:,} of\n{count['labels']:,}"
        for band, count in zip(bands, counts, strict=True)
    ]
    axes.set_xticks(range(len(bands)), ticks)
    axes.tick_params(axis="x", length=0, pad=6)
    axes.set_xlabel("training documents of a label", labelpad=8)
    axes.set_ylim(bottom=0)
    percent_axis(axes, f"{macro_f1(reports)} of the labels in the split, %", pad=10)


def draw_reliability(figure: Figure, reports: Sequence[Report]) -> None:
    """How often suggestions are right by their probability; below, how many there are of each."""
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    upper.plot([0, 100], [0, 100], color=LINE, linewidth=1.2, zorder=1)
    highest = 1
    for i, report in enumerate(reports):
        found = report.reliability
        if found is None:
            continue
        filled = found.counts > 0
        points = 100 * found.probability[filled], 100 * found.right[filled]
        upper.plot(
            *points, color=colour(i), dashes=_dashes(i), linewidth=1.7, marker="o", ms=4, zorder=3
        )
        edges = [100 * b / len(found.counts) for b in range(len(found.counts) + 1)]
        lower.stairs(found.counts, edges, color=colour(i), linewidth=1.5)
        highest = max(highest, int(found.counts.max()))
    upper.set_xlim(0, 100)
    upper.set_ylim(0, 100)
    percent_axis(upper, "Suggestions that are right, %", pad=8)
    lower.set_ylim(0, 1.1 * highest)
    lower.yaxis.set_major_formatter("{x:,.0f}")
    lower.locator_params(axis="y", nbins=3, integer=True)
    lower.set_xlabel("probability, %")
    percent_axis(lower, "Suggestions", pad=6)


def percent_axis(axes: Axes, head: str, pad: float) -> None:
    """Faint horizontal lines, no axis line, and the name of the quantity on top."""
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.set_title(head, loc="left", fontsize=10.5, y=1, pad=pad)


def _add_legend(figure: Figure, names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    columns = 2 if max(map(len, names)) <= _SHORT_NAME else 1
    figure.set_figheight(figure.get_figheight() + 0.22 * -(-len(names) // columns))
    lines = [
        Line2D([], [], color=colour(i), dashes=_dashes(i), linewidth=2) for i in range(len(names))
    ]
    # matplotlib leaves out names that begin with an underscore, so they are set afterwards.
    legend = figure.legend(
        lines, [""] * len(names), loc="outside upper left", frameon=False, ncols=columns
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text("".join(c if c.isprintable() else " " for c in name))


def colour(i: int) -> str:
    """The colour of the i-th run, in every figure."""
    return COLOURS[i % len(COLOURS)]


def legend_style(i: int) -> tuple[str, str]:
    """The stroke and the dashes of the i-th run in a page's legend, as CSS."""
    # The lines of the legend are thicker than the curves, and so are their dashes longer.
    dashes = " ".join(f"{2.5 * part:g}" for part in _dashes(i)) or "none"
    return _VARIABLES[colour(i)], dashes


def _dashes(i: int) -> tuple[float, ...]:
    """The dashes of the i-th curve; a ninth curve shares the first's colour, not its dashes."""
    return DASHES[(i + i // len(COLOURS)) % len(DASHES)]


def macro_f1(reports: Sequence[Report]) -> str:
    """The name of the measure that the figures show."""
    return f"Macro-F1@{reports[0].k}"


def shown_bands(reports: Sequence[Report]) -> list[str]:
    """Names of the bands that have labels in the split of some report."""
    return [b.name for b in BANDS if any(r.bands[b.name]["labels_in_test"] for r in reports)]


def in_split(report: Report, band: str) -> float:
    """Macro-F1 of a band's labels that occur in the split."""
    return report.bands[band][f"macroF1@{report.k}_in_test"]


SIZES = {"wide": (7.2, 3.9), "narrow": (4.2, 3.7)}  # inches: for a screen and for a phone
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # real text, which takes the page's font and can be selected
    "svg.hashsalt": "depl",
    "text.parse_math": False,  # a run may be called "a$b$"
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
}
_VARIABLES = {
    INK: "var(--ink2)",
    LINE: "var(--line)",
    GROUND: "var(--ground)",
    **{colour: f"var(--s{i})" for i, colour in enumerate(COLOURS)},
}
