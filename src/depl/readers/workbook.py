"""Suggestions as an Excel file that people open: bold names of columns, widths, dates, a filter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from depl.core.errors import ConfigError, MissingExtraError
from depl.readers.document import Document
from depl.readers.suggestions import Form, Suggested, header, table_rows

_MOST_ROWS, _LONGEST_CELL = 1_048_576, 32_767  # Excel's own limits; rows with the header
_NARROWEST, _WIDEST = 8, 50  # columns, in characters

_DAY = re.compile(r"(?:19|[2-9]\d)\d\d-\d\d-\d\d(T\d\d:\d\d:\d\d)?")  # Excel knows none before 1900
_TWO_DIGITS, _AS_DAY, _AS_TIME = 2, 14, 22  # formats that Excel shows as its user's country does
_SCORE = re.compile(r"(probability_\d+|score)")


class Workbook:
    """An Excel file, written row by row beside its place; it cannot be continued.

    Parameters
    ----------
    path : Path
        The file.
    form : Form
        What is written.
    """

    def __init__(self, path: Path, form: Form) -> None:
        try:
            import xlsxwriter
        except ModuleNotFoundError:
            raise MissingExtraError("XlsxWriter", "excel", f"Writing {path.name}") from None
        self.path = path
        self._form = form
        self._library = xlsxwriter
        self._temporary = path.with_name(f".{path.name}.tmp")
        self._book: Any = None
        self._columns: list[str] = []
        self._n_own = 0  # columns of the input
        self._scores: set[int] = set()
        self._widths: list[int] = []
        self._n_rows = 0

    def exists(self) -> bool:
        """Whether a finished output is there."""
        return self.path.exists()

    def holds(self, reach: int) -> bool:
        """It is written in one go, so there never is a part of it."""
        return False

    def cut(self, reach: int) -> None:
        """Begin."""
        # A text that looks like a formula, an address or a number stays a text.
        asked = {
            "constant_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        self._book = self._library.Workbook(str(self._temporary), asked)
        self._sheet = self._book.add_worksheet("suggestions")
        self._sheet.freeze_panes(1, 0)
        self._bold = self._book.add_format({"bold": True})
        self._score = self._book.add_format({"num_format": _TWO_DIGITS})
        self._day = self._book.add_format({"num_format": _AS_DAY})
        self._time = self._book.add_format({"num_format": _AS_TIME})

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        """Write the suggestions of these documents; returns how many rows there are."""
        if not self._columns:
            self._columns = header(documents, self._form)
            n_added = len(self._form.of_label) * self._form.wide or len(self._columns)
            self._n_own = len(self._columns) - n_added
            added = range(self._n_own, len(self._columns))
            self._scores = {at for at in added if _SCORE.fullmatch(self._columns[at])}
            self._widths = [_NARROWEST] * len(self._columns)
            for at, name in enumerate(self._columns):
                self._write(at, name, self._bold)
            self._n_rows = 1
        for cells in table_rows(documents, rows, self._form, self._columns):
            if self._n_rows == _MOST_ROWS:
                raise ConfigError(
                    f"{self.path.name} has more rows than a sheet can have ({_MOST_ROWS:,}). Write "
                    f"a .csv file, or --wide: a row a document."
                )
            for at, cell in enumerate(cells):
                self._write(at, cell)
            self._n_rows += 1
        return self._n_rows

    def _write(self, at: int, cell: object, format: object = None) -> None:
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            shown = self._score if at in self._scores else format
            self._sheet.write_number(self._n_rows, at, cell, shown)
            self._widen(at, len(f"{cell:.2f}" if at in self._scores else str(cell)))
        elif at < self._n_own and (moment := _moment(cell)) is not None:
            shown = self._day if len(str(cell)) == len("2026-11-19") else self._time
            self._sheet.write_datetime(self._n_rows, at, moment, shown)
            self._widen(at, len(str(cell)))
        elif cell is not None:
            text = str(cell)[:_LONGEST_CELL]
            self._sheet.write_string(self._n_rows, at, text, format)
            self._widen(at, len(text) + 3 * (format is not None))  # the button of the filter

    def _widen(self, at: int, length: int) -> None:
        self._widths[at] = max(self._widths[at], min(length + 1, _WIDEST))

    def finish(self) -> None:
        """Complete the file."""
        for at, width in enumerate(self._widths):
            self._sheet.set_column(at, at, width)
        if self._columns and self._n_rows > 1:
            self._sheet.autofilter(0, 0, self._n_rows - 1, len(self._columns) - 1)
        self._book.close()
        self._temporary.replace(self.path)

    def clear(self) -> None:
        """Delete what was only needed until the output was complete."""
        self._temporary.unlink(missing_ok=True)


def _moment(cell: object) -> datetime | None:
    """A day or time that a cell names as ISO 8601 does, as cells of spreadsheets are read."""
    if not isinstance(cell, str) or _DAY.fullmatch(cell) is None:
        return None
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        return None
