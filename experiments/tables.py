"""Every table and figure of results in README.md and docs/, from experiments/results alone.

    python experiments/tables.py            write them
    python experiments/tables.py --check    say which is not up to date, and fail if one is not

What stands between ``<!-- results: NAME -->`` and ``<!-- end -->`` is replaced. NAME is settings,
coverage, missing, table1, figure3, figure4, or one of summary, recipes, unseen, table3, table4,
table6, seeds, branches, tail, fresh, costs, claims, significance, gradients, figure1, table5,
keywords and theory with a corpus behind it: table3-eurlex57k. Figures go to docs/images.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import blocks
import drawings
import keyword_blocks
import system_blocks
from corpora import corpora_table
from measured import RESULTS, Measured, read_results
from paper import CURVES, LENGTHS, SYSTEMS
from settings import settings_table
from theory_blocks import theory_tables

from depl.core.errors import DeplError
from depl.core.storage import write_text
from depl.evaluation.scores import BIN_SIZE

ROOT = Path(__file__).resolve().parents[1]
IMAGES = Path("docs/images")
BLOCK = re.compile(r"(<!-- results: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
START = "<!-- results:"
TABLES: dict[str, Callable[[Measured], str]] = {
    "summary": blocks.summary,
    "recipes": blocks.recipes,
    "unseen": blocks.unseen,
    "table3": blocks.table_3,
    "table4": blocks.table_4,
    "table6": blocks.table_6,
    "seeds": blocks.per_seed,
    "branches": blocks.recipe_branches,
    "tail": system_blocks.tail_table,
    "fresh": system_blocks.fresh_table,
    "costs": system_blocks.cost_table,
    "gradients": system_blocks.gradients_of,
    "significance": system_blocks.significance_table,
    "claims": system_blocks.claims_table,
}
KEYWORDS = {"table5": keyword_blocks.example_table, "keywords": keyword_blocks.measure_table}
THEORY = "theory"


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--root", type=Path, default=ROOT, help="where README.md and docs/ are")
    args = parser.parse_args()
    try:
        stale, files = render(args.root, read_results(args.results))
    except DeplError as error:
        sys.exit(str(error))
    if args.check:
        for name in stale:
            print(f"{name} is not what experiments/results says.")
        if stale:
            sys.exit("Do not edit results by hand: python experiments/tables.py makes them.")
        print("All results are up to date.")
        return
    for path, text in files.items():
        write_text(path, text)
    print("\n".join(f"Updated: {name}" for name in stale) or "Nothing has changed.")


def render(root: Path, corpora: Mapping[str, Measured]) -> tuple[list[str], dict[Path, str]]:
    """What is out of date ("README.md: table3-eurlex57k"), and the files as they should be."""
    stale: list[str] = []
    files: dict[Path, str] = {}
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(root).as_posix()
        changed = text
        _require_whole_blocks(where, text)
        for begin, name, old, end in BLOCK.findall(text):
            new, drawn = block(name, corpora, os.path.relpath(root / IMAGES, path.parent))
            if new != old:
                stale.append(f"{where}: {name}")
                changed = changed.replace(begin + old + end, begin + new + end, 1)
            for image, content in drawn.items():
                target = root / IMAGES / image
                if not target.exists() or target.read_text(encoding="utf-8") != content:
                    stale.append((IMAGES / image).as_posix())
                    files[target] = content
        if changed != text:
            files[path] = changed
    return list(dict.fromkeys(stale)), files


def block(name: str, corpora: Mapping[str, Measured], images: str) -> tuple[str, dict[str, str]]:
    """The text of a block, and the figures that belong to it by the names of their files."""
    kind, _, corpus = name.partition("-")
    measured = corpora.get(corpus, Measured(corpus))
    if name == "settings":
        return settings_table() + "\n", {}
    if name == "coverage":
        return system_blocks.coverage_table(corpora) + "\n", {}
    if name == "missing":
        return system_blocks.missing_table(corpora) + "\n", {}
    if name == "table1":
        known = {m.title: m.statistics for m in corpora.values() if m.statistics}
        return corpora_table(known) + "\n", {}
    if kind in TABLES and corpus:
        return TABLES[kind](measured) + "\n", {}
    if kind in KEYWORDS and corpus:
        found = measured.keywords
        return (KEYWORDS[kind](found) if found else f"Not measured yet: {corpus}.") + "\n", {}
    if kind == THEORY and corpus:
        found = measured.theory
        return (theory_tables(found) if found else f"Not measured yet: {corpus}.") + "\n", {}
    if kind == "figure1" and corpus:
        drawn, about = drawings.figure_1(measured), _figure_1(measured)
    elif name == "figure3":
        drawn, about = drawings.figure_3(corpora), _figure_3(corpora)
    elif name == "figure4":
        drawn, about = drawings.figure_4(corpora), _figure_4(corpora)
    else:
        known = ", ".join([*TABLES, *KEYWORDS, THEORY, "figure1"])
        raise DeplError(
            f"There is no block {name!r}. Name settings, coverage, missing, table1, figure3 or "
            f"figure4, or one of {known} with a corpus behind it, as in table3-eurlex57k."
        )
    if drawn is None:
        return f"Not measured yet: {name}.\n", {}
    image, (alt, caption) = f"{name}.svg", about
    return f"![{alt}]({images}/{image})\n\n{caption}\n", {image: drawn}


def _figure_1(measured: Measured) -> tuple[str, str]:
    systems = drawings.curves(measured)
    if not systems:
        return "", ""
    n = drawings.together(len(next(iter(measured.reports[systems[0]].values())).bins))
    caption = blocks.paragraph(
        f"Macro-F1@{measured.k} on {measured.title} over labels from rare to common.",
        f"A point is the mean of {n * BIN_SIZE} labels"
        + (f": the paper's bins of {BIN_SIZE}, {n} neighbours averaged." if n > 1 else "."),
        "The grey ground is the share of labels that occur in the split: no curve can be above it.",
        _seeds({measured.corpus: measured}, systems),
        blocks.missing(s for s in CURVES if s not in systems),
    )
    named = ", ".join(SYSTEMS[s] for s in systems)
    return f"Macro-F1 on {measured.title} from rare to common labels: {named}", caption


def _figure_3(corpora: Mapping[str, Measured]) -> tuple[str, str]:
    return _tail_figure(corpora, SYSTEMS, "by system")


def _figure_4(corpora: Mapping[str, Measured]) -> tuple[str, str]:
    return _tail_figure(corpora, LENGTHS, "by the length of the label's text")


def _tail_figure(
    corpora: Mapping[str, Measured], systems: Mapping[str, str], by: str
) -> tuple[str, str]:
    found = {
        name: drawings.scores(measured, systems)
        for name, measured in corpora.items()
        if measured.reports
    }
    values = [
        f"{corpora[name].title}: "
        + ", ".join(f"{SYSTEMS.get(s, s)} {v.mean:.2f}" for s, v in rows.items())
        for name, rows in found.items()
        if rows
    ]
    absent = [
        f"on {corpora[name].title} "
        + ", ".join(blocks.short_name(s) for s in systems if s not in rows)
        for name, rows in found.items()
        if len(rows) < len(systems)
    ]
    caption = blocks.paragraph(
        f"Macro-F1 over all labels with 1 to 9 training documents {by}; labels that do not occur "
        "in the split count as 0, as in the paper.",
        _seeds(corpora, list(systems), bars=", thin lines: sample standard deviation"),
        f"Not measured yet: {'; '.join(absent)}." if absent else "",
    )
    return f"Macro-F1 of rare labels {by}. " + "; ".join(values), caption


def _seeds(corpora: Mapping[str, Measured], systems: Iterable[str], bars: str = "") -> str:
    """How many seeds the means are over."""
    found = [m.reports[s] for m in corpora.values() for s in systems if s in m.reports]
    counts = sorted({len(reports) for reports in found if None not in reports})
    if not counts or counts[-1] == 1:
        return "One seed."
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Means of {span} seeds{bars}."


def _require_whole_blocks(where: str, text: str) -> None:
    """Refuse a block without its end, which would swallow what follows."""
    whole = [body for _, _, body, _ in BLOCK.findall(text)]
    if text.count(START) != len(whole) or any(START in body for body in whole):
        raise DeplError(
            f"{where}: a block of results does not end. Close each <!-- results: NAME --> with "
            f"<!-- end --> on a line of its own."
        )


if __name__ == "__main__":
    main()
