"""Rows of tables: delimited text, Parquet, spreadsheets and JSON."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from depl.core.display import listing
from depl.readers import encodings
from depl.readers.delimiters import Dialect, sniff
from depl.readers.excel import from_header, read_sheet
from depl.readers.files import Source, bare_suffix
from depl.readers.limits import LONGEST_HEADER, check_rows, check_unpacked
from depl.readers.lines import Line, bad_byte, reason, usable
from depl.readers.problems import Kind, Problems
from depl.readers.spellings import sameness

# A quote that is never closed would swallow the rest of the file; no document is this long.
_LONGEST_ROW = 1 << 24
_BIGGEST_CELL = 2**31 - 1
_LOOKED_AT = 200  # lines or rows at the start of a table, to see what it holds
_LONGEST_NAME = 15  # words of a column's name; a row with a longer cell is a document

T = TypeVar("T")
Fields = dict[str, Any]
Numbered = Iterator[tuple[int, Fields]]


class Table(NamedTuple):
    """A table that has been opened: what it is, its columns, its first rows, and all rows.

    ``rows`` is called once, with the columns that are wanted; a row's number is that of its line.
    Of a workbook, ``sheet`` is the one that is read, and ``sheets`` are all that are not empty.
    """

    described: str
    header: Sequence[str]
    sample: Callable[[], Sequence[Fields]]
    rows: Callable[[Sequence[str]], Numbered]
    sheet: str = ""
    sheets: Sequence[str] = ()


class Wanted(NamedTuple):
    """The columns that a table must have, and those that are read if they are there (None: all).

    ``called`` are columns that have other names in this table.
    """

    needed: Sequence[str]
    optional: Sequence[str] | None
    called: Mapping[str, str] = MappingProxyType({})

    def find(self, source: Source, header: Sequence[str]) -> dict[str, str]:
        """The column for every name; for none, and a problem, if a needed one is missing."""
        known = same_names(header) | {sameness(name): x for name, x in self.called.items()}
        missing = [name for name in self.needed if sameness(name) not in known]
        if missing:
            lacking = f"no column {' or '.join(map(repr, missing))}"
            detail = f"{lacking}; its columns are {listing(header)}"
            source.report(Kind.MISSING_COLUMNS, 0, detail)
            return {}
        rest = (name for name in known if known[name] not in self.called.values())
        wanted = [*self.needed, *(rest if self.optional is None else self.optional), *self.called]
        return {name: known[sameness(name)] for name in wanted if sameness(name) in known}


def same_names(header: Iterable[str]) -> dict[str, str]:
    """The columns by their names in lower case and one Unicode form; the first of two is taken."""
    found: dict[str, str] = {}
    for name in header:
        found.setdefault(sameness(name), name)
    return found


def delimited(source: Source, found: Iterator[Line], usual: str) -> Table:
    """A table of delimited text; its first row has the names of the columns."""
    start, again = _ahead(found, lambda line: len(line.text))
    first = next((line for line in start if line.text.strip()), None)
    if first is not None and len(first.text) > LONGEST_HEADER:
        why = f"a first row of {len(first.text):,} characters, which cannot be names of columns"
        source.report(Kind.UNREADABLE, first.number, why)
        return _nothing("delimited text")
    dialect = sniff([line.text for line in start], usual)
    rows = _cells(source, islice(again, dialect.skipped, None), dialect)
    said = f"{dialect.in_words}, {encodings.in_words(source.encoding or 'utf-8')}"
    return _of_cells(source, said, rows)


def spreadsheet(source: Source) -> Table:
    """A sheet of a workbook; lines above the row with the names are passed over."""
    sheet = read_sheet(source)
    described = f"sheet {sheet.name!r}"
    others = [name for name in sheet.names if name != sheet.name]
    if others:
        described += f" (not read: {listing(others)})"
    table = _of_cells(source, described, iter(from_header(sheet.rows)))
    return table._replace(sheet=sheet.name, sheets=sheet.names)


def objects(described: str, found: Iterator[tuple[int, Fields]]) -> Table:
    """A table of JSON objects; its columns are the fields of the first of them."""
    sample, again = _ahead(found)
    header = list(dict.fromkeys(name for _, fields in sample for name in fields))

    def rows(names: Sequence[str]) -> Numbered:
        for number, fields in again:
            yield number, {name: fields.get(name) for name in names}

    return Table(described, header, lambda: [fields for _, fields in sample], rows)


def _nothing(described: str) -> Table:
    """A table of which nothing can be read."""
    return Table(described, (), list, lambda names: iter(()))


def _ahead(
    found: Iterator[T], size: Callable[[T], int] = lambda item: 0
) -> tuple[list[T], Iterator[T]]:
    """The first items, and all of them; an error among the first is raised after those before it.

    They are fewer where their sizes add up to more than there is to look at.

    Whoever takes rows one by one can keep what there is before the damage in a file.
    """
    first: list[T] = []
    damage: Exception | None = None
    try:
        total = 0
        for item in islice(found, _LOOKED_AT):
            first.append(item)
            total += size(item)
            if total > _LONGEST_ROW:
                break
    except Exception as error:
        damage = error

    def again() -> Iterator[T]:
        yield from first
        if damage is not None:
            raise damage
        yield from found

    return first, again()


def _named(cells: Sequence[str]) -> list[str]:
    """The names of the columns; one without a name is called by its number."""
    return [cell.strip() or f"column {i}" for i, cell in enumerate(cells, 1)]


def _of_cells(source: Source, described: str, found: Iterator[tuple[int, Sequence[Any]]]) -> Table:
    """A table of rows of cells, the first of which has the names, unless it holds a text.

    Blank rows are passed over; a row of another length is a problem. Blank cells after the last
    column do no harm: spreadsheets write them.
    """
    number, first = next(found, (0, []))
    names = ["" if cell is None else str(cell) for cell in first]
    if any(len(name.split()) > _LONGEST_NAME for name in names):
        described += ", no names of columns in the first row"
        names = [""] * len(first)
        found = chain([(number, first)], found)
    header = _named(names)
    places = {name: at for at, name in reversed(list(enumerate(header)))}

    def usable_rows() -> Iterator[tuple[int, Sequence[Any]]]:
        for number, cells in found:
            if not any(map(_filled, cells)):
                continue
            if len(cells) >= len(header) and not any(map(_filled, cells[len(header) :])):
                yield number, cells
            else:
                detail = f"{len(cells)} cells where the header has {len(header)}"
                source.report(Kind.WRONG_COLUMNS, number, detail)

    sample, again = _ahead(usable_rows() if header else iter(()))

    def rows(names: Sequence[str]) -> Numbered:
        for number, cells in again:
            yield number, {name: cells[places[name]] for name in names}

    def shown() -> list[Fields]:
        return [{name: cells[at] for name, at in places.items()} for _, cells in sample]

    return Table(described, header, shown, rows)


def _filled(cell: object) -> bool:
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


class _UnclosedError(Exception):
    """A row is longer than any row can be."""


def _cells(
    source: Source, found: Iterator[Line], dialect: Dialect
) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row; a quote too many costs its line and not the rest."""
    # The limit is one for the process; its default of 128 KiB is shorter than many documents.
    csv.field_size_limit(max(csv.field_size_limit(), _BIGGEST_CELL))
    again: deque[Line] = deque()
    row: list[Line] = []

    def feed() -> Iterator[str]:
        length = 0
        while (line := again.popleft() if again else next(found, None)) is not None:
            length = len(line.text) + (length if row else 0)
            if row and length > _LONGEST_ROW:
                again.appendleft(line)
                raise _UnclosedError
            row.append(line)
            yield line.text + "\n"

    rows = dialect.reader(feed(), strict=True)
    while True:
        row.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except (csv.Error, _UnclosedError) as error:
            unclosed = isinstance(error, _UnclosedError) or "unexpected end" in str(error)
            why = "a quote that opens here is never closed" if unclosed else str(error)
            source.report(Kind.WRONG_COLUMNS, row[0].number, why)
            # What looked like the inside of a quoted cell is read again as rows.
            again.extendleft(reversed(row[1:]))
            rows = dialect.reader(feed(), strict=True)
            continue
        # One problem a row, even where several of its lines are bad.
        bad = next((line for line in row if line.fault), None)
        if cells and (bad is None or usable(bad, source)):
            yield row[0].number, cells


