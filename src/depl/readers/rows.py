"""Rows of any file, one by one, each with its place: the only way from files to documents.

Fitting and predicting read the same rows. A bad row is a problem and costs no other row; a file
that cannot be read to its end is a fatal problem. What follows is up to whoever collects them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, TypeGuard, TypeVar

from depl.core.errors import CorpusError
from depl.readers.column_names import role_of
from depl.readers.delimiters import DELIMITERS
from depl.readers.fields import WrongFieldError, parse_json, split_cell
from depl.readers.files import DAMAGE, Source, format_of
from depl.readers.limits import LONGEST_JSON_LINE, LONGEST_LINE, TooLargeError, check_columns
from depl.readers.lines import Line, find_encoding, lines, usable
from depl.readers.plain_text import NoDocumentError, decode
from depl.readers.problems import Kind
from depl.readers.tables import Fields, Table, Wanted, delimited, objects, parquet, spreadsheet

T = TypeVar("T")

# A MARC record begins with its length and, at byte 10, "22"; MARCXML names its namespace.
_MARC = re.compile(rb"^\d{5}.{5}22\d{5}|<[^>]{0,300}http://www\.loc\.gov/MARC21/slim", re.S)
_USUAL = {"csv": ",", "tsv": "\t"}  # delimiters, unless the file shows another


class Row(NamedTuple):
    """One row: file, line number and fields."""

    source: Source
    line: int
    fields: Fields

    @property
    def where(self) -> str:
        """``file:line``, as messages name it."""
        return self.source.place(self.line)


def rows(
    source: Source,
    needed: Sequence[str],
    *,
    optional: Sequence[str] | None = (),
    lists: Collection[str] = (),
    format: str | None = None,
    called: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Row]:
    """Read the rows of a file that can be used; the others are problems.

    Parameters
    ----------
    source : Source
        The file.
    needed : sequence of str
        The columns that a table must have, in any case; fields are called by these names. Rows
        of plain text have one field, called by the first of them.
    optional : sequence of str or None
        Columns of a table that are read if they are there; None: all others. The rows of JSON
        have every field.
    lists : collection of str
        The columns whose cells hold lists. Other texts may begin with "[" or hold a ";".
    format : str, optional
        One of the formats of rows in ``SUFFIXES``; "text" has a row a line. When not given, it is
        recognised from the file's name, or else from the first line.
    called : mapping of str to str
        What the table calls these columns, where it is something else.
    """
    format, found = _opened(source, format, needed[0])
    if format == "text":
        return _text_rows(source, found, needed[0])
    if format == "jsonl":
        return _json_rows(source, found)
    if format == "json":
        return _json_list(source, found)
    table = _table(source, format, found)
    return _cells_split(source, _selected(source, table, Wanted(needed, optional, called)), lists)


def open_table(
    source: Source, *, format: str | None = None, text: str = "text"
) -> Table | Iterator[Row]:
    """A table, ready to choose columns of; or, of a file that is none, its rows of text.

    ``text`` is the field of these rows, and the name of a column that shows that a file whose name
    does not tell its format is a table.
    """
    format, found = _opened(source, format, text)
    if format == "text":
        return _text_rows(source, found, text)
    return _table(source, format, found)


def _opened(source: Source, format: str | None, text: str) -> tuple[str, Iterator[Line]]:
    """The format of a file, given or recognised, and its lines, where it has any."""
    if format is None and source.path is not None:
        format = format_of(source.path)
    if format in ("parquet", "excel"):
        return format, iter(())
    if format != "jsonl":
        find_encoding(source)  # JSON is UTF-8 by its definition
    found = lines(source, LONGEST_JSON_LINE if format == "json" else LONGEST_LINE)
    return _recognise(found, text) if format is None else (format, found)


def _table(source: Source, format: str, found: Iterator[Line]) -> Table:
    """The table; one of more columns than any has is a problem, and has none."""
    if source.sheet is not None and format != "excel":
        raise CorpusError(
            f"{source.name} has no sheets: --sheet (in Python: sheet=) is for Excel and "
            f"OpenDocument files."
        )
    table = _table_of(source, format, found)
    try:
        check_columns(len(table.header))
    except TooLargeError as error:
        source.report(Kind.UNREADABLE, 1, str(error))
        return table._replace(header=(), rows=lambda names: iter(()))
    return table


def _table_of(source: Source, format: str, found: Iterator[Line]) -> Table:
    if format == "parquet":
        return parquet(source)
    if format == "excel":
        return spreadsheet(source)
    if format == "jsonl":
        return objects("JSON lines", _numbered(_json_rows(source, found)))
    if format == "json":
        return objects("JSON", _numbered(_json_list(source, found)))
    return delimited(source, found, _USUAL[format])


def _numbered(found: Iterator[Row]) -> Iterator[tuple[int, Fields]]:
    return ((row.line, row.fields) for row in found)


def _selected(source: Source, table: Table, columns: Wanted) -> Iterator[tuple[int, Fields]]:
    """The rows of a table with these columns, under the names by which they were asked for."""
    if not table.header:
        return
    chosen = columns.find(source, table.header)
    if not chosen:
        return
    for number, fields in table.rows(list(dict.fromkeys(chosen.values()))):
        yield number, {name: fields[column] for name, column in chosen.items()}


def convert(found: Iterable[Row], make: Callable[[Row], T]) -> Iterator[T]:
    """Make something of every row; a row with a field of the wrong type is a problem."""
    for row in found:
        try:
            made = make(row)
        except WrongFieldError as error:
            row.source.report(Kind.WRONG_FIELDS, row.line, str(error))
        else:
            yield made


def recognised(source: Source, text: str) -> str:
    """The format that a file without a telling name has, or standard input, by its first bytes."""
    try:
        raw = source.head()
        if _MARC.search(raw[:4096]):
            return "marc"
        head = decode(raw)
    except NoDocumentError:
        return "text"  # which says what it is instead
    except DAMAGE:
        return "jsonl"  # which says how far it can be read
    found = (Line(number, line, "") for number, line in enumerate(head.split("\n"), 1))
    return _recognise(found, text)[0]


def _recognise(found: Iterator[Line], text: str) -> tuple[str, Iterator[Line]]:
    """The format that the first line with anything in it shows, and all lines again."""
    seen = []
    for line in found:
        seen.append(line)
        if line.text.strip():
            break
    again = chain(seen, found)
    first = seen[-1].text.strip() if seen else ""
    if first.startswith("{"):
        return "jsonl", again
    for delimiter in DELIMITERS:
        names = [name.strip('" ') for name in first.split(delimiter)]
        if len(names) > 1 and _is_header(names, text):
            return ("tsv" if delimiter == "\t" else "csv"), again
    return "text", again


def _is_header(names: Sequence[str], text: str) -> bool:
    """Whether these are names of columns; two at least, as a text may begin with any word."""
    if text.lower() in (name.lower() for name in names):
        return True
    roles = [role_of(name) for name in names]
    return len(roles) - roles.count(None) > 1 and ("text" in roles or "title" in roles)


def _text_rows(source: Source, found: Iterator[Line], field: str) -> Iterator[Row]:
    """A row for every line that is not blank."""
    for line in found:
        if usable(line, source) and line.text and not line.text.isspace():
            yield Row(source, line.number, {field: line.text})


def _json_rows(source: Source, found: Iterator[Line]) -> Iterator[Row]:
    """Rows of JSON lines; blank lines are ignored."""
    for line in found:
        if not usable(line, source) or not line.text or line.text.isspace():
            continue
        try:
            value = parse_json(line.text)
            if not isinstance(value, dict):
                raise ValueError(f"not an object but {line.text!r:.60}")
        except ValueError as error:
            source.report(Kind.BROKEN_JSON, line.number, str(error))
        else:
            yield Row(source, line.number, value)


def _json_list(source: Source, found: Iterator[Line]) -> Iterator[Row]:
    """Rows of one JSON list, or of the one list in an object; a file may have JSON lines, too."""
    kept = list(found)
    try:
        value = parse_json("\n".join(line.text for line in kept))
    except ValueError as error:
        if kept and next(filter(str.strip, (x.text for x in kept)), "").lstrip().startswith("{"):
            yield from _json_rows(source, iter(kept))
        elif kept:
            source.report(Kind.UNREADABLE, 0, f"broken JSON: {error}")
        return
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 and _of_objects(lists[0]) else [value]
    if not _of_objects(value):
        source.report(Kind.UNREADABLE, 0, "JSON that is no list of objects")
        return
    for number, fields in enumerate(value, 1):
        yield Row(source, number, fields)


def _of_objects(value: object) -> TypeGuard[list[Fields]]:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _cells_split(
    source: Source, table: Iterator[tuple[int, Fields]], lists: Collection[str]
) -> Iterator[Row]:
    """Rows of a table, with lists for the cells that hold lists."""
    for number, fields in table:
        try:
            for column in lists:
                if isinstance(fields.get(column), str):
                    fields[column] = split_cell(fields[column])
        except ValueError as error:
            source.report(Kind.BROKEN_JSON, number, f"{column}: {error}")
        else:
            yield Row(source, number, fields)
