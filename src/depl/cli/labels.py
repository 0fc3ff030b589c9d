"""``depl labels``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from depl.cli.console import out, print_json, progress
from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.labels.journal import Journal, in_force
from depl.model.classifier import Classifier, LabelCard
from depl.readers.jsonl import documents, label_rows
from depl.readers.problems import Kind, Problems
from depl.run.folder import Run

_NEAREST = 5  # labels like the one that is shown
_BAR = 28  # characters of the longest weight bar


def list_labels(run: Path, *, search: str, limit: int, as_json: bool) -> None:
    """Print labels, rarest first."""
    model = Classifier.load(run)
    wanted = search.casefold()
    order = np.argsort(model.train_counts, kind="stable")
    found = [
        int(i)
        for i in order
        if int(i) not in model.removed and wanted in model.labels[int(i)].name.casefold()
    ]
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
    """Print one label: description, keywords with their weights as bars, labels like it."""
    model = Classifier.load(run)
    position = model.find(query)
    card = model.card(position)
    nearest = [(model.labels[i], s) for i, s in model.nearest_labels(position, _NEAREST)]
    if as_json:
        like = [{"id": x.id, "name": x.name, "similarity": round(s, 4)} for x, s in nearest]
        print_json(_as_dict(card) | {"nearest": like})
        return
    out.print(f"[bold]{escape(card.label.name)}[/]  [dim]{escape(card.label.id)}[/]")
    if card.label.alt_names:
        out.print(f"also         {', '.join(card.label.alt_names)}")
    out.print(f"documents    {card.training_documents:,} in training")
    out.print(f"description  {card.description}")
    _print_keywords(card)
    for i, (label, similarity) in enumerate(nearest):
        name = f"{escape(label.name)} [dim]{escape(label.id)}[/]"
        out.print(f"{'like it' if i == 0 else '':<13}{similarity:.2f}  {name}")


def _print_keywords(card: LabelCard) -> None:
    if not card.keywords:
        why = (
            "its documents have no term that speaks for it"
            if card.training_documents
            else "no training document carries this label"
        )
        out.print(f"keywords     none: {why}")
        return
    heaviest = card.keywords[0][1]
    for i, (term, weight) in enumerate(card.keywords):
        bar = "█" * max(1, round(_BAR * weight / heaviest))
        out.print(f"{'keywords' if i == 0 else '':<13}{term:<22}{weight:6.2f}  [cyan]{bar}[/]")


def add_labels(run: Path, file: Path, examples: Path | None) -> None:
    """Add the labels of a file, with example documents from another."""
    labels, descriptions = _read_labels(file)
    model = Classifier.load(run)
    shown = {}
    if examples is not None:
        shown = _read_examples(examples, {x.id for x in labels}, set(model.labels.ids))
    with progress():
        model.add_labels(labels, descriptions=descriptions, examples=shown)
    some = sum(map(len, shown.values()))
    out.print(
        f"Added {_count(len(labels), 'label')}"
        + (f" with {_count(some, 'example')}." if some else ".")
        + " `undo` takes this back."
    )


def describe_label(run: Path, query: str, text: str) -> None:
    """Replace a label's description."""
    model = Classifier.load(run)
    label = model.labels[model.find(query)]
    model.describe_label(label.id, text)
    out.print(f"{escape(label.name)} ({escape(label.id)}) is now described as: {escape(text)}")


def rename_label(run: Path, query: str, name: str) -> None:
    """Replace a label's name."""
    model = Classifier.load(run)
    label = model.labels[model.find(query)]
    model.rename_label(label.id, name)
    card = model.card(model.find(label.id))
    out.print(f"{escape(label.name)} ({escape(label.id)}) is now {escape(card.label.name)}")
    out.print(f"description  {escape(card.description)}")


def remove_label(run: Path, query: str) -> None:
    """Never suggest a label again."""
    model = Classifier.load(run)
    label = model.labels[model.find(query)]
    model.remove_label(label.id)
    out.print(f"Removed {escape(label.name)} ({escape(label.id)}). `undo` brings it back.")


def undo(run: Path) -> None:
    """Take the last edit back; this needs the journal alone, so it always works."""
    journal = Journal(Run.open(run).path)
    with journal.locked():
        undone = journal.undo()
    out.print(f"Undone: {escape(undone.summary())}")


def history(run: Path, *, as_json: bool) -> None:
    """Print the journal, the oldest edit first."""
    entries = Journal(Run.open(run).path).entries()
    standing = {entry.number for entry in in_force(entries)}
    for entry in entries:
        undone = entry.edit != "undo" and entry.number not in standing
        if as_json:
            print_json(
                {
                    "entry": entry.number,
                    "time": entry.time,
                    "edit": entry.edit,
                    "summary": entry.summary(),
                    "undone": undone,
                }
            )
        else:
            mark = "  [dim](undone)[/]" if undone else ""
            out.print(f"{entry.number:>4}  {entry.time}  {escape(entry.summary())}{mark}")
    if not entries and not as_json:
        out.print("No label of this run was edited.")


def _read_labels(path: Path) -> tuple[list[Label], dict[str, str]]:
    """Labels from rows with ``id``, ``name``, and perhaps ``alt_names`` and ``description``."""
    problems = Problems()
    labels: dict[str, Label] = {}
    descriptions = {}
    for where, label, text in label_rows(path, problems, descriptions=True):
        if label.id in labels:
            problems.add(Kind.DUPLICATE_LABELS, where, repr(label.id))
        if not label.name.strip():
            problems.add(Kind.UNNAMED_LABELS, where, repr(label.id))
        labels[label.id] = label
        if text.strip():
            descriptions[label.id] = text
    _stop_at(problems, path)
    return list(labels.values()), descriptions


def _read_examples(path: Path, added: set[str], known: set[str]) -> dict[str, list[str]]:
    """Texts by label; labels that the run has already are passed over, unknown ones are wrong."""
    problems = Problems()
    found: dict[str, list[str]] = {}
    for document in documents(path, path.stem, problems):
        own = [x for x in document.labels if x in added]
        strangers = [x for x in document.labels if x not in added | known]
        if not document.text.strip():
            problems.add(Kind.NO_TEXT, document.where)
        elif strangers:
            problems.add(Kind.UNKNOWN_LABELS, document.where, repr(strangers[0]))
        elif not own:
            problems.add(Kind.NO_LABELS, document.where, "none of those to be added")
        for label_id in own:
            found.setdefault(label_id, []).append(document.text)
    _stop_at(problems, path)
    return found


def _stop_at(problems: Problems, path: Path) -> None:
    if problems:
        raise CorpusError(
            f"{path} cannot be used as it is. Nothing was changed.\n"
            + problems.listing(remedies=True)
        )


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _as_dict(card: LabelCard) -> dict[str, Any]:
    return {
        "id": card.label.id,
        "name": card.label.name,
        "alt_names": list(card.label.alt_names),
        "training_documents": card.training_documents,
        "description": card.description,
        "keywords": [{"term": t, "weight": round(w, 4)} for t, w in card.keywords],
    }
