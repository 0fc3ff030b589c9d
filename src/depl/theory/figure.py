"""The figure of a study: bounds beside rates, margins beside what keywords drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from depl.evaluation.figures import COLOURS, DASHES, INK, colour, percent_axis
from depl.theory.study import Study
from depl.theory.summary import rate
from depl.theory.theorem import COSINE, bound, misordering

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_study(figure: Figure, study: Study) -> None:
    """Left: the share of mis-ordered pairs, and bounds on it. Right: margins and drops."""
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    grid = np.geomspace(64, 2**20, 40)
    t, k = study.theorem, study.keyword
    curves = {
        "Theorem 1": [bound(t.gap, d).mean() for d in grid],
        "the same, keywords alone": [bound(k.gap, d).mean() for d in grid],
        "the same, unit vectors": [bound(k.cosine, d, constant=COSINE).mean() for d in grid],
        "exact, keywords alone": [misordering(k.cosine, d).mean() for d in grid],
    }
    for i, (name, curve) in enumerate(curves.items()):
        left.plot(grid, curve, color=colour(i), dashes=DASHES[i], label=name)
    found = [rate(int(errors), study.pairs) for errors in k.pair_errors]
    rates = [r["rate"] for r in found]
    bars = [[r["rate"] - r["low"] for r in found], [r["high"] - r["rate"] for r in found]]
    left.errorbar(study.dimensions, rates, bars, fmt="o", ms=4, color=INK, label="simulated")
    left.set_xscale("log")
    left.xaxis.set_major_formatter("{x:,.0f}")
    left.minorticks_off()
    left.set_ylim(0, 1.05)
    left.set_xlabel("dimension d")
    percent_axis(left, "Share of pairs mis-ordered, and bounds on it", pad=8)
    _, bins = np.histogram(np.concatenate([t.epsilon, t.delta], axis=None), 60)
    for i, (name, values) in enumerate({"margin ε": t.epsilon, "dropped δ": t.delta}.items()):
        density, _ = np.histogram(values, bins)
        right.stairs(density / values.size * 100, bins, fill=True, alpha=0.6, color=COLOURS[4 + i])
        middle = float(np.median(values))
        right.text(middle, density.max() / values.size * 103, name, ha="center")
    right.set_xlabel("in the theorem's setting")
    percent_axis(right, "Pairs, %", pad=8)
    right.set_ylim(top=right.get_ylim()[1] * 1.08)
    figure.legend(loc="outside lower left", ncols=2, frameon=False)
