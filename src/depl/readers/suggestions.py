"""What is written about the labels of each document: JSON objects, rows of tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from depl.core.corpus import Label
from depl.core.display import shortened
from depl.core.errors import ConfigError
from depl.readers.cells import safe_cell
from depl.readers.document import Document
from depl.readers.marc import MarcFields

Suggested = Sequence[tuple[Label, float]]

_OPENING = 200  # characters of a record's text
_WIDE = ("label", "label_id", "probability")
COLUMNS = ("id", "rank", "label_id", "label_name", "score")


class Form(NamedTuple):
    """How suggestions are written, beside what the name of the file says.

    Parameters
    ----------
    wide : int
        Write a row a document: the columns of the input, and columns for so many labels. With 0,
        a row a suggestion.
    excel : bool
        Begin delimited text with a byte order mark, without which Excel takes it for another
        encoding.
    delimiter : str or None
        What separates the cells; by default a comma in ``.csv`` and a tab in ``.tsv`` files.
    marc : MarcFields
        Which fields of MARC records get the suggestions.
    ids : bool
        Whether a wide table has the labels' ids beside their names.
    """

    wide: int = 0
    excel: bool = False
    delimiter: str | None = None
    marc: MarcFields = MarcFields()
    ids: bool = True

    @property
    def decimal(self) -> str:
        """What Excel reads as the decimal point: a comma, where semicolons separate the cells."""
        return "," if self.excel and self.delimiter == ";" else "."

    @property
    def of_label(self) -> list[str]:
        """The columns that a label has in a wide table, without their numbers."""
        return [what for what in _WIDE if self.ids or what != "label_id"]


PLAIN = Form()


def json_lines(documents: Sequence[Document], rows: Sequence[Suggested], form: Form = PLAIN) -> str:
    """An object a document: ``{"id", "labels": [{"id", "name", "score"}]}``.

    Wide, it has the fields of the input, and the labels are its "suggestions".
    """
    made = []
    for document, row in zip(documents, rows, strict=True):
        labels = [{"id": x.id, "name": x.name, "score": round(s, 4)} for x, s in row]
        value = {"id": document.id, "labels": labels}
        if form.wide:
            value = {**fields_of(document), "suggestions": labels}
        made.append(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    return "".join(made)


def fields_of(document: Document) -> dict[str, Any]:
    """The columns of the input and what this document has in them.

    A record of a catalogue has none; it is known by its id and the beginning of its text.
    """
    original = document.original
    if isinstance(original, dict):
        return original
    if original is None:
        return {"id": document.id}
    return {"id": document.id, "text": shortened(document.text.partition("\n")[0], _OPENING)}


def header(documents: Sequence[Document], form: Form) -> list[str]:
    """The names of the columns of a table."""
    if not form.wide:
        return list(COLUMNS)
    own = list(fields_of(documents[0])) if documents else ["id"]
    added = [f"{what}_{i}" for i in range(1, form.wide + 1) for what in form.of_label]
    taken = [name for name in added if name in own]
    if taken:
        raise ConfigError(
            f"--wide adds a column {taken[0]!r}, and the input has one of that name. Rename it, or "
            f"write without --wide."
        )
    return own + added


def table_rows(
    documents: Sequence[Document], rows: Sequence[Suggested], form: Form, columns: Sequence[str]
) -> Iterator[list[Any]]:
    """The rows of a table with these columns: one a suggestion, or, wide, one a document."""
    n_own = len(columns) - len(form.of_label) * form.wide
    for document, row in zip(documents, rows, strict=True):
        if form.wide:
            fields = fields_of(document)
            cells = [fields.get(name) for name in columns[:n_own]]
            for label, score in row[: form.wide]:
                cells += [label.name, *([label.id] if form.ids else []), round(score, 4)]
            yield cells + [None] * (len(columns) - len(cells))
        else:
            for rank, (label, score) in enumerate(row, 1):
                yield [document.id, rank, label.id, label.name, round(score, 4)]


def delimited_lines(rows: Iterator[list[Any]], delimiter: str, decimal: str = ".") -> str:
    """Rows as delimited text; no cell of it is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    for cells in rows:
        writer.writerow([safe_cell(_plain(cell, decimal)) for cell in cells])
    return text.getvalue()


def _plain(cell: object, decimal: str) -> object:
    """A value of a cell; what JSON has nested is written as JSON."""
    if isinstance(cell, float):
        return str(cell).replace(".", decimal)
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell
