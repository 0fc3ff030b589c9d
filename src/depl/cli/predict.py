"""``depl predict``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

import depl
from depl.cli.console import count, err
from depl.cli.interrupts import remarking
from depl.cli.options import Encoding, IdColumn, Ray, RunFolder, Sheet, TextColumns
from depl.cli.predicted import (
    bar,
    print_json_lines,
    print_text,
    quiet_at_closed_pipe,
    sum_up,
    tell,
    warn_of_zeros,
)
from depl.core.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from depl.model.bulk import Asked
    from depl.readers.documents import Documents
    from depl.readers.resuming import SuggestionFile
    from depl.readers.suggestions import Form

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
            help="Documents (plain text, PDF, Word, HTML), folders of them, or tables and records "
            "(CSV, TSV, Excel, OpenDocument, JSON, Parquet, MARC), also compressed. Without files, "
            "or with -, standard input.",
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
            "--per-band",
            help="Use separate thresholds for rare and for frequent labels.",
        ),
    ] = False,
    model_name: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Which part suggests: fusion (all parts together), depl+c, depl, classifier, svm, "
            "names or neighbours; by default the setting of the run, usually fusion.",
        ),
    ] = None,
    no_ancestors: Annotated[
        bool,
        typer.Option(
            "--no-ancestors",
            help="Omit labels that are broader than another suggestion; the next best take their "
            "places.",
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
            help="Input format: text, pdf, docx, html, csv, tsv, excel, json, jsonl, parquet or "
            "marc; detected by default.",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Treat each line of plain text as a document.")
    ] = False,
    encoding: Encoding = None,
    sheet: Sheet = None,
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
        typer.Option(
            "--excel",
            help="Write CSV with the input's separator, for an Excel that opens the input. Where "
            "there is none, as in .xlsx, with commas: a German Excel needs --output FILE.xlsx.",
        ),
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
    from depl.readers.files import format_of
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
        columns=Columns.asked(text, labels, id, sheet=sheet),
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
    if excel and output is not None and form.delimiter is None and format_of(output) == "csv":
        err.print(
            f"[yellow]Note:[/] no separator can be taken over from {escape(documents.name)}, so "
            f"commas separate the cells. An Excel with decimal commas, such as a German one, does "
            f"not split at them: write an .xlsx file for it."
        )
    n_documents = 0
    remark = partial(_what_is_kept, target)
    with target or nullcontext(), remarking(remark), _adding(remark), quiet_at_closed_pipe():
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
        write = target.append if target else print_json_lines if as_json else print_text
        with (
            connected(ray, run=run, torch=model.retriever is not None) as executor,
            bar(documents, n_documents, printed=target is None) as moved,
        ):
            some = chunks(todo, _DOCUMENTS, _CHARACTERS)
            for chunk, ranking in rank_chunks(model, asked, some, executor):
                write(chunk, ranking.rows(model.labels))
                n_documents += len(chunk)
                moved(n_documents)
        if target is not None:
            target.finish()
    sum_up(documents, n_documents, left_out, output)
    if excel and output is not None and format_of(output) in ("csv", "tsv"):
        warn_of_zeros(output, model.labels)


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
