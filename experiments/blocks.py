"""The paper's tables as markdown, from what was measured. What is missing is named, not guessed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from measured import TAIL, UNSEEN, Measured, Score, value
from paper import (
    ABLATION_METRICS,
    ABLATIONS,
    BRANCHES,
    COUNTERPART,
    LINEAR_PEERS,
    OTHERS,
    PEERS,
    RECIPES,
    SEEN_ONLY,
    SHORT,
    SYSTEMS,
    TABLE_6,
    WORSE_WITHOUT_NUMBERS,
)

PSP, P = ("PSP@1", "PSP@3", "PSP@5"), ("P@1", "P@3", "P@5")
PER_SEED = ("P@1", "PSP@1", TAIL)


def table_3(measured: Measured) -> str:
    """PSP@k and macro-F1 of the rare labels, with the spread between seeds."""
    return _systems(measured, (*PSP, TAIL), spread=True)


def table_4(measured: Measured) -> str:
    """P@k, with the spread between seeds."""
    return _systems(measured, P, spread=True)


def summary(measured: Measured) -> str:
    """Tables 3 and 4 in one, means alone; and labels that no training document carries."""
    left = {*PEERS.values(), *OTHERS} - {*LINEAR_PEERS}
    return _summary(measured, {s: name for s, name in SYSTEMS.items() if s not in left})


def recipes(measured: Measured) -> str:
    """The same for what needs no GPU, beside what one gives."""
    return _summary(measured, RECIPES)


def _summary(measured: Measured, systems: Mapping[str, str]) -> str:
    reports = [r for s in systems for r in measured.reports.get(s, {}).values()]
    unseen = [r.bands["0"] for r in reports]
    asked = all(band["labels_in_test"] and "R@10" in band for band in unseen)
    metrics = (*P, *PSP, TAIL, *([UNSEEN] * asked))
    return _systems(measured, metrics, spread=False, systems=systems)


def _systems(
    measured: Measured,
    metrics: Sequence[str],
    *,
    spread: bool,
    systems: Mapping[str, str] = SYSTEMS,
) -> str:
    rows = {s: [measured.score(s, m) for m in metrics] for s in systems if s in measured.reports}
    if not rows:
        return missing(systems)
    best = [_best(column) for column in zip(*rows.values(), strict=True)]
    lines = _head(["", *metrics])
    for system, scores in rows.items():
        cells = [
            _bold(_cell(s, spread=spread), round(s.mean, 2) == top)
            for s, top in zip(scores, best, strict=True)
        ]
        note = measured.note(system)
        lines.append(row([f"{systems[system]}; {note}" if note else systems[system], *cells]))
    notes = [_about_seeds(measured, rows, spread=spread)]
    if not spread and any(s.spread is not None for scores in rows.values() for s in scores):
        notes.append(_widest(rows, metrics))
    notes.append(missing(s for s in systems if s not in rows))
    return "\n".join(lines) + "\n\n" + paragraph(*notes)


def unseen(measured: Measured) -> str:
    """What it costs the other bands that labels without a training document are suggested."""
    pair = [measured.reports.get(s, {}) for s in ("fusion", SEEN_ONLY)]
    seeds = [seed for seed in pair[0] if seed in pair[1]]
    if not seeds:
        return missing(s for s in ("fusion", SEEN_ONLY) if s not in measured.reports)
    k = measured.k
    keys = (f"macroF1@{k}_in_test", "R@10")
    names = (f"macro-F1@{k}", "R@10")
    lines = _head(
        ["training documents", *(f"{m}, {w}" for m in names for w in ("with", "without"))]
    )
    for band in next(iter(pair[0].values())).bands:
        means = [fmean(p[seed].bands[band][key] for seed in seeds) for key in keys for p in pair]
        lines.append(row([band, *(f"{mean:.2f}" for mean in means)]))
    said = f"Mean of seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"Seed {seeds[0]}"
    note = f"{said}; labels that occur in the split."
    return "\n".join(lines) + "\n\n" + paragraph(note)


def table_6(measured: Measured) -> str:
    """Differences to DEPL, with the paper's beneath and whether the signs agree."""
    corpus = COUNTERPART.get(measured.corpus)
    lines = _head(["minus DEPL", *ABLATION_METRICS, TAIL, "same sign as in the paper"])
    there = [s for s in ABLATIONS if measured.difference(s, "depl", "P@1") is not None]
    if not there:
        return missing(["depl", *ABLATIONS])
    for system in there:
        metrics = (*ABLATION_METRICS, TAIL)
        found = [measured.difference(system, "depl", metric) for metric in metrics]
        scores = [score for score in found if score is not None]
        printed = TABLE_6[corpus].get(system) if corpus else None
        if system in WORSE_WITHOUT_NUMBERS:
            printed = (-1.0,) * len(ABLATION_METRICS)
        agreement = _agreement(scores, printed) if printed else ""
        cells = [_signed(score.mean) for score in scores]
        lines.append(row([f"**{ABLATIONS[system]}**", *cells, agreement]))
        if printed and system in WORSE_WITHOUT_NUMBERS:
            lines.append(row(["the paper, without numbers", *["worse"] * len(printed), "", ""]))
        elif printed:
            lines.append(row([f"the paper, {corpus}", *map(_signed, printed), "", ""]))
    spreads = [measured.score("depl", m).spread for m in (*ABLATION_METRICS, TAIL)]
    if None not in spreads:
        cells = [f"± {spread:.2f}" for spread in spreads]
        lines.append(row(["DEPL itself, between seeds", *cells, ""]))
    notes = [f"Each difference is to DEPL with the same seed. {_seeds_used(measured, there)}"]
    notes.append(missing(s for s in ABLATIONS if s not in there))
    return "\n".join(lines) + "\n\n" + paragraph(*notes)


