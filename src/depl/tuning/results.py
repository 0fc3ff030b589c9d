"""What a search found: the trials as a table, and a picture of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from depl.core import storage
from depl.evaluation.figures import INK, LINE, colour, percent_axis, svg
from depl.run.config import Config, template
from depl.tuning.search import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST, TABLE, PICTURE = "best.toml", "trials.csv", "trials.svg"


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest score of those that were not stopped; the first of equals."""
    return max((x for x in trials if not x.stopped), key=lambda x: (x.score, -x.number))


def write_results(folder: Path, trials: Sequence[Trial], best: Config, measure: str) -> None:
    """Write the best settings as TOML, all trials as CSV, and the picture."""
    storage.write_text(folder / BEST, template(best))
    storage.write_text(folder / TABLE, _table(trials))
    drawn = svg(lambda figure: draw_trials(figure, trials, measure), "wide")
    storage.write_text(folder / PICTURE, drawn)


def _table(trials: Sequence[Trial]) -> str:
    names = list(trials[0].settings)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "score", "documents", "stopped", "seconds", *names])
    for x in trials:
        facts = [x.number, f"{x.score:.3f}", x.documents, int(x.stopped), f"{x.seconds:.1f}"]
        writer.writerow([*facts, *(x.settings[name] for name in names)])
    return text.getvalue()


def draw_trials(figure: Figure, trials: Sequence[Trial], measure: str) -> None:
    """The score of every trial in their order, and the best so far."""
    axes = figure.subplots()
    whole = [x for x in trials if not x.stopped]
    stopped = [x for x in trials if x.stopped]
    best, steps = -1.0, []
    for x in whole:
        best = max(best, x.score)
        steps.append(best)
    numbers = [x.number for x in whole]
    axes.step(numbers, steps, where="post", color=colour(0), linewidth=1.5, zorder=2)
    axes.scatter(numbers, [x.score for x in whole], s=22, color=colour(0), zorder=3)
    axes.scatter(
        *([x.number for x in stopped], [x.score for x in stopped]),
        s=18,
        marker="x",
        color=INK,
        zorder=2,
    )
    if whole and not whole[0].number:
        axes.axhline(whole[0].score, color=LINE, linewidth=1.2, zorder=1)
    axes.set_xlabel(
        "trial (crosses: stopped early, on fewer documents; line: settings as they are)"
    )
    axes.locator_params(axis="x", integer=True)
    percent_axis(axes, f"{measure}, %", pad=8)
