"""Table 5 and what keywords are worth, as markdown, from what ``keyword_table.py`` measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks import paragraph

METRICS = ("MAP", "P@1", "R@10")
TITLES = {
    "chance": "chance",
    "name": "its name",
    "keywords": "its keywords",
    "keywords, no numbers": "keywords, no numbers",
    "name + keywords": "name and keywords",
    "name + keywords, no numbers": "**name and keywords, no numbers**",
    "SVM, all weights": "all its SVM weights",
}


def example_table(keywords: Mapping[str, Any]) -> str:
    """Labels of one training document with their keywords; in bold those of the name."""
    lines = ["| label | top keywords |", "| --- | --- |"]
    for row in keywords["examples"]:
        words = [f"**{w}**" if w in row["in_name"] else w for w in row["keywords"]]
        name = row["name"].replace("|", "\\|")
        lines.append(f"| {name} ({row['id']}) | {' '.join(words)} |")
    return "\n".join(lines)


def measure_table(keywords: Mapping[str, Any]) -> str:
    """How well each description of a label finds its documents."""
    groups = keywords["groups"]
    heads = [f"{metric} ({group})" for group in groups for metric in METRICS]
    lines = ["| the label as a query | " + " | ".join(heads) + " |"]
    lines.append("|" + " --- |" * (len(heads) + 1))
    for kind, title in TITLES.items():
        found = [group["queries"][kind] for group in groups.values()]
        cells = [f"{row[metric]:.2f}" for row in found for metric in METRICS]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    notes = [_note(name, group) for name, group in groups.items()]
    return "\n".join(lines) + "\n\n" + "\n".join(notes)


def _note(name: str, group: Mapping[str, Any]) -> str:
    shares, full = group["keywords"], group["queries"]["name + keywords, no numbers"]
    gain = f"{full.get('gain', 0):.1f}".replace("-", "−")
    documents = "one training document" if name == "1" else f"{name} training documents"
    text = paragraph(
        f"({name}) {group['labels']:,} labels with {documents}, each carried by "
        f"{group['relevant']:.1f} of {group['documents']:,} dev documents on average.",
        f"The pseudo description has {gain} ± {full.get('gain_error', 0):.1f} "
        f"points of MAP more than the name (± one standard error); it is better for "
        f"{full.get('better', 0):.0f} % of the labels and worse for {full.get('worse', 0):.0f} %.",
        f"Of their keywords {shares['in_name']:.1f} % are words of the name and "
        f"{shares['numbers']:.1f} % have no letter; "
        f"{shares['labels_with_unknown_name']:.0f} % of the names have no word that the training "
        f"documents know.",
        width=98,
    )
    return f"- {text}".replace("\n", "\n  ")