def recipe_branches(measured: Measured) -> str:
    """Whole recipes by compare.py, branch by branch."""
    found: dict[str, list[str]] = {}
    for system in measured.reports:
        branch, _, recipe = system.partition(", ")
        if branch in BRANCHES and recipe.startswith(("paper's settings", "our settings")):
            found.setdefault(recipe, []).append(branch)
    if not found:
        return f"Not measured yet: {measured.corpus}."
    metrics = ("P@1", "P@5", "PSP@1", "PSP@5", TAIL)
    lines = _head(["", *metrics])
    for recipe in sorted(found, key=lambda x: (not x.startswith("our"), x)):
        lines.append(row([f"**{recipe}**", *[""] * len(metrics)]))
        for branch in (b for b in BRANCHES if b in found[recipe]):
            scores = [measured.score(f"{branch}, {recipe}", m) for m in metrics]
            lines.append(row([BRANCHES[branch], *(_cell(s, spread=True) for s in scores)]))
    return "\n".join(lines)


def _seeds_used(measured: Measured, systems: Iterable[str]) -> str:
    """Which systems of Table 6 were measured with how many seeds."""
    by_seeds: dict[str, list[str]] = {}
    for system in systems:
        both = [seed for seed in measured.seeds if seed in measured.reports[system]]
        both = [seed for seed in both if seed in measured.reports["depl"]]
        by_seeds.setdefault(", ".join(map(str, both)), []).append(ABLATIONS[system])
    parts = [f"{', '.join(names)}: {seeds}" for seeds, names in by_seeds.items()]
    return f"Seeds: {'; '.join(parts)}."


def per_seed(measured: Measured) -> str:
    """The scores of every seed alone."""
    seeds = measured.seeds
    rows = [s for s in SYSTEMS if set(measured.reports.get(s, {})) - {None}]
    if not rows:
        return missing(s for s in SYSTEMS if s not in (*PEERS.values(), *OTHERS))
    lines = _head([f"seeds {', '.join(map(str, seeds))}", *PER_SEED])
    for system in rows:
        reports = measured.reports[system]
        cells = [
            " / ".join(f"{value(reports[s], m):.2f}" if s in reports else "–" for s in seeds)
            for m in PER_SEED
        ]
        lines.append(row([SYSTEMS[system], *cells]))
    return "\n".join(lines)


# ---- what stands beneath a table


def missing(systems: Iterable[str]) -> str:
    """Say what was not measured; nothing if all was."""
    listed = [short_name(s) for s in systems]
    return f"Not measured yet: {', '.join(listed)}." if listed else ""


def short_name(system: str) -> str:
    """A system's name without what a row says of it."""
    return SHORT.get(system) or _name(system)


def _name(system: str) -> str:
    """What readers know a system by, whatever table it stands in."""
    return SYSTEMS.get(system) or ABLATIONS.get(system) or RECIPES.get(system) or system


def paragraph(*sentences: str, width: int = 100) -> str:
    """Sentences in lines of limited length; a number keeps its unit."""
    text = " ".join(s for s in sentences if s).replace(" %", "\N{NO-BREAK SPACE}%")
    filled = textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)
    return filled.replace("\N{NO-BREAK SPACE}", " ")


def _about_seeds(measured: Measured, rows: Iterable[str], *, spread: bool) -> str:
    seeds = measured.seeds
    if not seeds:
        return "Each of them once."
    several = len(seeds) > 1
    how = "mean ± sample standard deviation" if spread else "the mean"
    text = f"Seeds {', '.join(map(str, seeds))}: {how}" if several else f"One seed, {seeds[0]}"
    once = [s for s in rows if list(measured.reports[s]) == [None]]
    text += "; peers once." if once else "."
    fewer: dict[tuple[int, ...], list[str]] = {}
    for system in rows:
        found = tuple(sorted(s for s in measured.reports[system] if s is not None))
        if found and found != tuple(seeds):
            fewer.setdefault(found, []).append(short_name(system))
    for found, names in fewer.items():
        plural = "s" * (len(found) > 1)
        text += f" {'; '.join(names)}: seed{plural} {', '.join(map(str, found))} only."
    return text


def _widest(rows: dict[str, list[Score]], metrics: Sequence[str]) -> str:
    spread, system, metric = max(
        (score.spread or 0.0, system, metric)
        for system, scores in rows.items()
        for metric, score in zip(metrics, scores, strict=True)
    )
    return f"The largest standard deviation is {spread:.2f} ({_name(system)}, {metric})."


def _agreement(scores: Sequence[Score], printed: Sequence[float]) -> str:
    pairs = zip(ABLATION_METRICS, scores, printed, strict=False)
    differ = [m for m, score, theirs in pairs if round(score.mean, 2) * theirs <= 0]
    n = len(ABLATION_METRICS)
    if len(differ) == n:
        return f"none of {n}"
    return f"{n - len(differ)} of {n}" + (f", not {', '.join(differ)}" if differ else "")


# ---- cells and rows


def _best(column: Sequence[Score]) -> float | None:
    """The highest mean as far as two decimals show; None where all are equal."""
    shown = {round(score.mean, 2) for score in column}
    return max(shown) if len(shown) > 1 else None


def _cell(score: Score, *, spread: bool) -> str:
    text = f"{score.mean:.2f}"
    return f"{text} ± {score.spread:.2f}" if spread and score.spread is not None else text


def _signed(number: float) -> str:
    return f"{number:+.2f}".replace("-", "−")


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def row(cells: Iterable[str]) -> str:
    """One line of a markdown table."""
    return "| " + " | ".join(cells) + " |"


def _head(names: Sequence[str]) -> list[str]:
    return [row(names), "|" + " --- |" * len(names)]
