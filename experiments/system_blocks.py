"""Beside the paper's tables: rare labels alone, and what each system costs and how it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from blocks import missing, paragraph, row
from measured import KS, Measured, Seed
from paper import SYSTEMS

from depl.evaluation.bands import BANDS

SEEN = tuple(band.name for band in BANDS[1:])
TAIL_METRICS = tuple(f"{metric}@{k}" for metric in ("P", "PSP") for k in KS)


def tail_table(measured: Measured) -> str:
    """P@k and PSP@k over labels with 1 to 9 training documents alone."""
    found = _having(measured, "tail")
    if not found:
        return f"Not measured yet: {measured.corpus}."
    columns = {s: [fmean(x["tail"][m] for x in e.values()) for m in TAIL_METRICS] for s, e in found}
    best = [max(values) for values in zip(*columns.values(), strict=True)]
    lines = [row(["", *TAIL_METRICS]), "|" + " --- |" * (1 + len(TAIL_METRICS))]
    for system, values in columns.items():
        pairs = zip(values, best, strict=True)
        cells = [f"**{x:.2f}**" if round(x, 2) == round(top, 2) else f"{x:.2f}" for x, top in pairs]
        lines.append(row([title(measured, system), *cells]))
    documents = {x["tail"]["documents"] for _, entries in found for x in entries.values()}
    note = paragraph(
        f"{max(documents):,} dev documents carry such a label; all other labels and documents are "
        "left out, of the rankings, too.",
        missing(s for s in SYSTEMS if s not in columns),
    )
    return "\n".join(lines) + "\n\n" + note


def cost_table(measured: Measured) -> str:
    """Seconds, memory and the command of every system that was measured with them."""
    found = _having(measured, "peak_memory_mb")
    if not found:
        return f"Not measured yet: {measured.corpus}."
    lines = [row(["", "seconds", "peak memory, MB", "command"]), "|" + " --- |" * 4]
    for system, entries in found:
        seconds = fmean(x["seconds"] for x in entries.values())
        memory = max(x["peak_memory_mb"] for x in entries.values())
        command = next(iter(entries.values()))["command"].removeprefix("python experiments/")
        cells = [f"{seconds:,.0f}", f"{memory:,.0f}", f"`{command}`"]
        lines.append(row([title(measured, system), *cells]))
    return "\n".join(lines)


def title(measured: Measured, system: str) -> str:
    """What readers know a system by, and what of its own settings it did not get."""
    note = measured.note(system)
    return f"{SYSTEMS[system]}; {note}" if note else SYSTEMS[system]


def _having(measured: Measured, key: str) -> list[tuple[str, Mapping[Seed, Mapping[str, Any]]]]:
    """The systems of the tables whose entries have something."""
    known = [(s, measured.entries.get(s, {})) for s in SYSTEMS]
    return [
        (s, entries) for s, entries in known if entries and all(key in x for x in entries.values())
    ]


def gradients_of(measured: Measured) -> str:
    """What ``gradients.py`` measured on a corpus."""
    if measured.gradients is None:
        return f"Not measured yet: {measured.corpus}."
    return gradients_table(measured.gradients)


def gradients_table(found: Mapping[str, Any]) -> str:
    """What was measured, as markdown."""
    titles = [f"{name} ({found['labels'][name]:,} labels)" for name in SEEN]
    lines = [row(["", *titles]), "|" + " --- |" * (1 + len(titles))]
    for branch, epochs in found["branches"].items():
        for entry in epochs:
            when = f"after epoch {entry['epoch']}" if entry["epoch"] else "before training"
            lines.append(row([f"{branch}, {when}", *_cells(entry)]))
    return "\n".join(lines)


def _cells(entry: Mapping[str, Any]) -> Sequence[str]:
    shown = []
    for name in SEEN:
        x = entry.get(name)
        shown.append(
            f"{x['push_over_pull']:.2f} ({100 * x['push_larger']:.0f} %); p {x['probability']:.2f}"
            if x
            else "–"
        )
    return shown
