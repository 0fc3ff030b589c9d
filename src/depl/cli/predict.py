"""``depl predict``."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

import depl
from depl._io import fingerprint
from depl.classifier import Classifier
from depl.cli.console import err, out
from depl.errors import ConfigError, CorpusError
from depl.readers.documents import Document, Documents, chunks
from depl.readers.resuming import SuggestionFile
from depl.readers.suggestions import Suggested, json_lines
from depl.run import Run

# A chunk ends at whichever comes first: short texts share the cost of a call among many, long
# ones keep memory and the loss by an interruption small.
_DOCUMENTS = 5_000
_CHARACTERS = 4_000_000


def predict(
    run: Path,
    files: Sequence[str],
    *,
    k: int,
    threshold: float | None,
    output: Path | None,
    resume: bool,
    overwrite: bool,
    format: str | None,
    whole_files: bool,
    text_column: str,
    id_column: str | None,
    as_json: bool,
) -> None:
    """Suggest labels for every document, chunk by chunk; bad rows are told and left out."""
    _check_options(threshold, output, resume=resume, overwrite=overwrite, as_json=as_json)
    left_out = 0

    def tell(place: str, why: str) -> None:
        nonlocal left_out
        left_out += 1
        if target is None or not target.passing_over:
            err.print(Text.assemble((f"{place} left out:", "yellow"), f" {why}"))

    documents = Documents(
        files,
        left_out=tell,
        format=format,
        whole_files=whole_files,
        text_column=text_column,
        id_column=id_column,
    )
    target = None if output is None else _opened(output, documents, resume, overwrite)
    n_documents = 0
    with target or nullcontext(), _told_how_to_go_on(target), _quiet_when_nobody_reads():
        model = Classifier.load(run)
        todo = iter(documents)
        if target is not None:
            target.begin(_made_from(run, model, k, threshold))
            if target.done:
                err.print(f"[dim]{target.done:,} documents were finished before.[/]")
            n_documents = target.done
            todo = target.rest_of(todo)
        write = target.append if target else _print_json if as_json else _print_text
        with _bar(documents, to_terminal=target is None and out.is_terminal) as moved:
            for chunk in chunks(todo, _DOCUMENTS, _CHARACTERS):
                ranking = model.predict([document.text for document in chunk], k)
                rows = ranking.rows(model.labels)
                if threshold is not None:
                    rows = [[(x, s) for x, s in row if s >= threshold] for row in rows]
                write(chunk, rows)
                n_documents += len(chunk)
                moved(n_documents)
        if target is not None:
            target.finish()
    _sum_up(documents, n_documents, left_out, output)


def _check_options(
    threshold: float | None, output: Path | None, *, resume: bool, overwrite: bool, as_json: bool
) -> None:
    if threshold is not None and math.isnan(threshold):
        raise ConfigError("--threshold must be a number; got nan.")
    if output is not None and as_json:
        raise ConfigError(
            "--json prints to standard output, --output writes a file: give one of the two. The "
            "suffix of --output chooses the format; .jsonl gives the same rows as --json."
        )
    if output is None and (resume or overwrite):
        raise ConfigError("--resume and --overwrite are about a file: name it with --output.")
    if resume and overwrite:
        raise ConfigError(
            "--resume continues an output, --overwrite begins it again: give one of the two."
        )


def _opened(output: Path, documents: Documents, resume: bool, overwrite: bool) -> SuggestionFile:
    if output.exists() and any(output.samefile(path) for path in documents.paths):
        raise ConfigError(f"{output} is the input, too. Name another file for --output.")
    return SuggestionFile(output, resume=resume, overwrite=overwrite)


def _made_from(run: Path, model: Classifier, k: int, threshold: float | None) -> dict[str, object]:
    """All that decides the suggestions, apart from the documents; the place of the run does not."""
    stages = Run.open(run).manifest()["stages"]
    prints = {name: stage["fingerprint"] for name, stage in stages.items()}
    return {
        "depl": depl.__version__,
        "run": fingerprint(prints, model.labels.ids, model.labels.names),
        "k": k,
        "threshold": threshold,
    }


def _print_json(chunk: Sequence[Document], rows: Sequence[Suggested]) -> None:
    sys.stdout.write(json_lines(chunk, rows))
    sys.stdout.flush()


def _print_text(chunk: Sequence[Document], rows: Sequence[Suggested]) -> None:
    """An opening line a document, and a line a label."""
    for document, row in zip(chunk, rows, strict=True):
        words = " ".join(document.text[:1000].split())
        # A text may hold codes that would move the cursor of the terminal.
        opening = "".join(c if c.isprintable() else " " for c in words[:72])
        # Captured and written by hand: at a closed pipe rich would end the program by itself.
        with out.capture() as captured:
            title = Text.assemble((document.id, "bold"), "  ", (opening, "dim"))
            out.print(title, soft_wrap=False, no_wrap=True)
            for label, score in row:
                out.print(Text.assemble(f"  {score:6.2f}  {label.name} ", (label.id, "dim")))
        sys.stdout.write(captured.get())
    sys.stdout.flush()


@contextmanager
def _bar(documents: Documents, *, to_terminal: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar by bytes, unless the suggestions appear on the same terminal."""
    if not err.is_terminal or to_terminal:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.fields[done]:,} documents"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # rich would move what goes to standard output to the bar's own console: standard error.
    with Progress(*columns, console=err, transient=True, redirect_stdout=False) as bars:
        task = bars.add_task("", total=documents.total or None, done=0)
        yield lambda n: bars.update(task, completed=documents.position, done=n)


@contextmanager
def _told_how_to_go_on(target: SuggestionFile | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if target is not None and target.done:
            err.print(f"\n{target.done:,} documents are finished; go on with --resume.")
        raise


@contextmanager
def _quiet_when_nobody_reads() -> Iterator[None]:
    """End without a word when the reader of a pipe, such as head, has seen enough."""
    try:
        yield
    except BrokenPipeError:
        # What is still in the buffer would be written, and fail again, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _sum_up(documents: Documents, n_documents: int, left_out: int, output: Path | None) -> None:
    if not n_documents:
        rows = "1 row was" if left_out == 1 else f"{left_out:,} rows were"
        reason = f"{rows} left out" if left_out else "it is empty"
        raise CorpusError(
            f"No document could be read from {documents.name}: {reason}. Give a text a line, or "
            f"JSON lines, CSV, TSV or Parquet with a text in every row."
        )
    if output is not None:
        err.print(f"[dim]{n_documents:,} documents → {escape(str(output))}[/]")
    if left_out:
        err.print(f"[yellow]Left out: {left_out:,} of {n_documents + left_out:,} rows.[/]")
