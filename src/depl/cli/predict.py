"""``depl predict``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

import depl
from depl.cli.console import count, err, label_text, out
from depl.cli.interrupts import remarking
from depl.cli.options import Encoding, IdColumn, Ray, RunFolder, TextColumns
from depl.core.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from depl.model.bulk import Asked
    from depl.readers.columns import Columns
    from depl.readers.document import Document
    from depl.readers.documents import Documents
    from depl.readers.resuming import SuggestionFile
    from depl.readers.suggestions import Form, Suggested

# A chunk ends at whichever comes first: short texts share the cost of a call among many, long
# ones keep memory and the loss by an interruption small.
_DOCUMENTS = 5_000
_CHARACTERS = 4_000_000
_LABELS = 5  # a document, unless more are asked for
_ALL_LABELS = 100  # where a threshold says how many


def predict(
    run: RunFolder,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Documents (plain text, PDF, Word, HTML), folders of them, or rows (JSON lines, "
            "CSV, TSV, Parquet), also compressed. Without files, or with -, standard input.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            help=f"Labels per document, at most; by default {_LABELS}, or {_ALL_LABELS} with "
            f"--threshold precision=P or f1.",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="SCORE|precision=P|f1",
            help="Omit labels with a lower score. precision=0.8 finds the lowest threshold at "
            "which 80% of the suggestions are right, f1 the one with the best F1.",
        ),
    ] = None,
    per_band: Annotated[
        bool,
        typer.Option(
            "--per-band", help="Find a separate threshold for each band of label frequency."
        ),
    ] = False,
    model_name: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Which part suggests: fusion (all parts together), depl+c, depl, classifier, svm, "
            "names or neighbours; by default the run's setting, which is mostly fusion.",
        ),
    ] = None,
    no_ancestors: Annotated[
        bool,
        typer.Option(
            "--no-ancestors",
            help="Omit labels that are broader than another suggestion; the next ones move up.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write to this .jsonl, .csv, .tsv, .parquet, .xlsx, .mrc or .marcxml file.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted --output.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing --output.")
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Input format: text, pdf, docx, html, jsonl, csv, tsv or parquet; detected by "
            "default.",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Take each line of plain text as a document.")
    ] = False,
    encoding: Encoding = None,
    text: TextColumns = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="FIELDS",
            help="MARC fields of subjects, such as 650=gnd: suggestions go to the first. By "
            "default those of the run, or 650,651,653.",
        ),
    ] = None,
    id: IdColumn = None,
    wide: Annotated[
        bool,
        typer.Option("--wide", help="Write a row per document: all its columns, then the labels."),
    ] = False,
    excel: Annotated[
        bool,
        typer.Option("--excel", help="Write CSV that Excel opens, with the input's separator."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    ray: Ray = None,
) -> None:
    """Suggest labels for documents, a few or millions; print them or write them to a file."""
    from depl.cli.thresholds import minimum_score, parsed
    from depl.core.cluster import connected
    from depl.model.bulk import Asked, identity, rank_chunks
    from depl.model.classifier import Classifier
    from depl.readers.columns import Columns
    from depl.readers.documents import Documents, chunks
    from depl.readers.encodings import known as known_encoding
    from depl.readers.stores import is_marc
    from depl.readers.suggestions import PLAIN, Form
    from depl.run.folder import Run

    aim = parsed(threshold, per_band=per_band)
    k = k or (_ALL_LABELS if isinstance(aim, str) else _LABELS)
    _check_options(output, resume=resume, overwrite=overwrite, as_json=as_json)
    if output is None and (wide or excel):
        raise ConfigError("--wide and --excel apply to a file: name it with --output.")
    to_marc = output is not None and is_marc(output)
    left_out = 0

    def report(place: str, why: str) -> None:
        nonlocal left_out
        left_out += 1
        if target is None or not target.passing_over:
            err.print(Text.assemble((f"{place} left out:", "yellow"), f" {why}"))

    kept = Run.open(run).columns()
    documents = Documents(
        files or ["-"],
        left_out=report,
        format=format,
        lines=lines,
        columns=Columns.asked(text, labels, id),
        kept=None if kept is None else Columns.from_json(kept),
        tell=tell,
        keep_fields=wide,
        keep_blank_records=to_marc,
        encoding=known_encoding(encoding),
    )
    form = Form(
        wide=k if wide else 0,
        excel=excel,
        delimiter=documents.delimiter if excel else None,
        marc=documents.marc if to_marc else PLAIN.marc,
        ids=not wide or _ids_tell_something(run),
    )
    target = None if output is None else _opened(output, documents, resume, overwrite, form)
    if target is not None and target.complete:
        err.print(f"[dim]{escape(str(output))} is finished already; --overwrite makes it again.[/]")
        return
    n_documents = 0
    remark = partial(_what_is_kept, target)
    with target or nullcontext(), remarking(remark), _adding(remark), _quiet_at_closed_pipe():
        model = Classifier.load(run, model_name)
        least = minimum_score(model, aim, per_band=per_band)
        if no_ancestors and not any(model.labels.hierarchy.broader):
            err.print("[dim]--no-ancestors changes nothing: this run knows no broader labels.[/]")
        which = (identity(run, model), k, least, not no_ancestors, model.model)
        asked = Asked(run.resolve(), *which)
        todo = iter(documents)
        if target is not None:
            made_from = _made_from(asked, aim, per_band=per_band)
            made_from |= {"ancestors": "no"} if no_ancestors else {}
            target.begin(made_from if form == Form() else made_from | {"form": str(form)})
            if target.done:
                before = count(target.done, "document was", "documents were")
                err.print(f"[dim]{before} finished before.[/]")
            n_documents = target.done
            todo = target.rest_of(todo)
        write = target.append if target else _print_json if as_json else _print_text
        with (
            connected(ray, run=run, torch=model.retriever is not None) as executor,
            _bar(documents, n_documents, to_terminal=target is None and out.is_terminal) as moved,
        ):
            some = chunks(todo, _DOCUMENTS, _CHARACTERS)
            for chunk, ranking in rank_chunks(model, asked, some, executor):
                write(chunk, ranking.rows(model.labels))
                n_documents += len(chunk)
                moved(n_documents)
        if target is not None:
            target.finish()
    _sum_up(documents, n_documents, left_out, output)


def tell(name: str, described: str, columns: Columns) -> None:
    """Say what is taken from a table, unless it is what depl itself calls the text."""
    if columns.text != ("text",):
        said = f"{name}: {described}; text: {columns.text_said}; id: {columns.id or 'row number'}"
        err.print(f"[dim]{escape(said)}[/]")


def _ids_tell_something(run: Path) -> bool:
    """Whether labels have other ids than their names; those added to a run may."""
    from depl.labels.journal import Journal
    from depl.run.folder import Run

    edited = Journal(run).folder.exists()
    return edited or any(label.id != label.name for label in Run.open(run).labels)


def _check_options(output: Path | None, *, resume: bool, overwrite: bool, as_json: bool) -> None:
    if output is not None and as_json:
        raise ConfigError(
            "--json prints to standard output, --output writes a file: give one of the two. The "
            "suffix of --output chooses the format; .jsonl gives the same rows as --json."
        )
    if output is None and (resume or overwrite):
        raise ConfigError("--resume and --overwrite apply to a file: name it with --output.")
    if resume and overwrite:
        raise ConfigError(
            "--resume continues an output, --overwrite starts it over: give one of the two."
        )


def _opened(
    output: Path, documents: Documents, resume: bool, overwrite: bool, form: Form
) -> SuggestionFile:
    if output.exists() and any(output.samefile(path) for path in documents.paths):
        raise ConfigError(f"{output} is also the input. Name another file for --output.")
    from depl.readers.resuming import SuggestionFile

    return SuggestionFile(output, resume=resume, overwrite=overwrite, form=form)


def _made_from(asked: Asked, aim: float | str | None, *, per_band: bool) -> dict[str, object]:
    """What the suggestions depend on, beside the documents; a run may be moved."""
    return {
        "depl": depl.__version__,
        "run": asked.identity,
        "k": asked.k,
        "threshold": f"{aim} per band" if per_band else aim,
        **({} if asked.model == "fusion" else {"model": asked.model}),
    }


def _print_json(chunk: Sequence[Document], rows: Sequence[Suggested]) -> None:
    from depl.readers.suggestions import json_lines

    sys.stdout.write(json_lines(chunk, rows))
    sys.stdout.flush()


def _print_text(chunk: Sequence[Document], rows: Sequence[Suggested]) -> None:
    """One line per document with its beginning, then one line per label."""
    for document, row in zip(chunk, rows, strict=True):
        words = " ".join(document.text[:1000].split())
        # Captured and written by hand: at a closed pipe rich would end the program by itself.
        with out.capture() as captured:
            title = Text.assemble((document.id, "bold"), "  ", (words[:72], "dim"))
            out.print(title, soft_wrap=False, no_wrap=True)
            for label, score in row:
                out.print(Text.assemble(f"  {score:6.2f}  ", label_text(label)))
            if not row:
                out.print("     [dim]no label that is sure enough[/]")
        sys.stdout.write(captured.get())
    sys.stdout.flush()


@contextmanager
def _bar(
    documents: Documents, finished_before: int, *, to_terminal: bool
) -> Iterator[Callable[[int], None]]:
    """A progress bar by bytes, with documents a second; none where suggestions appear as well."""
    if not err.is_terminal or to_terminal:
        yield lambda _: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.fields[done]}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # rich would move what goes to standard output to the bar's own console: standard error.
    with Progress(*columns, console=err, transient=True, redirect_stdout=False) as bars:
        task = bars.add_task("", total=documents.total or None, done="")
        begun = monotonic()

        def moved(n: int) -> None:
            speed = (n - finished_before) / max(monotonic() - begun, 1e-3)
            done = f"{count(n, 'document')}, {speed:,.0f}/s"
            bars.update(task, completed=documents.position, done=done)

        yield moved


def _what_is_kept(target: SuggestionFile | None) -> str:
    if target is None or not target.done:
        return ""
    done = count(target.done, "document is", "documents are")
    return f"{done} finished, and --resume continues"


@contextmanager
def _adding(remark: Callable[[], str]) -> Iterator[None]:
    """If a file cannot be read to its end, say what is kept of its documents."""
    try:
        yield
    except CorpusError as error:
        raise CorpusError(f"{error} {said}.") if (said := remark()) else error from None


@contextmanager
def _quiet_at_closed_pipe() -> Iterator[None]:
    """End silently when the reader of a pipe, such as head, has closed it."""
    try:
        yield
    except BrokenPipeError:
        # What is still in the buffer would be written, and fail again, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _sum_up(documents: Documents, n_documents: int, left_out: int, output: Path | None) -> None:
    if not n_documents:
        lost = count(left_out, f"{documents.unit} was", f"{documents.unit}s were")
        reason = f"{lost} left out" if left_out else "it is empty"
        raise CorpusError(
            f"No document could be read from {documents.name}: {reason}. Give plain text, PDF, "
            f"Word or HTML files, or JSON lines, CSV, TSV or Parquet with a text in every row."
        )
    if output is not None:
        err.print(f"[dim]{count(n_documents, 'document')} → {escape(str(output))}[/]")
    if documents.lines_of_stdin > 1:
        lines = count(documents.lines_of_stdin, "line")
        err.print(f"[dim]These {lines} are one document; with --lines each line is one.[/]")
    if left_out:
        rows = count(n_documents + left_out, documents.unit)
        err.print(f"[yellow]Left out: {left_out:,} of {rows}.[/]")
