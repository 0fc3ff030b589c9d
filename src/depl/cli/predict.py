"""``depl predict``."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

import depl
from depl.cli.console import err, out
from depl.core.errors import ConfigError, CorpusError
from depl.core.storage import fingerprint
from depl.evaluation.bands import BANDS
from depl.fusion.thresholds import Thresholds, keep
from depl.model.classifier import Classifier
from depl.readers.documents import Document, Documents, chunks
from depl.readers.resuming import SuggestionFile
from depl.readers.suggestions import Suggested, json_lines
from depl.run.folder import Run

# A chunk ends at whichever comes first: short texts share the cost of a call among many, long
# ones keep memory and the loss by an interruption small.
_DOCUMENTS = 5_000
_CHARACTERS = 4_000_000
_LABELS = 5  # a document, unless more are asked for
_ALL_LABELS = 100  # where a threshold says how many


def predict(
    run: Path,
    files: Sequence[str],
    *,
    k: int | None,
    threshold: str | None,
    per_band: bool,
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
    aim = _parsed(threshold, per_band=per_band)
    k = k or (_ALL_LABELS if isinstance(aim, str) else _LABELS)
    _check_options(output, resume=resume, overwrite=overwrite, as_json=as_json)
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
        least = _least(model, aim, per_band=per_band)
        todo = iter(documents)
        if target is not None:
            target.begin(_made_from(run, model, k, aim, per_band=per_band))
            if target.done:
                err.print(f"[dim]{target.done:,} documents were finished before.[/]")
            n_documents = target.done
            todo = target.rest_of(todo)
        write = target.append if target else _print_json if as_json else _print_text
        with _bar(documents, to_terminal=target is None and out.is_terminal) as moved:
            for chunk in chunks(todo, _DOCUMENTS, _CHARACTERS):
                ranking = model.predict([document.text for document in chunk], k)
                if least is not None:
                    ranking = keep(ranking, least)
                write(chunk, ranking.rows(model.labels))
                n_documents += len(chunk)
                moved(n_documents)
        if target is not None:
            target.finish()
    _sum_up(documents, n_documents, left_out, output)


def _parsed(threshold: str | None, *, per_band: bool) -> float | str | None:
    """A number as a number; precision=P and f1 as they are."""
    if threshold is None:
        if per_band:
            raise ConfigError("--per-band needs --threshold precision=P or --threshold f1.")
        return None
    aim, _, wanted = threshold.replace(" ", "").partition("=")
    try:
        number = float(wanted if aim == "precision" else threshold)
    except ValueError:
        number = math.nan
    if aim == "precision" and 0 < number <= 1:
        return f"precision={number:g}"
    if threshold == "f1":
        return "f1"
    if aim == "precision" or math.isnan(number):
        raise ConfigError(
            f"--threshold must be a number, precision=P with P above 0 and at most 1, or f1; "
            f"got {threshold}."
        )
    if per_band:
        raise ConfigError(
            f"--per-band finds a threshold for each band, --threshold {threshold} sets one for "
            f"all: give one of the two, or --threshold precision=P."
        )
    return number


def _least(
    model: Classifier, aim: float | str | None, *, per_band: bool
) -> float | NDArray[np.float64] | None:
    """The score that a suggestion must reach, or each label's own."""
    if not isinstance(aim, str):
        return aim
    thresholds = model.thresholds
    if thresholds is None:
        raise ConfigError(
            f"--threshold {aim} needs the thresholds that a fusion is fitted with, and this run "
            f"has none. Finish it with `depl fit RUN`, or make them with `depl fit RUN --from "
            f"fusion`; or give a number."
        )
    precision = None if aim == "f1" else float(aim.partition("=")[2])
    if per_band:
        _tell_unreached(thresholds, aim, precision)
        return thresholds.of_labels(model.train_counts, precision)
    found = thresholds.best_f1 if precision is None else thresholds.for_precision(precision)
    if found is None:
        highest = float(thresholds.curve().precision.max(initial=0.0))
        raise ConfigError(
            f"--threshold {aim} is out of reach: on the validation slice the likeliest suggestions "
            f"are right in {highest:.1%} of the cases. Ask for less."
        )
    expected = thresholds.curve().at(found)
    err.print(
        f"[dim]threshold {found:.3f}: expect {expected.precision:.0%} of the suggestions to be "
        f"right, and {expected.recall:.0%} of all labels to be found[/]"
    )
    return found


def _tell_unreached(thresholds: Thresholds, aim: str, precision: float | None) -> None:
    for band in BANDS:
        name = band.name
        found = (
            thresholds.for_f1(name)
            if precision is None
            else thresholds.for_precision(precision, name)
        )
        said = "not suggested at all: out of reach" if found is None else f"threshold {found:.3f}"
        err.print(f"[dim]{aim}, labels with {name} training documents: {said}[/]")


def _check_options(output: Path | None, *, resume: bool, overwrite: bool, as_json: bool) -> None:
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


def _made_from(
    run: Path, model: Classifier, k: int, aim: float | str | None, *, per_band: bool
) -> dict[str, object]:
    """All that decides the suggestions, apart from the documents; the place of the run does not."""
    stages = Run.open(run).manifest()["stages"]
    prints = {name: stage["fingerprint"] for name, stage in stages.items()}
    return {
        "depl": depl.__version__,
        "run": fingerprint(prints, model.labels.ids, model.labels.names, model.descriptions),
        "k": k,
        "threshold": f"{aim} per band" if per_band else aim,
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
