"""Finding a corpus's files and reading their lines, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import zstandard

from depl.core.errors import CorpusError
from depl.readers.trouble import Kind, Trouble

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What the field calls the three splits, in file names.
SPLIT_NAMES = {
    "train": ("train", "trn"),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test", "tst"),
}
COMPRESSIONS = ("", ".gz", ".bz2", ".xz", ".zst")
BOM = b"\xef\xbb\xbf"


def find_file(folder: Path, *names: str) -> Path | None:
    """The one file with one of these names, compressed or not; two of them are an error."""
    found = [
        folder / f"{name}{compression}"
        for name in names
        for compression in COMPRESSIONS
        if (folder / f"{name}{compression}").is_file()
    ]
    if len(found) > 1:
        raise CorpusError(
            f"{folder} holds {len(found)} files for the same thing: "
            f"{', '.join(path.name for path in found)}. Keep one of them."
        )
    return found[0] if found else None


def find_splits(folder: Path, *patterns: str) -> dict[str, Path]:
    """The file of each split that is there, by patterns such as ``X.{}.txt``."""
    found = {
        split: find_file(folder, *(p.format(name) for p in patterns for name in names))
        for split, names in SPLIT_NAMES.items()
    }
    return {split: path for split, path in found.items() if path is not None}


def needed_file(folder: Path, names: Sequence[str], purpose: str) -> Path:
    """Like ``find_file``, but the file must be there."""
    path = find_file(folder, *names)
    if path is None:
        raise CorpusError(
            f"{folder} lacks {' or '.join(names)}, {purpose}. Put the file there, or see "
            f"docs/formats.md for the layouts that depl reads."
        )
    return path


def bare_suffix(path: Path) -> str:
    """The suffix under the compression: ``.jsonl`` for ``train.jsonl.xz``."""
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS[1:] else path.suffix


class _ZstdStream(io.RawIOBase):
    """Decompressed bytes of a zstd file; unlike the library's reader it notices a cut-off end."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            chunk = self._compressed or self._raw.read(1 << 17)
            self._compressed = b""
            if not chunk:
                if self._inside:
                    raise EOFError("the last zstd frame is not complete")
                return 0
            self._ready = memoryview(self._frame.decompress(chunk))
            self._inside = not self._frame.eof
            if self._frame.eof:
                self._compressed = self._frame.unused_data
                self._frame = zstandard.ZstdDecompressor().decompressobj()
        target = memoryview(buffer)
        n = min(len(target), len(self._ready))
        target[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        self._raw.close()
        super().close()


_OPENERS: dict[str, Callable[[Path], object]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _ZstdStream,
}


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading, seeing through its compression."""
    if path.suffix not in _OPENERS:
        return path.open("rb")
    # Without the buffer every line costs a call into Python code of the compression module.
    return io.BufferedReader(cast(io.RawIOBase, _OPENERS[path.suffix](path)), 1 << 18)


DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def lines(path: Path, trouble: Trouble) -> Iterator[tuple[int, str, bool]]:
    """Number (from 1) and text of every line, and whether it was whole UTF-8.

    Only a line feed ends a line: texts may hold the other characters that Python's
    ``splitlines`` takes for line ends. A byte order mark at the start is dropped. In a line that
    is not UTF-8 replacement characters stand for the bad bytes.
    """
    number = 0
    try:
        with open_binary(path) as stream:
            for raw in stream:
                number += 1
                if number == 1:
                    raw = raw.removeprefix(BOM)
                whole = True
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = f"byte {error.start + 1} of the line is {raw[error.start]:#04x}"
                    trouble.add(Kind.WRONG_ENCODING, f"{path.name}:{number}", byte)
                    text, whole = raw.decode("utf-8", "replace"), False
                yield number, text.removesuffix("\n").removesuffix("\r"), whole
    except DAMAGE as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        trouble.add(Kind.UNREADABLE, f"{path.name}:{number + 1}", reason)


def first_line(path: Path) -> str:
    """The first line that is not blank, to recognise a format by; empty if there is none."""
    return next((text for _, text, _ in lines(path, Trouble()) if text.strip()), "")
