"""What reading documents one by one needs: sources, lines, rows of tables, their faults."""

from __future__ import annotations

import csv
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from depl.core.errors import CorpusError
from depl.readers.files import BOM, DAMAGE, bare_suffix

# A quote that is never closed would swallow the rest of the file; no document is this long.
_LONGEST_ROW = 1 << 24
_BINARY = re.compile(rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|PAR1\x15")


class Source(NamedTuple):
    """A file, or standard input where there is no path."""

    name: str
    path: Path | None

    @property
    def size(self) -> int | None:
        """Bytes of the file; a pipe, such as the shell's <(...), has no size."""
        known = self.path is not None and self.path.is_file()
        return self.path.stat().st_size if known and self.path is not None else None


def find_sources(name: str, whole_files: bool) -> list[Source]:
    """The file of this name; with ``whole_files`` a folder stands for the text files in it."""
    if name == "-":
        return [Source("standard input", None)]
    path = Path(name)
    if path.is_dir() and whole_files:
        texts = sorted(p for p in path.rglob("*") if bare_suffix(p) == ".txt" and p.is_file())
        if not texts:
            raise CorpusError(f"{name} holds no .txt file. Name its files one by one.")
        return [Source(_printable(p.as_posix()), p) for p in texts]
    if path.is_dir():
        raise CorpusError(
            f"Cannot read {name}: it is a folder. Name the files in it, or take each .txt file in "
            f"it as a document with --whole-files."
        )
    if not path.exists():
        raise CorpusError(f"Cannot read {name}: there is no such file. Check the path.")
    if not os.access(path, os.R_OK):
        raise CorpusError(f"Cannot read {name}: permission denied. Check who may read it.")
    return [Source(_printable(name), path)]


def _printable(name: str) -> str:
    """A file's name as text; bytes of it that are not UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


class Line(NamedTuple):
    """A line: its number from 1, its text, and what is wrong with its bytes (or nothing)."""

    number: int
    text: str
    fault: str


def offset(stream: BinaryIO) -> int:
    """Where the file behind a stream stands, compressed or not; 0 where it does not tell."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except OSError:
        return 0


def cannot_read(what: str, error: BaseException) -> NoReturn:
    """Say so, and how to go on once the file is mended."""
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or "it is damaged"
    raise CorpusError(
        f"Cannot read {what}: {reason}. Copy, unpack or compress the file again. What was written "
        f"to --output is kept: the same command with --resume goes on after it."
    ) from error


def decoded(raw: bytes) -> tuple[str, str]:
    """The text, and what is wrong with its bytes."""
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is {raw[error.start]:#04x}"
        return raw.decode("utf-8", "replace"), f"not UTF-8: {byte}"


def lines_of(stream: BinaryIO, name: str) -> Iterator[Line]:
    """The lines of a stream; only a line feed ends one, and a byte order mark is dropped."""
    number = 0
    try:
        for number, raw in enumerate(stream, 1):
            if number == 1:
                raw = raw.removeprefix(BOM)
                if _BINARY.match(raw):
                    raise CorpusError(
                        f"{name} holds compressed data or Parquet where text was expected. Give a "
                        f"file with the suffix that says so (.gz .bz2 .xz .zst .parquet), or "
                        f"unpack it: zcat FILE | depl predict RUN -"
                    )
            text, fault = decoded(raw)
            yield Line(number, text.removesuffix("\n").removesuffix("\r"), fault)
    except DAMAGE as error:
        cannot_read(f"{name} from line {number + 1} on", error)


def lowered(names: Sequence[str]) -> list[str]:
    """The names of columns, as they are compared."""
    return [name.strip().strip('"').lower() for name in names]


class _UnclosedError(Exception):
    """A row is longer than any row can be."""


def delimited(
    lines: Iterator[Line], delimiter: str, left_out: Callable[[int, str], None]
) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row; a quote too many costs its line and not the rest."""
    # The limit is one for the process; its default of 128 KiB is shorter than many documents.
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    again: deque[Line] = deque()
    row: list[Line] = []

    def feed() -> Iterator[str]:
        length = 0
        while (line := again.popleft() if again else next(lines, None)) is not None:
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
            left_out(row[0].number, why)
            # What looked like the inside of a quoted cell is read again as rows.
            again.extendleft(reversed(row[1:]))
            reader = csv.reader(feed(), delimiter=delimiter, strict=True)
            continue
        fault = next((f"line {x.number}: {x.fault}" for x in row if x.fault), "")
        if fault:
            left_out(row[0].number, fault)
        elif cells:
            yield row[0].number, cells


def column_values(column: Any) -> list[object]:  # noqa: ANN401 - pyarrow has no types
    """The values of a column of Parquet; bytes where a string is not UTF-8."""
    import pyarrow as pa

    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.binary()).to_pylist()
        values = [value if value is None else _string(value) for value in raw]
    return values


def _string(raw: bytes) -> str | bytes:
    text, fault = decoded(raw)
    return raw if fault else text
