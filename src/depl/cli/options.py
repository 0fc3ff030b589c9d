"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

CorpusFolder = Annotated[
    Path, typer.Argument(metavar="CORPUS", help="Corpus folder, or one table.")
]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run folder, as written by `depl fit`.")
]
LabelQuery = Annotated[str, typer.Argument(metavar="LABEL", help="Id or name of the label.")]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="Split of the corpus to use.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Corpus format; detected by default."),
]
TextColumns = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="COLUMN,...",
        help="Columns of a table that hold the text; detected by default.",
    ),
]
LabelColumns = Annotated[
    str | None,
    typer.Option(
        "--labels", metavar="COLUMN,...", help="Columns that hold the labels; detected by default."
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Column of the document's id; detected by default."
    ),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(
        "--label-separator",
        metavar="TEXT",
        help="What separates the labels in a cell: ; or | or any other text, or one of the words "
        "newline, tab and none (a cell is one label); detected by default.",
    ),
]
PathSeparator = Annotated[
    str | None,
    typer.Option(
        "--path-separator",
        metavar="TEXT",
        help="What separates the steps of labels that are paths (Home > Bath > Towels), or none; "
        "detected by default.",
    ),
]
LabelsAsTheyAre = Annotated[
    bool,
    typer.Option(
        "--labels-as-they-are",
        help="Keep labels apart that differ only in case, spaces or Unicode form.",
    ),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option(
        "--vocabulary",
        metavar="FILE",
        help="Labels and their names: SKOS (Turtle, RDF/XML, JSON-LD, N-Triples) or a table.",
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        "--language", metavar="CODE", help="Language of the vocabulary's names, such as de."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files, such as cp1252 or cp850; detected by default.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="NAME",
        help="Sheet of an Excel or OpenDocument file; by default the first that looks like a "
        "table.",
    ),
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
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Change a setting, such as linear.C=0.5; may be repeated. `depl init` lists all.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="local|auto|HOST:PORT",
        help="Work on a Ray cluster: on this machine alone, on the cluster that it is a node of, "
        "or on the one whose head has this address (pip install 'depl\\[ray]').",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print JSON lines, one entry each.")]
