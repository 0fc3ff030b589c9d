"""Rows of spreadsheets: Excel's old and new files, and OpenDocument's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from depl.core.apart import EndedError, call_apart
from depl.core.errors import MissingExtraError
from depl.readers.files import Source, bare_suffix
from depl.readers.limits import check_sheets, check_zip
from depl.readers.lines import reason
from depl.readers.problems import Kind

Cell = str | int | float | bool | None


def sheet_rows(source: Source) -> tuple[str, list[tuple[int, list[Cell]]]]:
    """The name of the first sheet with anything in it, and its rows with their numbers.

    Blank rows are left out. A file that cannot be read is a fatal problem, and has no rows.
    """
    if find_spec("python_calamine") is None:
        raise MissingExtraError("python-calamine", "excel", f"Reading {source.name}")
    if source.path is None or bare_suffix(source.path) != source.path.suffix:
        detail = "a spreadsheet is compressed inside, so it must be a plain file"
        source.report(Kind.UNREADABLE, 0, detail)
        return "", []
    try:
        found = call_apart(first_sheet, str(source.path.absolute()))
    except EndedError as error:
        found = {"unreadable": str(error)}
    if "unreadable" in found:
        detail = f"not a spreadsheet that can be opened: {found['unreadable']}"
        source.report(Kind.UNREADABLE, 0, detail)
        return "", []
    return found["name"], [(number, cells) for number, cells in found["rows"]]


def first_sheet(_: bytes, path: str) -> dict[str, Any]:
    """Name and rows of the first sheet with anything in it, or why there are none.

    Files come from anybody, and calamine is compiled: this is called in a process of its own.
    """
    from python_calamine import CalamineWorkbook

    try:
        check_zip(Path(path))
        check_sheets(Path(path))
        with CalamineWorkbook.from_path(path) as book:
            for name in book.sheet_names:
                # The empty area stays: rows keep the numbers that the spreadsheet shows.
                rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
                found = list(_filled(rows))
                if found:
                    return {"name": name, "rows": found}
    except MemoryError:
        raise
    except BaseException as error:  # calamine's own, those of zipfile, and panics of Rust
        return {"unreadable": reason(error)}
    return {"name": "", "rows": []}


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