def parquet(source: Source) -> Table:
    """A Parquet file; only the columns that are wanted are read."""
    import pyarrow.parquet as pq

    nothing = _nothing("Parquet")
    if source.path is None or bare_suffix(source.path) != source.path.suffix:
        detail = "Parquet is compressed inside and read from its end, so it must be a plain file"
        source.report(Kind.UNREADABLE, 0, detail)
        return nothing
    try:
        header = pq.read_schema(source.path).names
    except Exception as error:  # Arrow's own, and Python's where names are not UTF-8
        source.report(Kind.UNREADABLE, 1, reason(error))
        return nothing

    def rows(names: Sequence[str]) -> Numbered:
        number, size = 0, source.size or 0
        n_rows = 1
        source.reached = lambda: size * number // n_rows
        damage = None
        batches = _batches(source.path, size, names)
        while damage is None:
            try:
                n_rows, read = next(batches)
            except StopIteration:
                break
            except Exception as error:
                damage = reason(error)
                break
            for values in zip(*read, strict=True):
                number += 1
                fields = dict(zip(names, values, strict=True))
                if _all_there(source, number, fields):
                    yield number, fields
        source.reached = int
        if damage is not None:
            source.report(Kind.UNREADABLE, number + 1, damage)

    def sample() -> list[Fields]:
        # What is wrong with these rows is told when they are read.
        unheard = parquet(Source(source.path, Problems()))
        return [fields for _, fields in islice(unheard.rows(header), _LOOKED_AT)]

    return Table("Parquet", header, sample, rows)


