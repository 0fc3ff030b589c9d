"""``depl learn``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from depl.cli.console import copied, count, out, print_json, progress
from depl.cli.options import Json, RunFolder


def learn(
    run: RunFolder,
    undo: Annotated[
        bool, typer.Option("--undo", help="Go back to the state before the run last learnt.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Learn from the feedback on a run, without fitting it again.

    Labels that people decided about are learnt again, with the documents of the feedback; other
    labels keep their weights. The order of suggestions and their probabilities learn, too.
    """
    from depl.run.folder import Run

    opened = Run.open(run)
    if undo:
        with opened.locked():
            number = opened.learned.undo()
        if as_json:
            print_json({"run": str(run), "state": number})
            return
        now = f"what it had learnt before (state {number})" if number else "as it was fitted"
        out.print(f"Undone: {escape(str(run))} is {now}. The feedback is still there.")
        return
    from depl.pipeline.learn import learn as learn_from_feedback

    with progress():
        lesson, taught = learn_from_feedback(opened)
    if as_json:
        facts = {"run": str(run), "state": opened.learned.current()}
        print_json(facts | asdict(lesson) | {"unknown_labels": taught.unknown_labels})
        return
    if not lesson.labels:
        out.print(f"There is nothing new since {escape(str(run))} last learnt.")
        return
    out.print(
        f"Learnt {count(lesson.labels, 'label')} again with {count(lesson.documents, 'document')} "
        f"of feedback in {lesson.seconds:.1f} s."
    )
    if taught.unknown_labels:
        some = escape(", ".join(taught.unknown_labels[:5]))
        out.print(f"Nothing was learnt about labels that the run was not fitted with: {some}.")
    out.print(
        f"[dim]Undo with: depl learn {copied(run)} --undo. A running service uses it once it has "
        f"reloaded: kill -HUP, or POST /v1/reload.[/]"
    )
