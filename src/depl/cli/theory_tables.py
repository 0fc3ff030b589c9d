"""What ``depl theory`` prints: the findings of a study as tables."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from depl.cli.console import count, out

_SETTINGS = ("theorem", "keyword")


def print_tables(found: dict[str, Any], *, title: str) -> None:
    """Margins, then bounds and rates by dimension, then what follows from them."""
    out.print(
        f"[bold]{escape(title)}[/]: {count(found['documents'], 'document')}, "
        f"{count(found['labels'], 'label')}; {count(found['sets'], 'set')} of a label and all "
        f"wrong ones that the SVM ranks below it (median {found['negatives']['median']:,.0f}), "
        f"{count(found['pairs'], 'pair')} drawn from them\n"
    )
    out.print(_margin_table(found))
    out.print(_dimension_table(found))
    needed = found["median_dimension_needed"]
    table = _table("Smallest d with a bound below 1, median", ["pair", "set"])
    for text, name in (("theorem", "theorem"), ("keywords", "keyword"), ("unit vectors", "cosine")):
        table.add_row(text, *(_dimension(needed.get(key, "")) for key in (name, f"{name}_sets")))
    out.print(table)
    slip = found["printed_condition"]
    beyond = ", more than unit vectors can have" if slip["gap_asked"] > 1 else ""
    out.print(
        f"\nThe paper's condition ε - δ ≥ 10 √(log M / d) is ε - δ ≥ {slip['gap_asked']:.3f} for "
        f"M = {slip['negatives']:,.0f} and d = {slip['d']}{beyond}. There the bound is 4/M = "
        f"{slip['bound_there']:.2g}, not 1/M as printed; log 2M in place of log M gives 1/M."
    )
    out.print(f"[bold]{verdict(found)}[/]")


def verdict(found: dict[str, Any]) -> str:
    """In a sentence or two, what the theorem guarantees on these documents."""
    shares = {d: at["theorem"]["pairs_bounded"] for d, at in found["dimensions"].items()}
    d, best = max(shares.items(), key=lambda item: item[1])
    gap = found["theorem"]["gap"]["positive"]
    rate = found["dimensions"][d]["theorem"]["simulated"]
    if best > 0.01:
        return f"At d = {int(d):,} the theorem bounds {best:.1%} of the pairs."
    return (
        f"The theorem says nothing about {1 - best:.2%} of these pairs in any of these dimensions: "
        f"ε > δ holds for {gap:.2%}. In simulation "
        f"{rate['rate']:.1%} are mis-ordered at d = {int(d):,}."
    )


def _table(head: str, columns: list[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(head, min_width=56)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _margin_table(found: dict[str, Any]) -> Table:
    t, k = found["theorem"], found["keyword"]
    table = _table("Margins", ["5 %", "median", "95 %", "positive"])
    rows = {
        "pairs, theorem (weights shifted): margin ε": t["margin"],
        "  δ, dropped by the keywords": t["delta"],
        "  ε - δ": t["gap"],
        "pairs, keywords alone (no shift, δ = 0): margin": k["gap"],
        "  cosine of document and label difference": k["cosine"],
        "sets, theorem: ε - δ": t["set_gap"],
        "sets, keywords alone: margin": k["set_gap"],
    }
    for text, s in rows.items():
        cells = [f"{s[q]:.4f}" for q in ("5%", "median", "95%")]
        table.add_row(text, *cells, f"{s['positive']:.1%}")
    table.add_row()
    return table


def _dimension_table(found: dict[str, Any]) -> Table:
    columns = list(found["dimensions"].values())
    table = _table("Dimension d", [f"{int(d):,}" for d in found["dimensions"]])

    def row(text: str, setting: str, key: str) -> None:
        table.add_row(text, *(_percent(column[setting][key]) for column in columns))

    row("pairs with a bound below 1: theorem", "theorem", "pairs_bounded")
    row("  keywords alone, 4 exp(-ε² d / 50)", "keyword", "pairs_bounded")
    row("  unit vectors, 4 exp(-cos² d / 8)", "cosine", "pairs_bounded")
    row("    the mean bound there", "cosine", "bound_there")
    row("    mis-ordered there, exact", "cosine", "exact_there")
    for setting, text in zip(_SETTINGS, ("theorem", "keywords alone"), strict=True):
        row(f"all pairs mis-ordered: {text}, exact", setting, "exact")
        row("  simulated (95 % interval below)", setting, "simulated")
        table.add_row("", *(_interval(column[setting]["simulated"]) for column in columns))
    row("sets with a bound below 1: theorem", "theorem", "sets_bounded")
    row("  keywords alone", "keyword", "sets_bounded")
    row("sets with any label mis-ordered: theorem, simulated", "theorem", "simulated_sets")
    row("  keywords alone, simulated", "keyword", "simulated_sets")
    table.add_row()
    return table


def _percent(value: dict[str, float] | float | None) -> str:
    if isinstance(value, dict):
        value = value["rate"]
    if value is None:
        return "–"
    return f"{100 * value:.0e} %" if 0 < value < 5e-5 else f"{100 * value:.2f} %"


def _interval(rate: dict[str, float]) -> str:
    return f"[dim]{100 * rate['low']:.2f}–{100 * rate['high']:.2f}[/]"


def _dimension(d: int | str | None) -> str:
    return "none" if d is None else f"{d:,}" if isinstance(d, int) else d
