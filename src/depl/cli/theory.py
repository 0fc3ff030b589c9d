"""``depl theory``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from depl.cli.console import err, print_json, progress
from depl.cli.options import CorpusFolder, Format, Json, OnError, RunFolder, Split


def theory(
    run: RunFolder,
    folder: CorpusFolder,
    split: Split = "dev",
    documents: Annotated[
        int,
        typer.Option(
            "--documents", metavar="N", min=1, help="Number of documents, drawn at random."
        ),
    ] = 200,
    format: Format = None,
    on_error: OnError = "stop",
    as_json: Json = False,
) -> None:
    """Measure the paper's Theorem 1 on real documents: where it applies, how tight it is."""
    from functools import partial

    from depl import readers
    from depl.cli.theory_tables import print_tables
    from depl.core.storage import write_text
    from depl.evaluation.figures import svg
    from depl.model.classifier import Classifier
    from depl.theory.figure import draw_study
    from depl.theory.study import measure_corpus
    from depl.theory.summary import summary

    with progress():
        model = Classifier.load(run)
        data = readers.read(folder, format=format, on_error=on_error, splits=[split])
        [corpus] = data.splits.values()  # whatever the split was called
        study = measure_corpus(
            corpus,
            labels=model.labels,
            features=model.features,
            svm=model.svm,
            keywords=model.keywords,
            documents=documents,
        )
    path = run / "report" / f"theory-{split}.svg"
    write_text(path, svg(partial(draw_study, study=study), "wide"))
    found = summary(study)
    if as_json:
        print_json(found)
    else:
        print_tables(found, title=f"Theorem 1 on {folder.resolve().name}, {split}")
    err.print(f"[dim]Figure: {escape(str(path))}[/]")
