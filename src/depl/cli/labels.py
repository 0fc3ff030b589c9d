"""``depl labels``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from depl.cli.console import (
    copied,
    count,
    err,
    label_text,
    moment,
    named,
    out,
    print_entry,
    print_json,
    progress,
)
from depl.cli.help import Command, Group
from depl.cli.options import Json, JsonLines, LabelQuery, RunFolder
from depl.core.errors import CorpusError

if TYPE_CHECKING:
    from depl.core.corpus import Label
    from depl.model.label_cards import LabelCard

_NEAREST = 5  # labels like the one that is shown
_BAR = 28  # characters of the longest weight bar

labels_app = typer.Typer(cls=Group, no_args_is_help=True)


@labels_app.callback()
def labels(context: typer.Context, run: RunFolder) -> None:
    """Show and edit the labels of a run, for example `depl labels RUN show LABEL`."""
    context.obj = run


@labels_app.command("list", cls=Command)
def list_labels(
    context: typer.Context,
    search: Annotated[
        str,
        typer.Option("--search", metavar="TEXT", help="Only labels with this in name or id."),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most this many.")
    ] = 20,
    as_json: JsonLines = False,
) -> None:
    """List labels with their numbers of training documents and keywords, rarest first."""
    import numpy as np

    from depl.model.classifier import Classifier

    model = Classifier.load(context.obj)
    wanted = search.casefold()
    order = np.argsort(model.train_counts, kind="stable")
    found = [
        int(i)
        for i in order
        if int(i) not in model.removed and wanted in _searched(model.labels[int(i)])
    ]
    if not found:
        raise CorpusError(f"No label name or id contains {search!r}; try a part of a word.")
    cards = [model.card(i) for i in found[:limit]]
    if as_json:
        for card in cards:
            print_json(_as_dict(card))
        return
    ids = any(card.label.id != card.label.name for card in cards)
    table = Table(*["id"] * ids, "name", box=None, pad_edge=False)
    table.add_column("documents", justify="right")
    table.add_column("keywords", no_wrap=True)
    for card in cards:
        names = [card.label.id, card.label.name] if ids else [card.label.name]
        words = " ".join(term for term, _ in card.keywords[:6])
        table.add_row(*map(escape, names), f"{card.training_documents:,}", escape(words))
    out.print(table)
    if len(found) > limit:
        more = count(len(found) - limit, "more label")
        out.print(f"[dim]{more}: see more with --limit, or look for one with --search.[/]")


@labels_app.command("show", cls=Command)
def show_label(context: typer.Context, query: LabelQuery, as_json: Json = False) -> None:
    """Show a label: its description, keywords, and broader, narrower and similar labels."""
    from depl.model.classifier import Classifier

    model = Classifier.load(context.obj)
    position = model.find(query)
    card = model.card(position)
    nearest = [(model.labels[i], s) for i, s in model.nearest_labels(position, _NEAREST)]
    if as_json:
        like = [{"id": x.id, "name": x.name, "similarity": round(s, 4)} for x, s in nearest]
        print_json(_as_dict(card) | {"nearest": like})
        return
    out.print(label_text(card.label, "bold"))
    if card.label.alt_names:
        _entry("also", ", ".join(card.label.alt_names))
    if card.label.description:
        _entry("definition", " ".join(card.label.description.split()))
    for head, others in (("broader", card.broader), ("narrower", card.narrower)):
        if others:
            _entry(head, named(others))
    _entry("documents", f"{card.training_documents:,} in training")
    _entry("description", card.description)
    _print_keywords(card)
    if nearest:
        _entry("similar", Text("how alike the labels are: 1 is the same, 0 nothing", "dim"))
    for label, similarity in nearest:
        _entry("", Text.assemble(f"{similarity:.2f}  ", label_text(label)))


def _searched(label: Label) -> str:
    return f"{label.name}\n{label.id}".casefold()


def _print_keywords(card: LabelCard) -> None:
    if not card.keywords:
        why = (
            "no term of its documents has a positive weight"
            if card.training_documents
            else "no training document carries this label"
        )
        _entry("keywords", f"none: {why}")
        return
    heaviest = card.keywords[0][1]
    _entry(
        "keywords", Text("how much each word speaks for the label: its weight in the SVM", "dim")
    )
    for term, weight in card.keywords:
        bar = "█" * max(1, round(_BAR * weight / heaviest))
        _entry("", Text.assemble(f"{term:<22}{weight:6.2f}  ", (bar, "cyan")))


def _entry(head: str, body: Text | str) -> None:
    print_entry(out, f"{head:<13}", body)


@labels_app.command("add", cls=Command)
def add_labels(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Labels with the fields id and name, and optionally alt_names, description, "
            "broader, examples (texts of documents that carry the label).",
        ),
    ],
    examples: Annotated[
        Path | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            help="Documents that carry the new labels, with the fields text and labels.",
        ),
    ] = None,
) -> None:
    """Add labels that can be suggested at once, without training."""
    from depl.cli.label_files import not_used, read_examples, read_labels
    from depl.model.classifier import Classifier

    labels, descriptions, shown, others = read_labels(file)
    model = Classifier.load(context.obj)
    there = [x for i, x in enumerate(model.labels) if i not in model.removed]
    called = {x.name.casefold(): x.id for x in there}
    if examples is not None:
        ids = {x.id for x in labels}
        for label_id, texts in read_examples(examples, ids, set(model.labels.ids)).items():
            shown[label_id] = [*shown.get(label_id, []), *texts]
    with progress():
        model.add_labels(labels, descriptions=descriptions, examples=shown)
    some = sum(map(len, shown.values()))
    added = count(len(labels), "label") + (f" with {count(some, 'example')}" if some else "")
    out.print(f"Added {added}. {_how_to_undo(context.obj)}")
    for label in labels:
        other = called.get(label.name.casefold())
        if other is not None:
            note = f"another label has the name {label.name!r}: {other}. Did you mean that one?"
            err.print(f"[yellow]Note:[/] {escape(note)}")
    if others:
        err.print(f"[yellow]Note:[/] {escape(not_used(file, others))}")


@labels_app.command("describe", cls=Command)
def describe_label(
    context: typer.Context,
    query: LabelQuery,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new description.")],
) -> None:
    """Replace a label's description."""
    from depl.model.classifier import Classifier

    model = Classifier.load(context.obj)
    label = model.labels[model.find(query)]
    model.describe_label(label.id, text)
    out.print(f"{escape(label.name)} ({escape(label.id)}) is now described as: {escape(text)}")


