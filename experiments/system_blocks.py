"""Beside the paper's tables: rare labels alone, and what each system costs and how it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from blocks import missing, paragraph, row
from measured import KS, TAIL, Measured, Seed, value
from paper import ABLATIONS, BRANCHES, LENGTHS, OTHERS, PEERS, RECIPES, SYSTEMS

from depl.evaluation.bands import BANDS

SEEN = tuple(band.name for band in BANDS[1:])
# What the paper says of two of its systems: that the first is better, in one table or another.
CLAIMS = (
    ("depl", "svm"),
    ("depl", "classifier"),
    ("depl", "de-ret"),
    ("depl+c", "depl"),
    ("depl+c", "classifier"),
    ("depl+c", "svm"),
)
_ON_A_GPU = ("attentionxml", "xrtransformer", "lightxml", "aplc", "lwan")  # hours without one
OWN = tuple(s for s in SYSTEMS if s not in (*PEERS.values(), *OTHERS))
OWN_SEEDS = (0, 1, 2)
METRICS = tuple(f"{metric}@{k}" for metric in ("P", "PSP") for k in KS)


def tail_table(measured: Measured) -> str:
    """P@k and PSP@k over labels with 1 to 9 training documents alone."""
    told = "{:,} dev documents carry such a label; all other labels and documents are left out, of "
    return _apart(measured, "tail", told + "the rankings, too.")


def fresh_table(measured: Measured) -> str:
    """P@k and PSP@k without dev documents that repeat training documents."""
    return _apart(measured, "fresh", "{:,} dev documents repeat no training document.")


def _apart(measured: Measured, key: str, told: str) -> str:
    found = _having(measured, key)
    if not found:
        return f"Not measured yet: {measured.corpus}."
    columns = {s: [fmean(x[key][m] for x in e.values()) for m in METRICS] for s, e in found}
    best = [max(values) for values in zip(*columns.values(), strict=True)]
    lines = [row(["", *METRICS]), "|" + " --- |" * (1 + len(METRICS))]
    for system, values in columns.items():
        pairs = zip(values, best, strict=True)
        cells = [f"**{x:.2f}**" if round(x, 2) == round(top, 2) else f"{x:.2f}" for x, top in pairs]
        lines.append(row([title(measured, system), *cells]))
    documents = {x[key]["documents"] for _, entries in found for x in entries.values()}
    absent = missing(s for s in SYSTEMS if s not in columns)
    note = paragraph(told.format(max(documents)), absent)
    return "\n".join(lines) + "\n\n" + note


def coverage_table(corpora: Mapping[str, Measured]) -> str:
    """What was measured on which corpus and with which seeds, and the command of each row."""
    known = [m for m in corpora.values() if m.reports]
    lines = [row(["", *(m.title for m in known), "on", "command"])]
    lines += ["|" + " --- |" * (3 + len(known))]
    for name, (systems, needs, command) in _coverage().items():
        cells = [_seeds_of(m, systems) for m in known]
        lines.append(row([name, *cells, needs, f"`{command}`"]))
    return "\n".join(lines)


def missing_table(corpora: Mapping[str, Measured]) -> str:
    """What of the rows above is not there, on which corpus, and the command that makes it."""
    lines = [row(["", "corpus", "needs", "command"]), "|" + " --- |" * 4]
    for name, (systems, needs, command) in _coverage().items():
        for m in (m for m in corpora.values() if m.reports):
            seeds = _common_seeds(m, systems)
            absent = [s for s in OWN_SEEDS if s not in seeds] if set(systems) <= set(OWN) else []
            if seeds and not absent:
                continue
            told = command.replace("CORPUS", f"data/{m.corpus}")
            where = m.title
            if seeds:
                where += f", seed{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
                told += f" --seed {absent[0]}"
            lines.append(row([name, where, needs, f"`python experiments/{told}`"]))
    return "\n".join(lines) if len(lines) > 2 else "Nothing is missing."


def _coverage() -> dict[str, tuple[Sequence[str], str, str]]:
    """The rows: their systems, what they need, and how they are measured."""
    found: dict[str, tuple[Sequence[str], str, str]] = {}
    for short, peer in PEERS.items():
        needs = "GPU" if short in _ON_A_GPU else "CPU"
        found[SYSTEMS[peer]] = ((peer,), needs, f"peers.py CORPUS --only {short}")
    for other in OTHERS:
        needs = "GPU" if other.lower() in _ON_A_GPU else "CPU"
        found[SYSTEMS[other]] = ((other,), needs, f"compare.py CORPUS {other.lower()}")
    for own in OWN:
        alone = own == "svm"  # needs no run
        command = "compare.py CORPUS svm" if alone else f"run.py systems CORPUS --only {own}"
        found[SYSTEMS[own]] = ((own,), "CPU" if alone else "GPU", command)
    rest = [s for s in ABLATIONS if s not in SYSTEMS]
    found["Table 6, all but DE-ret"] = (rest, "GPU", "run.py ablations CORPUS")
    rest = [s for s in LENGTHS if s not in SYSTEMS]
    found["Figure 4, 8 and 16 tokens"] = (rest, "GPU", "run.py lengths CORPUS")
    papers = [f"{branch}, paper's settings" for branch in BRANCHES if branch != "depl"]
    command = 'compare.py CORPUS --recipe "paper\'s settings"'
    found["the paper's settings, branch by branch"] = (papers, "GPU", command)
    frozen = [s for s in RECIPES if s not in SYSTEMS]
    found["with a frozen encoder"] = (frozen, "CPU", "run.py laptop CORPUS")
    return found


def _seeds_of(measured: Measured, systems: Sequence[str]) -> str:
    """The seeds that all of the systems were measured with; "once" for a system without one."""
    seeds = _common_seeds(measured, systems)
    if None in seeds:
        return "once"
    return ", ".join(str(seed) for seed in sorted(x for x in seeds if x is not None)) or "–"


def _common_seeds(measured: Measured, systems: Sequence[str]) -> set[Seed]:
    return set.intersection(*(set(measured.reports.get(s, {})) for s in systems))


def cost_table(measured: Measured) -> str:
    """CPU seconds, memory, machine and command of every system that was measured with them."""
    found = _having(measured, "peak_memory_mb", "cpu_seconds")
    if not found:
        return f"Not measured yet: {measured.corpus}."
    lines = [row(["", "CPU seconds", "peak memory, MB", "on", "command"]), "|" + " --- |" * 5]
    for system, entries in found:
        seconds = fmean(x["cpu_seconds"] for x in entries.values())
        memory = max(x["peak_memory_mb"] for x in entries.values())
        first = next(iter(entries.values()))
        command = first["command"].removeprefix("python experiments/")
        cells = [f"{seconds:,.0f}", f"{memory:,.0f}", first["hardware"], f"`{command}`"]
        lines.append(row([title(measured, system), *cells]))
    return "\n".join(lines)


def significance_table(measured: Measured) -> str:
    """How one system differs from others, with the intervals of ``significance.py``."""
    if not measured.significance:
        return f"Not measured yet: {measured.corpus}."
    metrics = ("P@1", "P@5", "PSP@1", "PSP@5")
    lines: list[str] = []
    for first, others in measured.significance.items():
        lines += [row([f"{SYSTEMS[first]} minus", *metrics, "P@1, no repeated documents"])]
        lines += ["|" + " --- |" * (2 + len(metrics))] if len(lines) == 1 else []
        for other, found in others.items():
            cells = [_interval(*found["all documents"][metric]) for metric in metrics]
            alone = _interval(*found["without repeated ones"]["P@1"])
            lines.append(row([title(measured, other), *cells, alone]))
    return "\n".join(lines)


def _interval(mean: float, low: float, high: float) -> str:
    """A difference and its 95 % interval; bold where that is on one side of 0."""
    shown = f"{mean:+.2f}".replace("-", "−")
    shown = f"**{shown}**" if low > 0 or high < 0 else shown
    return f"{shown} [{low:.2f}, {high:.2f}]".replace("-", "−")


def claims_table(measured: Measured) -> str:
    """The paper's claims about two systems: the mean difference, and in how many seeds it is so."""
    metrics = ("P@1", "P@5", "PSP@1", "PSP@5", TAIL)
    lines = [row(["", *metrics]), "|" + " --- |" * (1 + len(metrics))]
    for first, second in CLAIMS:
        ours, theirs = measured.reports.get(first, {}), measured.reports.get(second, {})
        seeds = [seed for seed in ours if seed in theirs]
        if not seeds:
            continue
        cells = []
        for metric in metrics:
            found = [value(ours[s], metric) - value(theirs[s], metric) for s in seeds]
            above = sum(x > 0 for x in found)
            cells.append(f"{fmean(found):+.2f} ({above} of {len(seeds)})".replace("-", "−"))
        lines.append(row([f"{SYSTEMS[first]} minus {SYSTEMS[second]}", *cells]))
    if len(lines) == 2:
        return f"Not measured yet: {measured.corpus}."
    note = "In brackets: with how many seeds the difference is above 0."
    return "\n".join(lines) + "\n\n" + note


def title(measured: Measured, system: str) -> str:
    """What readers know a system by, and what of its own settings it did not get."""
    note = measured.note(system)
    return f"{SYSTEMS[system]}; {note}" if note else SYSTEMS[system]


def _having(measured: Measured, *keys: str) -> list[tuple[str, Mapping[Seed, Mapping[str, Any]]]]:
    """The systems of the tables that have something, with the seeds that have it."""
    known = [(s, measured.entries.get(s, {})) for s in SYSTEMS]
    found = [(s, {n: x for n, x in e.items() if all(key in x for key in keys)}) for s, e in known]
    return [(s, entries) for s, entries in found if entries]


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
