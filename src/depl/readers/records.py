"""Rows of JSON lines, CSV, TSV and Parquet files, each with its file and line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from depl.readers.files import bare_suffix, lines
from depl.readers.trouble import Kind, Trouble

TABLES = (".csv", ".tsv", ".parquet")
# Only these columns of a table hold lists; a text may begin with "[" or hold a ";" as it likes.
LIST_COLUMNS = ("labels", "alt_names")

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BIGGEST_CELL = 2**31 - 1


class Record(NamedTuple):
    """One row: file, line number and fields."""

    file: str
    line: int
    fields: Mapping[str, object]

    @property
    def where(self) -> str:
        """``file:line``, as messages name it."""
        return f"{self.file}:{self.line}"


def records(path: Path, needed: Sequence[str], trouble: Trouble) -> Iterator[Record]:
    """Rows of a file, read by its suffix; ``needed`` are the columns a table must have."""
    suffix = bare_suffix(path)
    if suffix in _DELIMITERS:
        return csv_records(path, needed, trouble)
    if suffix == ".parquet":
        return parquet_records(path, needed, trouble)
    return json_records(path, trouble)


def parse_json(text: str) -> object:
    r"""Parse JSON; text that could never be written again as UTF-8 is broken, too.

    Examples
    --------
    >>> parse_json('"\\ud83d\\ude00"')
    '😀'
    >>> parse_json('"\\ud83d"')
    Traceback (most recent call last):
    ValueError: half of a surrogate pair in an escape
    """
    try:
        value: object = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (column {error.colno})") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair in an escape") from None
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
    return value


def json_records(path: Path, trouble: Trouble) -> Iterator[Record]:
    """Rows of JSON lines; blank lines are passed over."""
    for number, text, whole in lines(path, trouble):
        if not whole or not text or text.isspace():
            continue
        try:
            value = parse_json(text)
        except ValueError as error:
            trouble.add(Kind.BROKEN_JSON, f"{path.name}:{number}", str(error))
            continue
        if isinstance(value, dict):
            yield Record(path.name, number, value)
        else:
            detail = f"not an object but {text!r:.60}"
            trouble.add(Kind.BROKEN_JSON, f"{path.name}:{number}", detail)


def split_cell(cell: str) -> list[object]:
    """A list written in one cell: a JSON list, or items between ``;`` or ``|``.

    Examples
    --------
    >>> split_cell("17; 2560"), split_cell("wine|beer"), split_cell('["a;b"]'), split_cell("")
    (['17', '2560'], ['wine', 'beer'], ['a;b'], [])
    """
    cell = cell.strip()
    if cell.startswith("["):
        value = parse_json(cell)
        if isinstance(value, list):
            return value
    separator = ";" if ";" in cell else "|"
    return [item.strip() for item in cell.split(separator) if item.strip()]


def _with_lists(record: Record, trouble: Trouble) -> Record | None:
    """The record with its list cells split; None, and noted, where one is broken."""
    fields = dict(record.fields)
    for column in LIST_COLUMNS:
        cell = fields.get(column)
        if isinstance(cell, str):
            try:
                fields[column] = split_cell(cell)
            except ValueError as error:
                trouble.add(Kind.BROKEN_JSON, record.where, f"{column}: {error}")
                return None
    return record._replace(fields=fields)


def csv_records(path: Path, needed: Sequence[str], trouble: Trouble) -> Iterator[Record]:
    """Rows of a CSV or TSV file whose first row names the columns."""
    # The limit is one for the process; its default of 128 KiB is shorter than many documents.
    csv.field_size_limit(max(csv.field_size_limit(), _BIGGEST_CELL))
    broken_lines: set[int] = set()

    def texts() -> Iterator[str]:
        for number, text, whole in lines(path, trouble):
            if not whole:
                broken_lines.add(number)
            yield text + "\n"

    reader = csv.reader(texts(), delimiter=_DELIMITERS[bare_suffix(path)], strict=True)
    header: list[str] | None = None
    while True:
        first = reader.line_num + 1
        where = f"{path.name}:{first}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                trouble.add(Kind.UNREADABLE, where, "a quote that opens here is never closed")
            else:
                trouble.add(Kind.WRONG_COLUMNS, where, str(error))
            continue
        if not row or not broken_lines.isdisjoint(range(first, reader.line_num + 1)):
            continue
        if header is None:
            header = [name.strip().lower() for name in row]
            if _lacks(path, header, needed, trouble):
                return
        elif len(row) != len(header):
            detail = f"{len(row)} cells where the header has {len(header)}"
            trouble.add(Kind.WRONG_COLUMNS, where, detail)
        elif record := _with_lists(
            Record(path.name, first, dict(zip(header, row, strict=True))), trouble
        ):
            yield record


def parquet_records(path: Path, needed: Sequence[str], trouble: Trouble) -> Iterator[Record]:
    """Rows of a Parquet file; list columns may be lists or cells as in a CSV file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            names = [name.strip().lower() for name in file.schema_arrow.names]
            if _lacks(path, names, needed, trouble):
                return
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    fields = dict(zip(names, row.values(), strict=True))
                    if record := _with_lists(Record(path.name, number, fields), trouble):
                        yield record
    except (pa.ArrowException, OSError) as error:
        trouble.add(Kind.UNREADABLE, f"{path.name}:{number + 1}", str(error).partition("\n")[0])


def _lacks(path: Path, columns: Sequence[str], needed: Sequence[str], trouble: Trouble) -> bool:
    """Whether columns are missing, which is noted."""
    missing = [name for name in needed if name not in columns]
    if missing:
        detail = f"no column {' or '.join(map(repr, missing))} among {', '.join(columns)}"
        trouble.add(Kind.MISSING_COLUMNS, path.name, detail)
    return bool(missing)
