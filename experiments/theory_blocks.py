"""What ``depl theory --json`` found, as the tables of docs/theory.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks import row

Found = Mapping[str, Any]


def theory_tables(found: Found) -> str:
    """How many pairs there were, their margins, bounds and rates by dimension."""
    needed = found["median_dimension_needed"]
    return "\n\n".join(
        [
            f"{found['documents']:,} documents, {found['labels']:,} labels that have weights; "
            f"{found['sets']:,} sets (a document, a label it\ncarries, and all wrong ones ranked "
            f"below: {found['negatives']['median']:,.0f} at the median), and "
            f"{found['pairs']:,} pairs drawn from\nthem, each with a projection of its own.",
            _margins(found),
            _dimensions(found),
            f"The d from which a bound says something about the median pair: "
            f"{_count(needed['theorem'])} for the theorem,\n{_count(needed['keyword'])} for "
            f"keywords alone, {_count(needed['cosine'])} on unit vectors. For the median set: "
            f"{_count(needed['theorem_sets'])} and {_count(needed['keyword_sets'])}.",
        ]
    )


def _margins(found: Found) -> str:
    t, k = found["theorem"], found["keyword"]
    rows = {
        "pairs, theorem: margin ε": t["margin"],
        "pairs, theorem: δ": t["delta"],
        "pairs, theorem: ε − δ": t["gap"],
        "pairs, keywords alone: ε (δ = 0)": k["gap"],
        "pairs, keywords alone: cosine": k["cosine"],
        "sets, theorem: ε − δ": t["set_gap"],
        "sets, keywords alone: ε": k["set_gap"],
    }
    lines = ["| | 5 % | median | 95 % | positive |", "| --- | ---: | ---: | ---: | ---: |"]
    for text, spread in rows.items():
        cells = [f"{spread[q]:.4f}".replace("-", "−") for q in ("5%", "median", "95%")]
        lines.append(row([text, *cells, f"{100 * spread['positive']:.1f} %"]))
    return "\n".join(lines)


def _dimensions(found: Found) -> str:
    columns = found["dimensions"]
    lines = [
        row(["dimension d", *(f"{int(d):,}" for d in columns)]),
        "| --- |" + " ---: |" * len(columns),
    ]

    def add(text: str, setting: str, key: str) -> None:
        lines.append(row([text, *(_percent(at[setting][key]) for at in columns.values())]))

    add("pairs with a bound below 1: theorem", "theorem", "pairs_bounded")
    add("… keywords alone", "keyword", "pairs_bounded")
    add("… unit vectors", "cosine", "pairs_bounded")
    add("…… their mean bound", "cosine", "bound_there")
    add("…… mis-ordered, exactly", "cosine", "exact_there")
    for setting, text in (("theorem", "theorem"), ("keyword", "keywords alone")):
        add(f"all pairs mis-ordered, {text}: exactly", setting, "exact")
        add("… simulated", setting, "simulated")
        intervals = [at[setting]["simulated"] for at in columns.values()]
        cells = [f"{100 * x['low']:.2f}–{100 * x['high']:.2f}" for x in intervals]
        lines.append(row(["… 95 % interval", *cells]))
    add("sets with a bound below 1: theorem", "theorem", "sets_bounded")
    add("… keywords alone", "keyword", "sets_bounded")
    add("sets with any label mis-ordered: theorem, simulated", "theorem", "simulated_sets")
    add("… keywords alone, simulated", "keyword", "simulated_sets")
    return "\n".join(lines)


def _percent(share: Mapping[str, float] | float | None) -> str:
    if share is None:
        return "–"
    percent = 100 * (share if isinstance(share, float) else share["rate"])  # type: ignore[index]
    return f"{percent:.1g} %" if 0 < percent < 0.005 else f"{percent:.2f} %"


def _count(d: int | None) -> str:
    return "none" if d is None else f"{d:,}"
