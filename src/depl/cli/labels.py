"""``depl labels``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from depl.classifier import Classifier, LabelCard
from depl.cli.console import out, print_json
from depl.errors import CorpusError

_BAR = 28  # characters of the longest weight bar


def list_labels(run: Path, *, search: str, limit: int, as_json: bool) -> None:
    """Print labels, rarest first."""
    model = Classifier.load(run)
    wanted = search.casefold()
    order = np.argsort(model.train_counts, kind="stable")
    found = [int(i) for i in order if wanted in model.labels[int(i)].name.casefold()]
    if not found:
        raise CorpusError(f"No label name contains {search!r}; try a part of a word.")
    cards = [model.card(i) for i in found[:limit]]
    if as_json:
        for card in cards:
            print_json(_as_dict(card))
        return
    table = Table("id", "name", box=None, pad_edge=False)
    table.add_column("documents", justify="right")
    table.add_column("keywords", no_wrap=True)
    for card in cards:
        words = " ".join(term for term, _ in card.keywords[:6])
        table.add_row(
            escape(card.label.id), escape(card.label.name), f"{card.training_documents:,}", words
        )
    out.print(table)
    if len(found) > limit:
        out.print(f"[dim]{len(found) - limit:,} more; --limit and --search show others.[/]")


def show_label(run: Path, query: str, *, as_json: bool) -> None:
    """Print one label: its description, and its keywords with their weights as bars."""
    model = Classifier.load(run)
    card = model.card(model.find(query))
    if as_json:
        print_json(_as_dict(card))
        return
    out.print(f"[bold]{escape(card.label.name)}[/]  [dim]{escape(card.label.id)}[/]")
    if card.label.alt_names:
        out.print(f"also         {', '.join(card.label.alt_names)}")
    out.print(f"documents    {card.training_documents:,} in training")
    out.print(f"description  {card.description}")
    if not card.keywords:
        why = (
            "its documents have no term that speaks for it"
            if card.training_documents
            else ("no training document carries this label")
        )
        out.print(f"keywords     none: {why}")
        return
    heaviest = card.keywords[0][1]
    for i, (term, weight) in enumerate(card.keywords):
        bar = "█" * max(1, round(_BAR * weight / heaviest))
        out.print(f"{'keywords' if i == 0 else '':<13}{term:<22}{weight:6.2f}  [cyan]{bar}[/]")


def _as_dict(card: LabelCard) -> dict[str, Any]:
    return {
        "id": card.label.id,
        "name": card.label.name,
        "alt_names": list(card.label.alt_names),
        "training_documents": card.training_documents,
        "description": card.description,
        "keywords": [{"term": t, "weight": round(w, 4)} for t, w in card.keywords],
    }
