"""One self-contained HTML page about one or several evaluations, with its figures.

The page is a list of sections; each is a function that takes the reports and gives HTML. Figures
are matplotlib's SVG, put into the page with their colours turned into CSS variables, so that they
follow the reader's light or dark mode. The same reports give the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from depl._io import write_text
from depl.errors import DeplError
from depl.evaluation import BANDS, BIN_SIZE, Report, Row, comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Draw: TypeAlias = Callable[[Figure, Sequence[Report]], None]

INK, LINE, GROUND = "#5b6470", "#d3d9e0", "#eceff3"
COLOURS = ("#1d6fb8", "#d1495b", "#24936a", "#8457c9", "#b9770e", "#0d8a9e", "#a84a8f", "#66707c")
# Curves differ in their dashes too: colour alone is not enough for every eye and every printer.
DASHES = ((), (5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5))


def write_report(
    path: Path, reports: Sequence[Report], *, title: str, details: Mapping[str, str]
) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
        The file to write, whole or not at all.
    reports : sequence of Report
        One a run, on the same split; they stand side by side in this order.
    title : str
        The heading.
    details : mapping of str to str
        What the reader should know about the runs: corpus, split, version, settings.
    """
    _require_some(reports)
    sections = (_scores, _rare_to_common, _bands, _definitions)
    facts = "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>\n" for k, v in details.items())
    page = _PAGE.format(
        title=_text(title),
        css=_CSS,
        facts=f"<dl>\n{facts}</dl>" if facts else "",
        sections="\n".join(section(reports) for section in sections),
    )
    write_text(path, page)


def save_figures(folder: Path, reports: Sequence[Report]) -> list[Path]:
    """Write ``figure1.svg`` and ``bands.svg``, each with a legend, and give their paths."""
    _require_some(reports)
    drawings: dict[str, Draw] = {"figure1.svg": _draw_bins, "bands.svg": _draw_bands}
    for name, draw in drawings.items():
        write_text(folder / name, _svg(draw, reports, "wide", legend=True))
    return [folder / name for name in drawings]


def _require_some(reports: Sequence[Report]) -> None:
    if not reports:
        raise DeplError("There is nothing to show: got no report. Evaluate at least one run first.")


# ---- sections


def _scores(reports: Sequence[Report]) -> str:
    header, rows = comparison(reports)
    first = reports[0]
    caption = f"{first.documents:,} documents, {first.labels:,} labels; in percent"
    families = groupby(
        [row for row in rows if row.group == "all"], key=lambda row: row.metric.split("@")[0]
    )
    groups = [("", list(family)) for _, family in families]
    return _section("scores", "Scores", _table(caption, header[2:], groups))


