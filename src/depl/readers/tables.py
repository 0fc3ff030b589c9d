"""Rows of tables: CSV, TSV and Parquet."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from depl.readers.files import Source, bare_suffix
from depl.readers.lines import Line, bad_byte, reason, usable
from depl.readers.problems import Kind

# A quote that is never closed would swallow the rest of the file; no document is this long.
_LONGEST_ROW = 1 << 24
_BIGGEST_CELL = 2**31 - 1


Fields = dict[str, Any]


class Columns(NamedTuple):
    """The columns that a table must have, and those that are read if they are there (None: all)."""

    needed: Sequence[str]
    optional: Sequence[str] | None

    def find(self, source: Source, header: Sequence[str]) -> dict[str, int]:
        """The position of every column; of none, and a problem, if a needed one is missing."""
        known = [name.strip().lower() for name in header]
        missing = [name for name in self.needed if name.lower() not in known]
        if missing:
            lacking = f"no column {' or '.join(map(repr, missing))}"
            detail = f"{lacking}; its columns are {', '.join(map(str.strip, header))}"
            source.report(Kind.MISSING_COLUMNS, 0, detail)
            return {}
        wanted = [*self.needed, *(known if self.optional is None else self.optional)]
        return {name: known.index(name.lower()) for name in wanted if name.lower() in known}


def delimited(
    source: Source, found: Iterator[Line], delimiter: str, columns: Columns
) -> Iterator[tuple[int, Fields]]:
    """Line number and fields of every row of a CSV or TSV file; the first row has the names."""
    rows = _cells(source, found, delimiter)
    _, header = next(rows, (0, []))
    positions = columns.find(source, header) if header else {}
    if not positions:
        return
    for number, cells in rows:
        if len(cells) == len(header):
            yield number, {name: cells[at] for name, at in positions.items()}
        else:
            detail = f"{len(cells)} cells where the header has {len(header)}"
            source.report(Kind.WRONG_COLUMNS, number, detail)


class _UnclosedError(Exception):
    """A row is longer than any row can be."""


def _cells(
    source: Source, found: Iterator[Line], delimiter: str
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

    reader = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        row.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, _UnclosedError) as error:
            unclosed = isinstance(error, _UnclosedError) or "unexpected end" in str(error)
            why = "a quote that opens here is never closed" if unclosed else str(error)
            source.report(Kind.WRONG_COLUMNS, row[0].number, why)
            # What looked like the inside of a quoted cell is read again as rows.
            again.extendleft(reversed(row[1:]))
            reader = csv.reader(feed(), delimiter=delimiter, strict=True)
            continue
        # One problem a row, even where several of its lines are bad.
        bad = next((line for line in row if line.fault), None)
        if cells and (bad is None or usable(bad, source)):
            yield row[0].number, cells


def parquet(source: Source, columns: Columns) -> Iterator[tuple[int, Fields]]:
    """Row number and fields of every row of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.path is None or bare_suffix(source.path) != source.path.suffix:
        detail = "Parquet is compressed inside and read from its end, so it must be a plain file"
        source.report(Kind.UNREADABLE, 0, detail)
        return
    number, size = 0, source.size or 0
    try:
        # Page by page: a row group may be as large as the file.
        with pq.ParquetFile(source.path, pre_buffer=False, buffer_size=1 << 20) as file:
            header, n_rows = file.schema_arrow.names, max(file.metadata.num_rows, 1)
            positions = columns.find(source, header)
            if not positions:
                return
            source.reached = lambda: size * number // n_rows
            wanted = {name: header[at] for name, at in positions.items()}
            for batch in file.iter_batches(batch_size=1000, columns=list(wanted.values())):
                there = batch.schema.names
                read = [_values(batch.column(there.index(name))) for name in wanted.values()]
                for values in zip(*read, strict=True):
                    number += 1
                    fields = dict(zip(wanted, values, strict=True))
                    if _all_there(source, number, fields):
                        yield number, fields
    except (pa.ArrowException, OSError) as error:
        source.report(Kind.UNREADABLE, number + 1, reason(error))
    finally:
        source.reached = int


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
