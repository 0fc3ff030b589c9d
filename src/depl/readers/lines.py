"""Lines of any text file, and what is wrong with their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from depl.readers.files import DAMAGE, Source
from depl.readers.problems import Kind, Problems

BOM = b"\xef\xbb\xbf"
_BINARY = re.compile(rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|PAR1\x15")


class Line(NamedTuple):
    """A line: its number from 1, its text, and what is wrong with its bytes (or nothing)."""

    number: int
    text: str
    fault: str


def lines(source: Source) -> Iterator[Line]:
    """Every line of a file; those that are not UTF-8 have replacement characters and a fault.

    Only a line feed ends a line: texts may hold the other characters that Python's
    ``splitlines`` takes for line ends. A byte order mark at the start is dropped.
    """
    number = 0
    try:
        with source.open() as stream:
            for raw in stream:
                if number == 0:
                    raw = raw.removeprefix(BOM)
                    if _BINARY.match(raw):
                        detail = (
                            "compressed data or Parquet where text was expected; the name of the "
                            "file must say so (.gz .bz2 .xz .zst .parquet), and standard input "
                            "must be unpacked"
                        )
                        source.report(Kind.UNREADABLE, 1, detail)
                        return
                number += 1
                text, fault = decoded(raw)
                yield Line(number, text.removesuffix("\n").removesuffix("\r"), fault)
    except DAMAGE as error:
        source.report(Kind.UNREADABLE, number + 1, reason(error))


def usable(line: Line, source: Source) -> bool:
    """Whether a line is UTF-8; one that is not is a problem."""
    if line.fault:
        source.report(Kind.WRONG_ENCODING, line.number, line.fault)
    return not line.fault


def first_line(path: Path) -> str:
    """The first line that is not blank, to recognise a format by; empty if there is none."""
    return next((line.text for line in lines(Source(path, Problems())) if line.text.strip()), "")


def decoded(raw: bytes) -> tuple[str, str]:
    """The text, and what is wrong with its bytes."""
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return raw.decode("utf-8", "replace"), bad_byte(error)


def bad_byte(error: UnicodeDecodeError) -> str:
    """Where the bytes stop being UTF-8."""
    return f"byte {error.start + 1} is {error.object[error.start]:#04x}"


def reason(error: BaseException) -> str:
    """What an error of the system or of a library says, in one line."""
    return getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
