"""What ``depl fit`` says at its end: how good the run is, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from depl.cli.console import count, err

if TYPE_CHECKING:
    from depl.run.folder import Run

_K = 5
_MOST = 2_000  # documents that quality is measured on: enough for a sentence


def print_next(run: Path, corpus: Path | None = None) -> None:
    """A sentence on the documents set aside, and three commands with the real paths."""
    from depl.run.folder import Run

    folder = Run.open(run)
    if not folder.has("fusion"):
        return
    quality = _quality(folder)
    name = escape(shlex.quote(str(run)))
    if quality is not None:
        err.print(f"\n{quality}")
        evaluate = f"depl evaluate {name}"
    else:
        where = "CORPUS" if corpus is None else escape(shlex.quote(str(corpus)))
        evaluate = f"depl evaluate {name} {where}"
    steps = {
        f"depl predict {name} FILE": "labels for new documents",
        evaluate: "all figures, and a report with charts",
        f"depl serve {name}": "a web page to try it on",
    }
    width = max(map(len, steps))
    err.print("\nNext:")
    for command, purpose in steps.items():
        err.print(f"  [bold]{command:<{width}}[/]  {purpose}")


def _quality(run: Run) -> str | None:
    """How good the suggestions are for documents that were set aside; None without any."""
    from depl import api
    from depl.evaluation.sentences import quality
    from depl.model.classifier import Classifier

    aside = run.aside()
    if aside is None:
        return None
    aside = aside.subset(range(min(len(aside), _MOST)))
    report = api.evaluate(Classifier.load(run.path), aside, ks=(_K,))
    return f"On the {count(len(aside), 'document')} set aside: {quality(report)}."
