"""Rows of spreadsheets: Excel's old and new files, and OpenDocument's."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from zipfile import BadZipFile

from depl.core.apart import EndedError, call_apart
from depl.core.display import listing
from depl.core.errors import CorpusError, MissingExtraError
from depl.readers.column_names import role_of
from depl.readers.files import Source, bare_suffix
from depl.readers.limits import check_sheets, check_zip
from depl.readers.lines import reason
from depl.readers.problems import Kind
from depl.readers.spellings import sameness
from depl.readers.zero_padding import padded_cells

Cell = str | int | float | bool | None
Rows = list[tuple[int, list[Cell]]]


_NAME = 6  # words of a column's name, at most, where it stands below a group of columns
_A_TABLE = 0.3  # of the text of the fullest sheet: one with less is a cover, or a sum


class Sheet(NamedTuple):
    """A sheet that is read: its name, those of all sheets with anything in them, and its rows."""

    name: str
    names: Sequence[str]
    rows: Rows


def read_sheet(source: Source) -> Sheet:
    """The sheet that is asked for, or was taken before, or that looks like the table.

    Blank rows are left out. A file that cannot be read is a fatal problem, and has no rows.
    """
    nothing = Sheet("", (), [])
    if find_spec("python_calamine") is None:
        raise MissingExtraError("python-calamine", "excel", f"Reading {source.name}")
    if source.path is None or bare_suffix(source.path) != source.path.suffix:
        detail = "a spreadsheet is compressed inside, so it must be a plain file"
        source.report(Kind.UNREADABLE, 0, detail)
        return nothing
    try:
        path = str(source.path.absolute())
        found = call_apart(
            chosen_sheet, path, source.sheet, source.sheet_before, list(source.columns_before)
        )
    except EndedError as error:
        found = {"unreadable": str(error)}
    if "unreadable" in found:
        detail = f"not a spreadsheet that can be opened: {found['unreadable']}"
        source.report(Kind.UNREADABLE, 0, detail)
        return nothing
    if "sheets" in found:
        raise CorpusError(
            f"{source.name} has no sheet {source.sheet!r}. Its sheets are: "
            f"{listing(found['sheets'])}."
        )
    rows = [(number, cells) for number, cells in found["rows"]]
    return Sheet(found["name"], found["names"], rows)


def chosen_sheet(
    _: bytes, path: str, asked: str | None, before: str | None, columns: Sequence[str]
) -> dict[str, Any]:
    """Name and rows of a sheet, and the names of all that are not empty; or why there are none.

    Workbooks begin with a cover and end with sums. Unless a sheet is asked for, or one is there
    that was taken before, it is one with some of these columns, if there is any; and of several the
    first with a good part of the text of the fullest.

    Files come from anybody, and calamine is compiled: this is called in a process of its own.
    """
    from python_calamine import CalamineWorkbook

    try:
        check_zip(Path(path))
        check_sheets(Path(path))
        with CalamineWorkbook.from_path(path) as book:
            known = {sameness(name): name for name in reversed(book.sheet_names)}
            if asked is not None and sameness(asked) not in known:
                return {"sheets": book.sheet_names}
            wanted = known.get(sameness(asked or before or ""))
            sheets = {}
            for name in book.sheet_names:
                # The empty area stays: rows keep the numbers that the spreadsheet shows.
                rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
                sheets[name] = list(_filled(rows))
    except MemoryError:
        raise
    except BaseException as error:  # calamine's own, those of zipfile, and panics of Rust
        return {"unreadable": reason(error)}
    filled = [name for name, rows in sheets.items() if rows]
    if wanted is None:
        names = set(map(sameness, columns))
        fitting = [name for name in filled if names & _header(sheets[name])] or filled
        sizes = {name: _size(sheets[name]) for name in fitting}
        least = _A_TABLE * max(sizes.values(), default=0)
        wanted = next((name for name in fitting if sizes[name] >= least), "")
    shown = as_shown(sheets.get(wanted, []), Path(path), wanted)
    return {"name": wanted, "names": filled, "rows": shown}


def as_shown(rows: Rows, path: Path, sheet: str) -> Rows:
    """The rows, with the zeros that a spreadsheet shows before the numbers of codes."""
    try:
        padded = list(padded_cells(path, sheet))  # all of them or none: codes must stay alike
    except (KeyError, ValueError, OverflowError, ElementTree.ParseError, BadZipFile, zlib.error):
        return rows  # a workbook that does not say how it shows its numbers
    places = dict(rows)
    for number, column, said in padded:
        cells = places.get(number, [])
        if column <= len(cells) and isinstance(cells[column - 1], int | float):
            cells[column - 1] = said
    return rows


def from_header(rows: Rows) -> Rows:
    """The rows from the one with the names of the columns on.

    A title above the table fills one cell. Groups of columns, in merged cells, stand above the
    names of some columns, or of all; what they leave blank is filled by the row below them.
    """
    first = next((i for i, (_, cells) in enumerate(rows) if _count(cells) > 1), 0)
    found = rows[first:]
    if len(found) < 2:
        return found
    (_, above), (number, below) = found[:2]
    joined = [b if b is not None else a for a, b in zip_longest(above, below)]
    short = all(isinstance(x, str) and len(x.split()) <= _NAME for x in below if x is not None)
    gaps = any(a is None and b is not None for a, b in zip_longest(above, below))
    if short and gaps and _telling(joined) > _telling(above):
        return [(number, joined), *found[2:]]
    return found


def _count(cells: Sequence[Cell]) -> int:
    return sum(cell is not None for cell in cells)


def _telling(cells: Sequence[Cell]) -> int:
    """How many cells are what people call columns."""
    return sum(cell is not None and role_of(str(cell)) is not None for cell in cells)


def _header(rows: Rows) -> set[str]:
    return {sameness(str(cell)) for _, cells in from_header(rows)[:1] for cell in cells}


def _size(rows: Rows) -> int:
    """Characters in the texts of a table, without the names of its columns."""
    below = (cells for _, cells in from_header(rows)[1:] if _count(cells) > 1)
    return sum(len(cell) for cells in below for cell in cells if isinstance(cell, str))


def _filled(rows: Sequence[Sequence[object]]) -> Iterator[tuple[int, list[Cell]]]:
    for number, row in enumerate(rows, 1):
        cells = [_plain(cell) for cell in row]
        if any(cell is not None for cell in cells):
            yield number, cells


def _plain(value: object) -> Cell:
    """A cell's value as JSON would have it; a spreadsheet keeps every number with a fraction."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    text = str(value)
    return None if not text or text.isspace() else text
