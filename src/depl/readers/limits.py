"""How much a file may hold: a small one must not fill the memory, whatever it unpacks to."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

LONGEST_LINE = 64 << 20
"""Bytes of a line; no document is this long."""
LONGEST_JSON_LINE = 1 << 30
"""Bytes of a line in a file that is one JSON value, which programs write without line breaks."""
LARGEST_DOCUMENT = 256 << 20
"""Bytes of a file that is one document."""
LONGEST_HEADER = 1 << 20
"""Characters of the row that names the columns."""
MOST_COLUMNS = 16_384
"""Columns of a table: as many as a spreadsheet has."""
MOST_CELLS = 1 << 26
"""Cells between the first and the last of a sheet, all of which its reader makes room for."""

_UNPACKED, _TIMES = 256 << 20, 200  # texts pack to a tenth, very repetitive ones to a hundredth
_MOST_ROWS, _ROWS_PER_BYTE = 10_000_000, 100
_CHUNK = 1 << 20
# Where a cell is, if it is far out: nearly all tables have none of these and are passed at once.
_FAR_ROW = re.compile(rb"""\sr\s*=\s*["'][A-Z]*(\d{6,})["']""")
_FAR_COLUMN = re.compile(rb"""\sr\s*=\s*["']([A-Z]{2,})\d""")
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_CELLS = {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}


class TooLargeError(OSError):
    """A file holds more than depl reads; the message says what."""


def check_unpacked(unpacked: int, packed: int) -> None:
    """Raise if a file unpacks to far more than texts do.

    Examples
    --------
    >>> check_unpacked(300 << 20, 30 << 20)
    >>> check_unpacked(300 << 20, 458_000)
    Traceback (most recent call last):
    depl.readers.limits.TooLargeError: it unpacks to more than 200 times its size, as no text does
    """
    if unpacked > max(_UNPACKED, _TIMES * packed):
        raise TooLargeError(f"it unpacks to more than {_TIMES} times its size, as no text does")


def check_rows(n_rows: int, size: int) -> None:
    """Raise if a file declares more rows than its bytes can tell apart."""
    if n_rows > max(_MOST_ROWS, _ROWS_PER_BYTE * size):
        raise TooLargeError(f"it declares {n_rows:,} rows in {size:,} bytes")


def check_columns(n_columns: int) -> None:
    """Raise if a table has more columns than any."""
    if n_columns > MOST_COLUMNS:
        raise TooLargeError(f"{n_columns:,} columns; a table has at most {MOST_COLUMNS:,}")


def check_zip(path: Path) -> None:
    """Raise if the members of a zip file unpack to far more than they should; other files pass."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
        check_unpacked(total, path.stat().st_size)


def check_sheets(path: Path) -> None:
    """Raise if a cell of a spreadsheet is so far out that the cells before it fill the memory."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.startswith("xl/worksheets/") and member.endswith(".xml"):
                _check_extent(*_extent(archive, member))
            elif member == "content.xml":
                for extent in _repeated(archive, member):
                    _check_extent(*extent)


def _check_extent(rows: int, columns: int) -> None:
    if rows * columns > MOST_CELLS:
        raise TooLargeError(
            f"a sheet of {rows:,} rows and {columns:,} columns, more than {MOST_CELLS:,} cells"
        )


def _repeated(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[int, int]]:
    """The last row and column with anything in it, of each OpenDocument sheet.

    There a cell, and a row, may say how often it is repeated.
    """
    row = column = rows = columns = 0
    with archive.open(member) as stream:
        for _, element in ElementTree.iterparse(stream):
            if element.tag in _CELLS:
                column += int(element.get(f"{_TABLE}number-columns-repeated") or 1)
                if len(element) or any(name.endswith("}value-type") for name in element.attrib):
                    columns, rows = max(columns, column), row + 1
            elif element.tag == f"{_TABLE}table-row":
                times = int(element.get(f"{_TABLE}number-rows-repeated") or 1)
                rows = row + times if rows > row else rows
                row, column = row + times, 0
                element.clear()
                yield rows, columns
            elif element.tag == f"{_TABLE}table":
                row = column = rows = columns = 0


def _extent(archive: zipfile.ZipFile, member: str) -> tuple[int, int]:
    """The last row and column of a sheet, or numbers that they are below."""
    rows, columns = 99_999, 26
    rest = b""
    with archive.open(member) as stream:
        while chunk := stream.read(_CHUNK):
            rest += chunk
            rows = max(rows, *map(_number, _FAR_ROW.findall(rest)), 0)
            columns = max(columns, *map(_column, _FAR_COLUMN.findall(rest)), 0)
            rest = rest[-64:]  # a place may be cut in two
    return rows, columns


def _number(digits: bytes) -> int:
    return int(digits[:19])


def _column(letters: bytes) -> int:
    """The number of a column, such as 28 for AB."""
    number = 0
    for letter in letters[:6]:
        number = 26 * number + letter - ord("A") + 1
    return number
