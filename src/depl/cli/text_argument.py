"""The argument that is a text, the name of a document, or - for standard input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from depl.core.errors import CorpusError

TextSource = Annotated[
    str,
    typer.Argument(
        metavar="TEXT|FILE|-",
        help="A text, a document (plain text, PDF, Word, HTML), or - for standard input.",
    ),
]


def read_text(source: str) -> str:
    """The text: standard input, a file's, or the argument itself."""
    from depl.readers.documents import only_document
    from depl.readers.files import format_of

    path = Path(source)
    try:
        is_there = path.exists() and bool(source)
    except (OSError, ValueError):  # a text can be too long for a name
        is_there = False
    if source == "-" or is_there:
        return only_document(source).text
    if format_of(path) is not None and not any(map(str.isspace, source)):
        raise CorpusError(
            f"There is no file {source}. Give a file, a text, or - for standard input."
        )
    if not source.strip():
        raise CorpusError("There is no text: the input is empty. Give a document's text.")
    return source
