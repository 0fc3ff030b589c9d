"""What is in a table, for people who choose its sheet and its columns: names and examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from depl.core.display import shortened
from depl.core.errors import CorpusError
from depl.readers.choosing import choose
from depl.readers.columns import Columns
from depl.readers.fields import WrongFieldError, as_words
from depl.readers.files import DOCUMENTS, Source, format_of
from depl.readers.problems import Problems
from depl.readers.rows import open_table, recognised
from depl.readers.tables import Fields, Table

_EXAMPLE = 80  # characters of a cell


class Preview(NamedTuple):
    """A table before documents are taken from it.

    Parameters
    ----------
    described : str
        What the file is: separator and encoding, or sheet.
    sheet : str
        The sheet that is read; empty where a file has none.
    sheets : tuple of str
        All sheets that are not empty.
    columns : tuple of (str, str)
        Every column's name, and what its first filled cell begins with.
    text : tuple of str
        The columns that would be taken as text; none where nothing shows which they are.
    id : str or None
        The column that would be taken as id.
    """

    described: str
    sheet: str
    sheets: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    text: tuple[str, ...]
    id: str | None


def preview(
    path: Path, *, sheet: str | None = None, kept: Columns | None = None, problems: Problems
) -> Preview | None:
    """What is in a table; None for a file that has no columns, such as plain text or MARC."""
    source = Source(path, problems)
    source.sheet = sheet
    source.sheet_before = kept.sheet if kept else None
    source.columns_before = kept.names if kept else ()
    format = format_of(path) or recognised(source, "text")
    if format == "marc" or format in DOCUMENTS:
        return None
    table = open_table(source, format=format)
    if not isinstance(table, Table):
        return None
    rows = table.sample()
    columns = tuple((name, _example(rows, name)) for name in table.header)
    try:
        chosen = choose(source.name, table, Columns(), kept=kept, labelled=False)
    except CorpusError:  # nothing shows which column has the text: people do
        chosen = Columns()
    return Preview(
        table.described, table.sheet, tuple(table.sheets), columns, chosen.text, chosen.id
    )


def _example(rows: Sequence[Fields], name: str) -> str:
    for row in rows:
        try:
            said = shortened(as_words(row.get(name), name), _EXAMPLE)
        except WrongFieldError:
            said = shortened(str(row.get(name)), _EXAMPLE)
        if said:
            return said
    return ""
