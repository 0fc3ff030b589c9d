"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

CorpusFolder = Annotated[Path, typer.Argument(metavar="CORPUS", help="Corpus folder.")]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run folder, as written by `depl fit`.")
]
LabelQuery = Annotated[str, typer.Argument(metavar="LABEL", help="Id or name of the label.")]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="Split of the corpus to use.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Corpus format; detected by default."),
]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--on-error",
        metavar="stop|skip",
        help="Stop at invalid rows, or skip them and report how many there were.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
