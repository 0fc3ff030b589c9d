"""``depl feedback``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from depl.cli.console import copied, count, moment, out, print_json
from depl.cli.help import Command, Group
from depl.cli.options import Json, JsonLines, RunFolder
from depl.cli.text_argument import TextSource, read_text
from depl.core.errors import CorpusError

if TYPE_CHECKING:
    from depl.core.corpus import LabelSet
    from depl.labels.decisions import Entry
    from depl.labels.feedback import FeedbackStore
    from depl.model.classifier import Classifier

feedback_app = typer.Typer(cls=Group, no_args_is_help=True)

By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decided.")]
DocumentId = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="Id of the document; by default made from its text."),
]


@feedback_app.callback()
def feedback(context: typer.Context, run: RunFolder) -> None:
    """Keep what people decide about suggestions, for example `depl feedback RUN list`."""
    context.obj = run


@feedback_app.command("add", cls=Command)
def add(
    context: typer.Context,
    source: TextSource,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="LABEL", help="A suggestion that is right; may be repeated."
        ),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(
            "--reject", metavar="LABEL", help="A suggestion that is wrong; may be repeated."
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option("--add", metavar="LABEL", help="A label that is missing; may be repeated."),
    ] = None,
    id: DocumentId = None,
    by: By = "",
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="A key of your own: a second call with the same key changes nothing.",
        ),
    ] = None,
    as_json: JsonLines = False,
) -> None:
    """Accept, reject or add labels for one document; give labels by id or name."""
    from depl.model.classifier import Classifier

    if not (accept or reject or missing):
        raise CorpusError(
            "There is nothing to keep: say which labels of this document are right with --accept "
            "LABEL, wrong with --reject LABEL, or missing with --add LABEL. For a whole table of "
            "documents, use the page: depl serve RUN --allow-writes."
        )
    text = read_text(source)
    model = Classifier.load(context.obj)
    entries = model.feedback.add(
        text,
        accepted=accept or (),
        rejected=reject or (),
        added=missing or (),
        id=id,
        source="" if source in (text, "-") else source,
        by=by,
        key=key,
    )
    _print(entries, model, as_json=as_json)
    if as_json:
        return
    out.print(f"[dim]Kept. Undo with: depl feedback {copied(context.obj)} undo NUMBER[/]")


@feedback_app.command("list", cls=Command)
def list_feedback(
    context: typer.Context,
    document: Annotated[
        str | None,
        typer.Option("--document", metavar="ID", help="Only decisions about this document."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="LABEL", help="Only decisions about this label."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most this many.")
    ] = 20,
    as_json: JsonLines = False,
) -> None:
    """List decisions, latest first; undone ones are marked."""
    from depl.model.classifier import Classifier

    model = Classifier.load(context.obj)
    wanted = None if label is None else model.labels[model.find(label)].id
    store = model.feedback.store
    entries = store.history(document=document, label=wanted, limit=limit)
    _print(entries, model, as_json=as_json)
    if as_json:
        return
    more = store.count(document=document, label=wanted) - len(entries)
    if more:
        out.print(f"[dim]{count(more, 'earlier decision')}: see more with --limit.[/]")
    if not entries:
        asked = "" if document is None and label is None else " of this kind"
        out.print(f"There is no feedback{asked} on this run yet.")


@feedback_app.command("undo", cls=Command)
def undo(
    context: typer.Context,
    number: Annotated[
        int | None,
        typer.Argument(metavar="[NUMBER]", help="Which decision; by default the latest."),
    ] = None,
    by: By = "",
    as_json: Json = False,
) -> None:
    """Undo a decision; it stays in the history."""
    from depl.model.classifier import Classifier

    store = _store(context.obj)
    if number is None:
        last = store.last()
        if last is None:
            raise CorpusError("There is nothing to undo: no decision is left that was not undone.")
        number = last.number
    labels = Classifier.load(context.obj).labels
    entry = store.undo(number, by=by)
    if as_json:
        print_json(asdict(entry))
        return
    out.print(f"Undone: {_words(entry, labels)}")


@feedback_app.command("export", cls=Command)
def export(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder for the corpus.")],
    with_training: Annotated[
        bool,
        typer.Option("--with-training", help="Include the training documents of the run."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the documents with the labels that people gave them, as a corpus for `depl fit`."""
    from depl.core.corpus import Dataset
    from depl.model.classifier import Classifier
    from depl.readers.writing import write
    from depl.run.folder import Run

    model = Classifier.load(context.obj)
    taught = model.feedback.corpus(Run.open(context.obj).train() if with_training else None)
    corpus = taught.corpus
    if not len(corpus):
        raise CorpusError(
            f"There is no document to export: no label was accepted or added. "
            f"`depl feedback {context.obj} list` lists the decisions."
        )
    write(Dataset(corpus.labels, {"train": corpus}), target)
    facts = {
        "folder": str(target),
        "documents": len(corpus),
        "labels": len(corpus.labels),
        "without_labels": taught.without_labels,
        "unknown_labels": taught.unknown_labels,
    }
    if as_json:
        print_json(facts)
        return
    out.print(f"Wrote {count(len(corpus), 'document')} to {escape(str(target))}.")
    if taught.without_labels:
        left_out = count(taught.without_labels, "document was", "documents were")
        them = "it" if taught.without_labels == 1 else "them"
        out.print(f"{left_out} left out: nobody gave {them} a label.")
    if taught.unknown_labels:
        some = escape(", ".join(taught.unknown_labels[:5]))
        out.print(f"Left out labels that the run does not have: {some}.")
    command = f"depl fit {copied(target)} --out NEW_RUN"
    out.print(f"[dim]Train on it with: {command}[/]", soft_wrap=True)


def _store(run: Path) -> FeedbackStore:
    """The feedback without the model, which takes longer to load."""
    from depl.labels.feedback import FeedbackStore
    from depl.run.folder import Run

    return FeedbackStore(Run.open(run).path)


def _print(entries: Sequence[Entry], model: Classifier, *, as_json: bool) -> None:
    for entry in entries:
        if as_json:
            print_json(asdict(entry))
        else:
            out.print(_line(entry, model))


def _line(entry: Entry, model: Classifier) -> str:
    undone = "  [dim](undone)[/]" if entry.undone else ""
    return f"{entry.number:>5}  {moment(entry.time)}  {_words(entry, model.labels)}{undone}"


def _words(entry: Entry, labels: LabelSet) -> str:
    place = labels.get(entry.label)
    name = entry.label if place < 0 else labels[place].name
    label = name if name == entry.label else f"{name} ({entry.label})"
    p = "" if entry.probability is None else f" at {entry.probability:.2f}"
    by = f" by {escape(entry.by)}" if entry.by else ""
    opening = " ".join(entry.opening.split())[:50]
    return (
        f"{entry.verdict} {escape(label)}{p}{by}  "
        f"[dim]{escape(entry.document)}: {escape(opening)}[/]"
    )
