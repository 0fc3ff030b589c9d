"""One self-contained HTML page about one or several evaluations, with its figures.

The page is a list of sections; each is a function that takes the reports and gives HTML. Figures
are matplotlib's SVG, put into the page with their colours turned into CSS variables, so that they
follow the reader's light or dark mode. The same reports give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from depl.core.errors import DeplError
from depl.core.storage import write_text
from depl.evaluation.figures import (
    SIZES,
    VARIABLES,
    colour,
    draw_bands,
    draw_bins,
    draw_reliability,
    in_split,
    legend_dashes,
    macro_f1,
    names,
    shown_bands,
    svg,
)
from depl.evaluation.scores import BIN_SIZE, Report
from depl.evaluation.tables import Row, comparison


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
    sections = (_scores, _rare_to_common, _bands, _probabilities, _definitions)
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
    drawings: dict[str, Callable[..., None]] = {"figure1.svg": draw_bins, "bands.svg": draw_bands}
    for name, draw in drawings.items():
        write_text(folder / name, svg(draw, reports, "wide", legend=True))
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
        for name, r in zip(names(reports), reports, strict=True)
    )
    figure = _figure(
        draw_bins,
        reports,
        alt=f"Line chart of {macro_f1(reports)} over labels from rare to common. {summary}.",
        caption=f"{macro_f1(reports)} over all labels, ordered from rare to common by their "
        f"number of training documents; each point is the mean of {BIN_SIZE} labels. The grey "
        "ground is the share of them that occur in this split: no curve can rise above it.",
    )
    return _section("rare-to-common", head, figure + _numbers_behind(reports))


def _numbers_behind(reports: Sequence[Report]) -> str:
    """Figure 1 as a table, folded away."""
    header = ("labels", "mean training count", "labels in split", *names(reports))
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
    return _folded(header, rows)


def _folded(header: Sequence[str], rows: str) -> str:
    """A table of the numbers behind a figure, folded away."""
    columns = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
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
            f"{n} {in_split(r, band):.1f}" for n, r in zip(header[2:], reports, strict=True)
        )
        for band in shown_bands(reports)
    )
    figure = _figure(
        draw_bands,
        reports,
        alt=f"Bar chart of {macro_f1(reports)} by band. {summary}.",
        caption=f"{macro_f1(reports)} over the labels of a band that occur in this split; below "
        "each band, how many of its labels do.",
    )
    groups = [
        _with_counts_in_head(band, list(group))
        for band, group in groupby(rows, key=lambda row: row.group)
        if band != "all"
    ]
    table = _table("By number of training documents; in percent", header[2:], groups)
    return _section("bands", "Frequency bands", (figure if summary else "") + table)


def _probabilities(reports: Sequence[Report]) -> str:
    """How far probabilities keep their word; nothing where no run has any."""
    named = zip(names(reports), reports, strict=True)
    kept = [(name, r.reliability) for name, r in named if r.reliability is not None]
    if not kept:
        return ""
    k = reports[0].k
    errors = "; ".join(f"{name} {100 * r.error:.1f}" for name, r in kept)
    figure = _figure(
        draw_reliability,
        reports,
        alt=f"Line chart of the share of right suggestions over their probability, and their "
        f"number. Expected calibration error in percent: {errors}.",
        caption=f"The first {k} suggestions of every document, by their probability. On the "
        "diagonal, of suggestions with a probability of 80 % just 80 % are right; below it, "
        "probabilities promise too much. The lower part counts the suggestions. Expected "
        f"calibration error, in percent: {errors}.",
    )
    n = len(kept[0][1].counts)
    header = ("probability, %", *(f"{name}: {x}" for name, _ in kept for x in ("count", "right")))
    rows = "".join(
        f'<tr><th scope="row">{100 * b / n:.0f}–{100 * (b + 1) / n:.0f}</th>'
        + "".join(
            f"<td>{r.counts[b]:,}</td><td>{f'{100 * r.right[b]:.1f}' if r.counts[b] else '–'}</td>"
            for _, r in kept
        )
        + "</tr>\n"
        for b in range(n)
    )
    return _section("probabilities", "Probabilities", figure + _folded(header, rows))


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
        "ECE@k": "expected calibration error: by how much the probabilities of the first k differ "
        "from the share that is right, in 15 bins, on average; less is better.",
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


def _figure(draw: Callable[..., None], reports: Sequence[Report], *, alt: str, caption: str) -> str:
    """A drawing in the page's colours, wide and narrow, with its legend as text that wraps."""
    kind = draw.__name__.removeprefix("draw_")
    keys = "".join(
        '<li><svg viewBox="0 0 28 8" aria-hidden="true"><path d="M0 4H28" style="'
        f"stroke: {VARIABLES[colour(i)]}; stroke-dasharray: {legend_dashes(i)}"
        f'"/></svg>{_text(name)}</li>\n'
        for i, name in enumerate(names(reports))
    )
    drawings = "".join(
        f'<div class="{size}">\n{_inline_svg(draw, reports, size, f"{kind}-{size}", alt)}</div>\n'
        for size in SIZES
    )
    return (
        f'<figure>\n<ul class="legend {kind}">\n{keys}</ul>\n{drawings}'
        f"<figcaption>{_text(caption)}</figcaption>\n</figure>\n"
    )


def _inline_svg(
    draw: Callable[..., None], reports: Sequence[Report], size: str, prefix: str, alt: str
) -> str:
    """SVG that can stand in a page: ids of its own, no style rules, CSS variables for colours."""
    drawn = svg(draw, reports, size, legend=False)
    text = drawn[drawn.index("<svg") :]
    text = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub("#[0-9a-f]{6}", lambda found: VARIABLES.get(found[0], found[0]), text)
    attributes = f' role="img" aria-label="{_text(alt)}"'
    return re.sub(r' width="[^"]*" height="[^"]*"', lambda _: attributes, text, count=1)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / max(1, len(listed))


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


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