def _rare_to_common(reports: Sequence[Report]) -> str:
    head = "From rare to common labels"
    bins = reports[0].bins
    if not bins:
        return _section("rare-to-common", head, "<p>The label set is empty.</p>")
    quarter = max(1, len(bins) // 4)
    summary = "; ".join(
        f"{name}: {_mean(b.macro_f1 for b in r.bins[:quarter]):.1f} for the rarest quarter of the "
        f"labels, {_mean(b.macro_f1 for b in r.bins[-quarter:]):.1f} for the most common quarter"
        for name, r in zip(_names(reports), reports, strict=True)
    )
    figure = _figure(
        _draw_bins,
        reports,
        alt=f"Line chart of {_macro_f1(reports)} over labels from rare to common. {summary}.",
        caption=f"{_macro_f1(reports)} over all labels, ordered from rare to common by their "
        f"number of training documents; each point is the mean of {BIN_SIZE} labels. The grey "
        "ground is the share of them that occur in this split: no curve can rise above it.",
    )
    return _section("rare-to-common", head, figure + _numbers_behind(reports))


def _numbers_behind(reports: Sequence[Report]) -> str:
    """Figure 1 as a table, folded away."""
    header = ("labels", "mean training count", "labels in split", *_names(reports))
    columns = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
    rows = "".join(
        f'<tr><th scope="row">{b.first:,}–{b.last:,}</th><td>{b.mean_count:,.1f}</td>'
        f"<td>{b.labels_in_test}</td>"
        + "".join(
            f"<td>{r.bins[i].macro_f1:.2f}</td>" if i < len(r.bins) else "<td>–</td>"
            for r in reports
        )
        + "</tr>\n"
        for i, b in enumerate(reports[0].bins)
    )
    return (
        "<details>\n<summary>The numbers behind the figure</summary>\n"
        f"{_SCROLL}\n<table>\n<thead><tr>{columns}</tr></thead>\n"
        f"<tbody>\n{rows}</tbody>\n</table>\n</div>\n</details>"
    )


def _bands(reports: Sequence[Report]) -> str:
    header, rows = comparison(reports)
    summary = "; ".join(
        f"{band} training documents: "
        + ", ".join(
            f"{n} {_in_split(r, band):.1f}" for n, r in zip(header[2:], reports, strict=True)
        )
        for band in _shown_bands(reports)
    )
    figure = _figure(
        _draw_bands,
        reports,
        alt=f"Bar chart of {_macro_f1(reports)} by band. {summary}.",
        caption=f"{_macro_f1(reports)} over the labels of a band that occur in this split; below "
        "each band, how many of its labels do.",
    )
    groups = [
        _with_counts_in_head(band, list(group))
        for band, group in groupby(rows, key=lambda row: row.group)
        if band != "all"
    ]
    table = _table("By number of training documents; in percent", header[2:], groups)
    return _section("bands", "Frequency bands", (figure if summary else "") + table)


def _with_counts_in_head(band: str, rows: list[Row]) -> tuple[str, list[Row]]:
    """Say how many labels a band has once, where all runs agree on it."""
    head = f"<b>{band}</b> training documents"
    if all(len(set(row.values)) == 1 for row in rows[:2]):
        head += ": " + ", ".join(f"{row.cells[0]} {row.metric}" for row in rows[:2])
        rows = rows[2:]
    return head, rows


def _definitions(reports: Sequence[Report]) -> str:
    a, b = reports[0].propensity
    entries = {
        "P@k": "right labels among the first k, divided by k always.",
        "PSP@k": "precision in which a right label weighs 1/p, more the rarer it is, divided by "
        f"the most that could be reached; propensities from training counts, A = {a}, B = {b}.",
        "nDCG@k": "right labels discounted by 1/log2(place + 1), divided by the best reachable.",
        "R@k": "share of a document's labels among the first k. In a band: share of all its "
        "(document, label) pairs.",
        "RP@k": "right labels among the first k, divided by min(k, labels of the document).",
        "macro-F1@k": "mean over labels of 2tp / (2tp + fp + fn), counted over the first k of "
        "every document: over all labels, or over those that occur in this split (in split).",
    }
    items = "".join(f"<dt>{key}</dt><dd>{_text(value)}</dd>\n" for key, value in entries.items())
    return _section("definitions", "How to read the numbers", f"<dl>\n{items}</dl>")


# ---- pieces of HTML


def _section(anchor: str, head: str, body: str) -> str:
    return f'<section id="{anchor}">\n<h2>{_text(head)}</h2>\n{body}\n</section>'


def _table(caption: str, header: Sequence[str], groups: Sequence[tuple[str, list[Row]]]) -> str:
    """Rows in groups under a head (HTML), with the best value of each row in bold."""
    columns = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
    parts = [f"<caption>{_text(caption)}</caption>\n<thead><tr><td></td>{columns}</tr></thead>\n"]
    for head, rows in groups:
        parts.append("<tbody>\n")
        if head:
            span = len(header) + 1
            parts.append(f'<tr><th scope="rowgroup" colspan="{span}">{head}</th></tr>\n')
        for row in rows:
            cells = zip(row.cells, row.best, strict=True)
            tds = "".join(f"<td><b>{c}</b></td>" if best else f"<td>{c}</td>" for c, best in cells)
            parts.append(f'<tr><th scope="row">{_text(row.metric)}</th>{tds}</tr>\n')
        parts.append("</tbody>\n")
    return f"{_SCROLL}\n<table>\n{''.join(parts)}</table>\n</div>"


def _figure(draw: Draw, reports: Sequence[Report], *, alt: str, caption: str) -> str:
    """A drawing in the page's colours, wide and narrow, with its legend as text that wraps."""
    kind = draw.__name__.removeprefix("_draw_")
    keys = "".join(
        '<li><svg viewBox="0 0 28 8" aria-hidden="true"><path d="M0 4H28" style="'
        f"stroke: {_VARIABLES[_colour(i)]}; stroke-dasharray: {_legend_dashes(i)}"
        f'"/></svg>{_text(name)}</li>\n'
        for i, name in enumerate(_names(reports))
    )
    drawings = "".join(
        f'<div class="{size}">\n{_inline_svg(draw, reports, size, f"{kind}-{size}", alt)}</div>\n'
        for size in _SIZES
    )
    return (
        f'<figure>\n<ul class="legend {kind}">\n{keys}</ul>\n{drawings}'
        f"<figcaption>{_text(caption)}</figcaption>\n</figure>\n"
    )


def _inline_svg(draw: Draw, reports: Sequence[Report], size: str, prefix: str, alt: str) -> str:
    """SVG that can stand in a page: ids of its own, no style rules, CSS variables for colours."""
    svg = _svg(draw, reports, size, legend=False)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub("#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], found[0]), svg)
    attributes = f' role="img" aria-label="{_text(alt)}"'
    return re.sub(r' width="[^"]*" height="[^"]*"', lambda _: attributes, svg, count=1)


def _names(reports: Sequence[Report]) -> list[str]:
    return comparison(reports)[0][2:]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / max(1, len(listed))


def _macro_f1(reports: Sequence[Report]) -> str:
    return f"Macro-F1@{reports[0].k}"


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _shown_bands(reports: Sequence[Report]) -> list[str]:
    """Names of the bands that have labels in the split of some report."""
    names = [band.name for band in BANDS]
    return [name for name in names if any(r.bands[name]["labels_in_test"] for r in reports)]


def _in_split(report: Report, band: str) -> float:
    return report.bands[band][f"macroF1@{report.k}_in_test"]


# ---- drawings


def _svg(draw: Draw, reports: Sequence[Report], size: str, *, legend: bool) -> str:
    """The drawing as SVG, a function of the reports alone."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks is still text, set by the reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=_SIZES[size], layout="constrained")
        draw(figure, reports)
        if legend:
            _add_legend(figure, _names(reports))
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=no_metadata)
    return buffer.getvalue()


def _draw_bins(figure: Figure, reports: Sequence[Report]) -> None:
    """The paper's Figure 1: macro-F1@k over labels from rare to common."""
    axes = figure.subplots()
    bins = reports[0].bins
    shares = [100 * b.labels_in_test / (b.last - b.first + 1) for b in bins]
    axes.stairs(shares, [0, *(b.last for b in bins)], fill=True, color=GROUND, zorder=0)
    for i, report in enumerate(reports):
        middles = [(b.first + b.last) / 2 for b in report.bins]
        curve = [b.macro_f1 for b in report.bins]
        thickness = 1.7 if len(curve) < 100 else 1.1
        (line,) = axes.plot(middles, curve, color=_colour(i), linewidth=thickness, zorder=3)
        if DASHES[_dash(i)]:
            line.set_dashes(DASHES[_dash(i)])
    highest = max((b.macro_f1 for report in reports for b in report.bins), default=0)
    axes.set_ylim(0, min(100, max(1.1 * highest, 10)))
    axes.set_xlim(0, bins[-1].last if bins else 1)
    axes.set_xlabel("rank of the label, rare to common")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=int(1.3 * figure.get_figwidth()), integer=True)
    _percent_axis(axes, f"{_macro_f1(reports)}, %", pad=20)  # level with the upper axis' name
    # A tick needs some 24 points to its neighbour.
    ticks = _count_ticks(reports[0], room=reports[0].labels / (3 * figure.get_figwidth()))
    for rank in ticks:
        axes.axvline(rank, color=LINE, linewidth=0.8, zorder=1)
    top = axes.secondary_xaxis("top")
    top.set_xticks(list(ticks), list(ticks.values()))
    top.set_xlabel("training documents of a label", loc="right", labelpad=5)
    top.spines["top"].set_visible(False)
    top.tick_params(length=0)


def _count_ticks(report: Report, room: float) -> dict[int, str]:
    """Ranks at which labels reach so many training documents: the bands' exactly, others nearly."""
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


def _draw_bands(figure: Figure, reports: Sequence[Report]) -> None:
    """Macro-F1@k of the labels in the split, one group of bars a band, one bar a run."""
    axes = figure.subplots()
    bands = _shown_bands(reports)
    width = 0.82 / len(reports)
    numbers_fit = len(reports) * len(bands) <= 2.5 * figure.get_figwidth()
    for i, report in enumerate(reports):
        places = [j + (i - (len(reports) - 1) / 2) * width for j in range(len(bands))]
        heights = [_in_split(report, band) for band in bands]
        bars = axes.bar(places, heights, width * 0.9, color=_colour(i), zorder=2)
        if numbers_fit:
            axes.bar_label(bars, fmt="{:.1f}", padding=2, fontsize=9.5, color=INK)
    counts = [reports[0].bands[band] for band in bands]
    names = [
        f"{band}\n{count['labels_in_test']:,} of\n{count['labels']:,}"
        for band, count in zip(bands, counts, strict=True)
    ]
    axes.set_xticks(range(len(bands)), names)
    axes.tick_params(axis="x", length=0, pad=6)
    axes.set_xlabel("training documents of a label", labelpad=8)
    axes.set_ylim(bottom=0)
    _percent_axis(axes, f"{_macro_f1(reports)} of the labels in the split, %", pad=10)


def _percent_axis(axes: Axes, head: str, pad: float) -> None:
    """Faint lines across, no axis line, and what is shown in words on top."""
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.set_title(head, loc="left", fontsize=10.5, y=1, pad=pad)


def _add_legend(figure: Figure, names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    figure.set_figheight(figure.get_figheight() + 0.22 * len(names))
    lines = [Line2D([], [], color=_colour(i), linewidth=2.5) for i in range(len(names))]
    # matplotlib leaves out names that begin with an underscore, so they are set afterwards.
    legend = figure.legend(lines, [""] * len(names), loc="outside upper left", frameon=False)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text("".join(c if c.isprintable() else " " for c in name))


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _dash(i: int) -> int:
    """Which dashes the i-th curve has; a ninth curve shares the first's colour, not its dashes."""
    return (i + i // len(COLOURS)) % len(DASHES)


def _legend_dashes(i: int) -> str:
    """The same dashes for the thicker line of a legend."""
    return " ".join(f"{2.5 * part:g}" for part in DASHES[_dash(i)]) or "none"


_SIZES = {"wide": (7.2, 3.9), "narrow": (4.2, 3.7)}  # inches: for a screen and for a phone
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # real text: it takes the page's font and can be selected
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
_SCROLL = '<div class="scroll" role="region" aria-label="Table" tabindex="0">'
_CSS = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1b2128; --ink2: #5b6470;
  --line: #d3d9e0; --ground: #eceff3; --s0: #1d6fb8; --s1: #d1495b; --s2: #24936a; --s3: #8457c9;
  --s4: #b9770e; --s5: #0d8a9e; --s6: #a84a8f; --s7: #66707c; }
@media (prefers-color-scheme: dark) { :root { --page: #12161b; --card: #1a2027; --ink: #e6eaf0;
  --ink2: #a4aebb; --line: #37414d; --ground: #252d37; --s0: #6cb2f0; --s1: #ff8a94; --s2: #58cf9d;
  --s3: #bda0ff; --s4: #edb04f; --s5: #56c7da; --s6: #e596d0; --s7: #a9b3c0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  -webkit-text-size-adjust: 100%; }
header, main { max-width: 52rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { margin: 0 0 .75rem; font-size: 1.75rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 0 0 1rem; font-size: 1.15rem; }
section { margin: 1.25rem 0; padding: 1.25rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .6rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.25rem; margin: 0; }
dl, table, figcaption, .legend, summary { font-size: .93rem; }
dt, caption, figcaption, summary, tbody th { color: var(--ink2); }
dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: min(100%, 24rem);
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .5rem; }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap; font-weight: 400; }
thead th { font-weight: 600; vertical-align: bottom; white-space: normal; }
thead { border-bottom: 2px solid var(--line); }
tbody th { text-align: left; }
tbody + tbody { border-top: 1px solid var(--line); }
th[scope=rowgroup] { padding-top: .6rem; white-space: normal; }
th[scope=rowgroup] b { color: var(--ink); }
th:first-child, td:first-child { position: sticky; left: 0; padding-left: 0;
  background: var(--card); }
figure { margin: 0 0 1.5rem; }
figcaption { margin-top: .5rem; }
figure > div > svg { display: block; width: 100%; height: auto; }
figure text { font-family: inherit !important; }
figure * { stroke-linejoin: round; }
.narrow { display: none; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.25rem; margin: 0 0 .75rem; padding: 0;
  list-style: none; }
.legend svg { width: 28px; height: 8px; margin-right: .5rem; }
.legend path { stroke-width: 3.5; }
.bands svg { width: 14px; height: 14px; vertical-align: -2px; }
.bands path { stroke-width: 28; stroke-dasharray: none !important; }
summary { cursor: pointer; }
details > .scroll { margin-top: .75rem; max-height: 24rem; overflow-y: auto; }
@media (max-width: 40rem) { .narrow { display: block; } .wide { display: none; }
  section { padding: 1rem; margin: .75rem 0; } h1 { font-size: 1.4rem; }
  th, td { padding: .2rem .45rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } }
@media print { body { background: none; } section { border: 0; break-inside: avoid; } }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{facts}
</header>
<main>
{sections}
</main>
</body>
</html>
"""
