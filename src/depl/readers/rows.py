"""Rows of any file, one by one, each with its place: the only way from files to documents.

Fitting and predicting read the same rows. A bad row is a problem and costs no other row; a file
that cannot be read to its end is a fatal problem. What follows is up to whoever collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from depl.core.errors import CorpusError
from depl.readers.fields import WrongFieldError, parse_json, split_cell
from depl.readers.files import DAMAGE, Source, bare_suffix, format_of
from depl.readers.lines import BOM, Line, decoded, lines, reason, usable
from depl.readers.problems import Kind
from depl.readers.tables import Columns, Fields, delimited, parquet

T = TypeVar("T")

_DELIMITERS = {"csv": ",", "tsv": "\t"}


class Row(NamedTuple):
    """One row: file, line number (0: the whole file is the row) and fields."""

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
        lines have every field.
    lists : collection of str
        The columns whose cells hold lists. Other texts may begin with "[" or hold a ";".
    format : str, optional
        A key of ``SUFFIXES``, or "whole" to take the file as one row. When not given, it is
        recognised from the file's name, or else from the first line.
    """
    if format is None and source.path is not None:
        format = format_of(source.path)
    if format == "whole":
        return _whole(source, needed[0])
    columns = Columns(needed, optional)
    if format == "parquet":
        return _cells_split(source, parquet(source, columns), lists)
    found = lines(source)
    if format is None:
        format, found = _recognise(source, found, needed[0])
    if format == "text":
        return _text_rows(source, found, needed[0])
    if format == "jsonl":
        return _json_rows(source, found)
    table = delimited(source, found, _DELIMITERS[format], columns)
    return _cells_split(source, table, lists)


def convert(found: Iterable[Row], make: Callable[[Row], T]) -> Iterator[T]:
    """Make something of every row; a row with a field of the wrong type is a problem."""
    for row in found:
        try:
            made = make(row)
        except WrongFieldError as error:
            row.source.report(Kind.WRONG_FIELDS, row.line, str(error))
        else:
            yield made


def _recognise(
    source: Source, found: Iterator[Line], text_column: str
) -> tuple[str, Iterator[Line]]:
    """The format that the first line with anything in it shows, and all lines again."""
    seen = []
    for line in found:
        seen.append(line)
        if line.text.strip():
            break
    again = chain(seen, found)
    first = seen[-1].text.strip() if seen else ""
    if source.path is not None and bare_suffix(source.path) == ".json" and first[:1] == "[":
        raise CorpusError(
            f"{source.name} is one JSON list. Give an object a line instead; jq makes them: "
            f"jq -c '.[]' {source.name} > documents.jsonl"
        )
    for format, delimiter in _DELIMITERS.items():
        names = [name.strip('" ').lower() for name in first.split(delimiter)]
        if len(names) > 1 and text_column.lower() in names:
            return format, again
    return "jsonl" if first.startswith("{") else "text", again


def _whole(source: Source, field: str) -> Iterator[Row]:
    """One row with the text of the file."""
    try:
        with source.open() as stream:
            raw = stream.read()
    except DAMAGE as error:
        source.report(Kind.UNREADABLE, 0, reason(error))
        return
    text, fault = decoded(raw.removeprefix(BOM))
    if fault:
        source.report(Kind.WRONG_ENCODING, 0, fault)
    else:
        yield Row(source, 0, {field: text})


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
