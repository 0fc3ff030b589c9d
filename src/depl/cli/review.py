"""``depl review``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from depl.cli.console import copied, count, err, out, print_json, print_line
from depl.cli.options import IdColumn, Json, RunFolder, Sheet, TextColumns
from depl.core.display import shortened
from depl.core.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from depl.labels.review_queue import Progress, ReviewQueue, Waiting
    from depl.model.classifier import Classifier
    from depl.readers.columns import Columns

_CHUNK = 2_000  # documents that are labelled at once
_CHARACTERS = 4_000_000
_OPENING = 72  # characters of a text
_COLUMNS = ("place", "id", "source", "uncertain", "text")


def review(
    run: RunFolder,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Documents to add to the queue: tables, documents or folders of them.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most this many.")
    ] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="Write the queue to this .csv, .tsv or .jsonl file."
        ),
    ] = None,
    text: TextColumns = None,
    id: IdColumn = None,
    sheet: Sheet = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Empty the queue first; feedback stays.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Queue documents for people to review, the most instructive first.

    The page of `depl serve` shows them one by one. Without FILE, those still waiting are put in
    order again and listed.
    """
    from depl.model.classifier import Classifier
    from depl.model.review import ordered, renew
    from depl.readers.columns import Columns

    if output is not None and _suffix(output) not in (".csv", ".tsv", ".jsonl"):
        raise ConfigError(f"--output takes a .csv, .tsv or .jsonl file; got {output}.")
    model = Classifier.load(run)
    queue = model.review
    if clear:
        err.print(f"[dim]{count(queue.clear(), 'document')} removed from the queue.[/]")
    renew(model, queue)
    added = _add(model, queue, files, Columns.asked(text, id=id, sheet=sheet)) if files else 0
    progress = queue.progress()
    if not progress.total and not clear:
        raise CorpusError(
            f"There is nothing to review. Add documents to the queue: "
            f"depl review {shlex.quote(str(run))} new.csv"
        )
    order = ordered(model, queue.waiting())
    if output is not None:
        _write(output, _rows(model, queue, order))
    if as_json:
        shown = [] if output else _rows(model, queue, order[:limit])
        facts = {"total": progress.total, "done": progress.done, "skipped": progress.skipped}
        print_json({"run": str(run), "added": added, **facts, "next": shown})
        return
    _print(model, queue, order[:limit])
    _sum_up(run, progress, added, len(order) - limit, output)


def _add(model: Classifier, queue: ReviewQueue, files: list[str], asked: Columns) -> int:
    """Put the documents of files into the queue; returns how many are new."""
    from depl.cli.predicted import tell
    from depl.labels.review_queue import NewDocument
    from depl.model.review import lessons
    from depl.readers.columns import Columns
    from depl.readers.documents import Documents, chunks

    def report(place: str, why: str) -> None:
        err.print(Text.assemble((f"{place} left out:", "yellow"), f" {why}"))

    documents = Documents(
        files,
        left_out=report,
        columns=asked,
        kept=None if model.columns is None else Columns.from_json(model.columns),
        tell=tell,
    )
    added, read = 0, 0
    for chunk in chunks(iter(documents), _CHUNK, _CHARACTERS):
        found = lessons(model, [document.text for document in chunk])
        source = Path(documents.name).name if documents.unit == "row" else ""
        # Row 17 of this table is not row 17 of another, about which somebody has decided.
        names = [("", Path(x.where).name) if x.numbered else (x.id, source) for x in chunk]
        added += queue.add(
            NewDocument(x.text, *name, *row)
            for x, name, row in zip(chunk, names, found, strict=True)
        )
        read += len(chunk)
    if not read:
        raise CorpusError(f"No document could be read from {documents.name}. Give another file.")
    if read > added:
        err.print(
            f"[dim]{count(read - added, 'document was', 'documents were')} in the queue already.[/]"
        )
    return added


def _rows(model: Classifier, queue: ReviewQueue, order: list[Waiting]) -> list[dict[str, Any]]:
    from depl.model.review import reasons

    texts, labels, counts = queue.texts(), model.labels, model.train_counts
    return [
        {
            "place": place,
            "id": x.id,
            "source": x.source,
            "uncertain": [
                {"id": labels[i].id, "name": labels[i].name, "probability": p, "rare": rare}
                for i, p, rare in reasons(x.suggested, labels, counts)
            ],
            "text": texts[x.number],
        }
        for place, x in enumerate(order, 1)
    ]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    from depl.readers.suggestions import delimited_lines

    if _suffix(path) == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        names = [
            {**row, "uncertain": "; ".join(str(x["name"]) for x in row["uncertain"])}
            for row in rows
        ]
        table = [list(_COLUMNS), *([row[x] for x in _COLUMNS] for row in names)]
        text = delimited_lines(iter(table), "," if _suffix(path) == ".csv" else "\t")
    path.write_text(text, encoding="utf-8")


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _print(model: Classifier, queue: ReviewQueue, order: list[Waiting]) -> None:
    """One line per document with its beginning, and one with what is uncertain about it."""
    from depl.model.review import labels_per_document, missing, reasons, said

    carried = labels_per_document(model)
    for place, x in enumerate(order, 1):
        words = shortened(queue.document(x.number).text, _OPENING)
        head = f"{place:>4}  "
        print_line(out, Text.assemble(head, (x.called, "bold"), "  ", (words, "dim")))
        which = reasons(x.suggested, model.labels, model.train_counts)
        lacking = missing(x.suggested, carried)
        out.print(Text(f"      {said(which, lacking, model.labels)}"))


def _sum_up(run: Path, progress: Progress, added: int, more: int, output: Path | None) -> None:
    if more > 0:
        out.print(f"[dim]      and {count(more, 'more document')}[/]")
    new = f"Queued {count(added, 'document')}. " if added else ""
    left = count(progress.left, "document waits", "documents wait")
    done = f"{progress.done:,} done, {progress.skipped:,} skipped"
    err.print(f"{new}{left}; {done}.")
    for name, n in sorted(progress.by.items()):
        if name:
            err.print(f"  {escape(name)}: {n:,} done")
    if output is not None:
        err.print(f"[dim]The queue → {escape(str(output))}[/]")
    if progress.left:
        err.print(
            f"[dim]Review them in a browser: depl serve {copied(run)} --allow-writes[/]",
            soft_wrap=True,
        )
