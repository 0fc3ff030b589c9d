"""What ``depl predict`` prints: which columns it takes, suggestions, progress, and a sum."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.text import Text

from depl.cli.console import count, err, label_text, out, print_line
from depl.core.display import shortened
from depl.core.errors import CorpusError

_OPENING = 72  # characters of a text

if TYPE_CHECKING:
    from depl.core.corpus import LabelSet
    from depl.readers.columns import Columns
    from depl.readers.document import Document
    from depl.readers.documents import Documents
    from depl.readers.suggestions import Suggested


def tell(name: str, described: str, columns: Columns) -> None:
    """Say what is taken from a table, unless it is what depl itself calls the text."""
    if columns.text != ("text",):
        said = f"{name}: {described}; text: {columns.text_said}; id: {columns.id or 'row number'}"
        err.print(f"[dim]{escape(said)}[/]")


def warn_of_zeros(output: Path, labels: LabelSet) -> None:
    """Say that Excel takes codes in delimited text for numbers, if there are any with zeros."""
    names = (name for label in labels for name in (label.id, label.name))
    code = next(filter(re.compile(r"0\d+([.,]\d+)?").fullmatch, names), None)
    if code is not None:
        err.print(
            f"[yellow]Note:[/] {escape(output.name)} has codes such as {escape(code)}, from which "
            f"Excel drops the zeros at the beginning when it opens the file. Write .xlsx for Excel."
        )


def print_json_lines(chunk: Sequence[Document], rows: Sequence[Suggested]) -> None:
    """One line of JSON per document."""
    from depl.readers.suggestions import json_lines

    sys.stdout.write(json_lines(chunk, rows))
    sys.stdout.flush()


def print_text(chunk: Sequence[Document], rows: Sequence[Suggested]) -> None:
    """One line per document with its beginning, then one line per label."""
    for document, row in zip(chunk, rows, strict=True):
        words = shortened(document.text, _OPENING)
        # Captured and written by hand: at a closed pipe rich would end the program by itself.
        with out.capture() as captured:
            print_line(out, Text.assemble((document.id, "bold"), "  ", (words, "dim")))
            for label, score in row:
                out.print(Text.assemble(f"  {score:6.2f}  ", label_text(label)))
            if not row:
                out.print("     [dim]no label that is sure enough[/]")
        sys.stdout.write(captured.get())
    sys.stdout.flush()


@contextmanager
def bar(
    documents: Documents, finished_before: int, *, printed: bool
) -> Iterator[Callable[[int], None]]:
    """A progress bar by bytes, with documents a second; none where suggestions appear as well.

    Those that go into a pipe mostly end on the same terminal, by way of head, less or jq.
    """
    if not err.is_terminal or (printed and (out.is_terminal or _into_a_pipe())):
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


def _into_a_pipe() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def quiet_at_closed_pipe() -> Iterator[None]:
    """End silently when the reader of a pipe, such as head, has closed it."""
    try:
        yield
    except BrokenPipeError:
        # What is still in the buffer would be written, and fail again, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def sum_up(documents: Documents, n_documents: int, left_out: int, output: Path | None) -> None:
    """How many documents were labelled and left out; an error where there was none."""
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
