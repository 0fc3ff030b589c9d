"""``depl theory``."""

from __future__ import annotations

from typing import Annotated

import typer

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
    import numpy as np

    from depl import readers
    from depl.cli.theory_tables import print_tables, summary
    from depl.core.corpus import indicator
    from depl.core.storage import write_text
    from depl.evaluation.figures import draw_theory, svg
    from depl.model.classifier import Classifier
    from depl.theory import theorem

    with progress():
        model = Classifier.load(run)
        data = readers.read(folder, format=format, on_error=on_error, splits=[split])
        [corpus] = data.splits.values()  # whatever the split was called
        corpus = corpus.aligned(model.labels)
        if documents < len(corpus):
            chosen = np.random.default_rng(0).choice(len(corpus), documents, replace=False)
            corpus = corpus.subset(np.sort(chosen))
        column = {term: i for i, term in enumerate(model.features.terms_)}
        keywords = [[column[term] for term, _ in row] for row in model.keywords]
        study = theorem.study(
            model.features.transform(corpus.texts),
            corpus.Y[:, : len(model.labels)],
            model.svm.weights_,
            model.svm.bias_,
            indicator(keywords, len(column)),
        )
    path = run / "report" / f"theory-{split}.svg"
    write_text(path, svg(lambda figure, _: draw_theory(figure, study), [], "wide", legend=False))
    found = summary(study)
    if as_json:
        print_json(found)
    else:
        print_tables(found, title=f"Theorem 1 on {folder.resolve().name}, {split}")
    err.print(f"[dim]Figure: {path}[/]")