@labels_app.command("rename", cls=Command)
def rename_label(
    context: typer.Context,
    query: LabelQuery,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
) -> None:
    """Replace a label's name."""
    from depl.model.classifier import Classifier

    model = Classifier.load(context.obj)
    label = model.labels[model.find(query)]
    model.rename_label(label.id, name)
    card = model.card(model.find(label.id))
    out.print(f"{escape(label.name)} ({escape(label.id)}) is now {escape(card.label.name)}")
    out.print(f"description  {escape(card.description)}")


@labels_app.command("remove", cls=Command)
def remove_label(context: typer.Context, query: LabelQuery) -> None:
    """Stop suggesting a label."""
    from depl.model.classifier import Classifier

    model = Classifier.load(context.obj)
    label = model.labels[model.find(query)]
    model.remove_label(label.id)
    removed = f"{escape(label.name)} ({escape(label.id)})"
    out.print(f"Removed {removed}. {_how_to_undo(context.obj)}")


@labels_app.command("undo", cls=Command)
def undo(context: typer.Context) -> None:
    """Undo the latest edit; again, the one before it."""
    from depl.labels.journal import Journal
    from depl.run.folder import Run

    # The journal is enough: an edit with which the run cannot be loaded can be undone, too.
    journal = Journal(Run.open(context.obj).path)
    with journal.locked():
        undone = journal.undo()
    out.print(f"Undone: {escape(undone.summary())}")


@labels_app.command("history", cls=Command)
def history(context: typer.Context, as_json: JsonLines = False) -> None:
    """List all edits, oldest first."""
    from depl.labels.journal import Journal, in_force
    from depl.run.folder import Run

    entries = Journal(Run.open(context.obj).path).entries()
    in_effect = {entry.number for entry in in_force(entries)}
    for entry in entries:
        undone = entry.edit != "undo" and entry.number not in in_effect
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
            out.print(f"{entry.number:>4}  {moment(entry.time)}  {escape(entry.summary())}{mark}")
    if not entries and not as_json:
        out.print("No labels of this run have been edited.")


def _how_to_undo(run: Path) -> str:
    return f"Undo with: depl labels {copied(run)} undo"


def _as_dict(card: LabelCard) -> dict[str, Any]:
    return {
        "id": card.label.id,
        "name": card.label.name,
        "alt_names": list(card.label.alt_names),
        "definition": card.label.description,
        "broader": [{"id": x.id, "name": x.name} for x in card.broader],
        "narrower": [{"id": x.id, "name": x.name} for x in card.narrower],
        "training_documents": card.training_documents,
        "description": card.description,
        "keywords": [{"term": t, "weight": round(w, 4)} for t, w in card.keywords],
    }
