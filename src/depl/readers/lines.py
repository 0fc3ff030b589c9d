"""Lines of any text file, and what is wrong with their bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from depl.readers import encodings
from depl.readers.files import DAMAGE, Source
from depl.readers.limits import LONGEST_LINE
from depl.readers.problems import Kind, Problems

BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 12  # bytes that tell a text from other files
_TOO_LONG = "no line break for so long"
_CHUNK, _CHUNKS = 1 << 20, 64  # of a file, what is looked at to find its encoding


class Line(NamedTuple):
    """A line: its number from 1, its text, and what is wrong with its bytes (or nothing)."""

    number: int
    text: str
    fault: str


def lines(source: Source, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """Every line of a file; those that should be UTF-8 and are not have a fault.

    So has one that is longer than the longest; it has no text.

    Only a line feed ends a line, or a carriage return in a file without line feeds: texts may hold
    the other characters that Python's ``splitlines`` takes for line ends. A byte order mark at the
    start is dropped.
    """
    number = 0
    try:
        with source.open() as stream:
            head = stream.peek(_HEAD)[:_HEAD]
            what = encodings.no_text(head)
            if what:
                source.report(Kind.UNREADABLE, 1, what)
                return
            told = encodings.marked(head) or encodings.unmarked_utf16(head)
            source.encoding = source.encoding or told or "utf-8"
            # Excel on a Mac ends lines so where "CSV (Macintosh)" is asked for.
            ending = "\r" if b"\r" in head and b"\n" not in head else "\n"
            plain = source.encoding in ("utf-8", "utf-8-sig") and ending == "\n"
            read = (
                partial(_utf8, stream)
                if plain
                else partial(_other, stream, source.encoding, ending)
            )
            # No name for these lines: whoever stops early must end them before the stream.
            for text, fault in read(longest):
                number += 1
                yield Line(number, text.removesuffix("\n").removesuffix("\r"), fault)
    except DAMAGE as error:
        source.report(Kind.UNREADABLE, number + 1, reason(error))


def find_encoding(source: Source) -> None:
    """Look for the encoding of a text file, where it has not been given.

    Only a file can be looked at before it is read: standard input is what its first bytes tell.
    """
    if source.encoding is not None or source.path is None or not source.path.is_file():
        return
    try:
        with source.open() as stream:
            head = stream.peek(_HEAD)[:_HEAD]
            source.encoding = encodings.marked(head) or encodings.unmarked_utf16(head)
            if source.encoding is None:
                chunks = islice(iter(partial(stream.read, _CHUNK), b""), _CHUNKS)
                source.encoding = encodings.found(chunks)
    except DAMAGE:
        return  # reading it will say so


def _utf8(stream: io.BufferedReader, longest: int) -> Iterator[tuple[str, str]]:
    """Line by line from the bytes, so that a fault tells its byte."""
    mark = BOM
    for raw in iter(partial(stream.readline, longest), b""):
        if len(raw) == longest and not raw.endswith(b"\n"):
            while (raw := stream.readline(longest)) and not raw.endswith(b"\n"):
                pass
            yield "", _TOO_LONG
        elif line := raw.removeprefix(mark):
            yield decoded(line)
        mark = b""


def _other(
    stream: io.BufferedReader, encoding: str, ending: str, longest: int
) -> Iterator[tuple[str, str]]:
    """Line by line from the characters; the few bytes that mean none cost no document."""
    text = io.TextIOWrapper(stream, encoding, errors="replace", newline=ending)
    try:
        for line in iter(partial(text.readline, longest), ""):
            if len(line) == longest and not line.endswith(ending):
                while (line := text.readline(longest)) and not line.endswith(ending):
                    pass
                yield "", _TOO_LONG
            else:
                yield line, ""
    finally:
        text.detach()  # the stream is closed by whoever opened it


def usable(line: Line, source: Source) -> bool:
    """Whether a line is UTF-8, and not too long; one that is not is a problem."""
    if line.fault:
        kind = Kind.TOO_LONG if line.fault == _TOO_LONG else Kind.WRONG_ENCODING
        source.report(kind, line.number, line.fault)
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
    if isinstance(error, MemoryError):
        return "more than there is memory for"
    return getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