def _batches(
    path: Path | None, size: int, names: Sequence[str]
) -> Iterator[tuple[int, list[list[object]]]]:
    """How many rows a Parquet file has, and the columns of these names, some rows at a time."""
    import pyarrow.parquet as pq

    # Page by page: a row group may be as large as the file.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        n_rows = file.metadata.num_rows
        check_rows(n_rows, size)
        declared = sum(
            file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)
        )
        check_unpacked(declared, size)
        unpacked = 0
        # A value that is stored once may be in every row, so few rows at a time are unpacked.
        for batch in file.iter_batches(batch_size=128, columns=list(names)):
            unpacked += batch.nbytes
            check_unpacked(unpacked, size)
            there = batch.schema.names
            yield max(n_rows, 1), [_values(batch.column(there.index(name))) for name in names]


def _values(column: Any) -> list[object]:  # noqa: ANN401 - pyarrow has no types
    """The values of a Parquet column; the error where one cannot be had, as a string not UTF-8."""
    try:
        values: list[object] = column.to_pylist()
    except ValueError:
        values = [_value(scalar) for scalar in column]
    return values


def _value(scalar: Any) -> object:  # noqa: ANN401 - pyarrow has no types
    try:
        return scalar.as_py()
    except ValueError as error:
        return error


def _all_there(source: Source, number: int, fields: Fields) -> bool:
    """Whether every value of a row could be read; one that could not is a problem."""
    for name, value in fields.items():
        if isinstance(value, ValueError):
            if isinstance(value, UnicodeDecodeError):
                source.report(Kind.WRONG_ENCODING, number, f"{name}: {bad_byte(value)}")
            else:
                source.report(Kind.WRONG_FIELDS, number, f"{name}: {reason(value)}")
            return False
    return True
