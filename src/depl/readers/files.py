"""Finding and opening files: a corpus's, documents to label, standard input; compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

import zstandard

from depl.core.errors import CorpusError
from depl.readers.limits import check_unpacked
from depl.readers.problems import Kind, Problems

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What the field calls the three splits, in file names.
SPLIT_NAMES = {
    "train": ("train", "trn"),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test", "tst"),
}
SUFFIXES = {
    "text": (".txt", ".text", ".md", ".markdown", ".rst"),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet",),
    "excel": (".xlsx", ".xlsm", ".xls", ".ods"),
    "marc": (".mrc", ".marc", ".marcxml"),
    "pdf": (".pdf",),
    "docx": (".docx",),
    "html": (".html", ".htm", ".xhtml"),
}
"""The formats of rows and of documents; suffixes of their files before the compression's."""

DOCUMENTS = ("text", "pdf", "docx", "html")
"""The formats of which a file is one document."""

# What reading a file raises that is damaged, too large, or on a failing disk.
DAMAGE = (OSError, EOFError, MemoryError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def bare_suffix(path: Path) -> str:
    """The suffix before the compression's: ``.jsonl`` for ``train.jsonl.xz``."""
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


def format_of(path: Path) -> str | None:
    """The format of a file's rows by its name; None where the name does not say."""
    suffix = bare_suffix(path).lower()
    return next((format for format, known in SUFFIXES.items() if suffix in known), None)


def format_named(name: str) -> str:
    """The format that a name means, which may be a suffix of its files; others stay as they are.

    Examples
    --------
    >>> format_named("xlsx"), format_named("CSV"), format_named("pecos")
    ('excel', 'csv', 'pecos')
    """
    return format_of(Path(f"_.{name.lstrip('.')}")) or name


def html_by_name(name: str) -> bool:
    """Whether a file's name says that it is HTML."""
    return format_of(Path(name)) == "html"


def named(name: str, *formats: str) -> list[str]:
    """File names of these formats.

    Examples
    --------
    >>> named("labels", "jsonl", "csv")
    ['labels.jsonl', 'labels.ndjson', 'labels.csv']
    """
    return [f"{name}{suffix}" for format in formats for suffix in SUFFIXES[format]]


def find_file(folder: Path, *names: str) -> Path | None:
    """The one file with one of these names, compressed or not; two of them are an error."""
    tried = [f"{name}{compression}" for name in names for compression in ("", *COMPRESSIONS)]
    # Hundreds of names, of which a Path each would take longer than to read a small corpus.
    found = [folder / name for name in tried if os.path.isfile(f"{folder}{os.sep}{name}")]
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


class Source:
    """A file, or standard input where there is no path; and where its problems go.

    Parameters
    ----------
    path : Path or None
        The file.
    problems : Problems
        What collects the problems.
    name : str, optional
        What messages call it; the file's name without its folder when not given.
    encoding : str, optional
        The encoding of its text; when not given, what its first bytes tell, or else UTF-8.
    """

    def __init__(
        self,
        path: Path | None,
        problems: Problems,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        self.path = path
        self.problems = problems
        self.encoding = encoding
        self.sheet: str | None = None
        """The sheet of a workbook that is asked for."""
        self.sheet_before: str | None = None
        """The one that was taken before, such as by a run; read where it is there."""
        self.columns_before: Sequence[str] = ()
        """Columns that are asked for, or were taken before: they tell which sheet is the table."""
        self.name = name or ("standard input" if path is None else path.name)
        self.reached: Callable[[], int] = int
        """How many bytes of the file have been read, while it is being read."""
        self._pipe: io.BufferedReader | None = None

    @property
    def size(self) -> int | None:
        """Bytes of the file; a pipe, such as the shell's <(...), has no size."""
        known = self.path is not None and self.path.is_file()
        return self.path.stat().st_size if known and self.path is not None else None

    def place(self, line: int) -> str:
        """``file:line``, as messages name it; the file alone where the line is 0."""
        return f"{self.name}:{line}" if line else self.name

    def report(self, kind: Kind, line: int, detail: str) -> None:
        """Note a problem of this line; 0 is the file as a whole."""
        self.problems.add(kind, self.place(line), detail)

    def head(self, size: int = 1 << 16) -> bytes:
        """The first bytes, unpacked; whoever opens the source gets them all the same."""
        if self.path is not None and self.path.is_file():
            with _unpacked(self.path) as stream:
                return stream.read(size)
        # A pipe gives its bytes only once; what is peeked at stays in the buffer of this stream.
        if self._pipe is None:
            self._pipe = _peekable(sys.stdin.buffer) if self.path is None else _unpacked(self.path)
        return self._pipe.peek(size)

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The bytes, unpacked."""
        if self._pipe is not None or self.path is None:
            yield self._pipe or _peekable(sys.stdin.buffer)
            return
        with _unpacked(self.path) as stream:
            self.reached = partial(_offset, stream)
            try:
                yield stream
            finally:
                # Rows may have been read ahead of whoever takes them.
                self.reached = lambda: self.size or 0


def find_sources(name: str, problems: Problems, encoding: str | None = None) -> list[Source]:
    """The file of this name; all files in a folder and its folders, sorted, but no hidden one."""
    if name == "-":
        return [Source(None, problems, encoding=encoding)]
    path = Path(name)
    if path.is_dir():
        files = [x for x in sorted(path.rglob("*")) if x.is_file() and not _hidden(x, path)]
        if not files:
            raise CorpusError(f"{name} holds no file. Give a folder with documents in it.")
        return [Source(x, problems, _printable(x.as_posix()), encoding) for x in files]
    if not path.exists():
        # Most names with blanks that are no file are texts.
        text = " " in name and not path.suffix
        hint = "A text is read from standard input: echo 'TEXT' | depl ..." if text else ""
        raise CorpusError(f"Cannot read {name}: there is no such file. {hint or 'Check the path.'}")
    if not os.access(path, os.R_OK):
        raise CorpusError(f"Cannot read {name}: permission denied. Check who may read it.")
    return [Source(path, problems, _printable(name), encoding)]


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _printable(name: str) -> str:
    """A file's name as text; bytes of it that are not UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _peekable(stream: BinaryIO) -> io.BufferedReader:
    """Standard input; what a test or another program puts in its place may lack peek."""
    if isinstance(stream, io.BufferedReader):
        return stream
    return io.BufferedReader(cast(io.RawIOBase, stream))


def _offset(stream: BinaryIO) -> int:
    """The position in the file behind a stream, compressed or not; 0 where it has none."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except OSError:
        return 0


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

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            # A byte may stand for 32 KiB, and what a chunk stands for is unpacked at once.
            chunk = self._compressed or self._raw.read(1 << 12)
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


class _Bounded(io.RawIOBase):
    """Unpacked bytes, as long as they are not far more than a text of this size packs."""

    def __init__(self, unpacked: io.RawIOBase, packed: int) -> None:
        self._unpacked = unpacked
        self._packed = packed
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._unpacked.fileno()

    def readinto(self, buffer: WriteableBuffer) -> int:
        n = self._unpacked.readinto(buffer) or 0
        self._n_read += n
        check_unpacked(self._n_read, self._packed)
        return n

    def close(self) -> None:
        self._unpacked.close()
        super().close()


class _Compression(NamedTuple):
    open: Callable[[Path], object]
    compress: Callable[[bytes], bytes]


COMPRESSIONS = {
    ".gz": _Compression(gzip.GzipFile, partial(gzip.compress, mtime=0)),
    ".bz2": _Compression(bz2.BZ2File, bz2.compress),
    ".xz": _Compression(lzma.LZMAFile, lzma.compress),
    ".zst": _Compression(_ZstdStream, lambda raw: zstandard.ZstdCompressor().compress(raw)),
}


def _unpacked(path: Path) -> io.BufferedReader:
    if path.suffix not in COMPRESSIONS:
        return path.open("rb")
    # Without the buffer every line costs a call into Python code of the compression module.
    raw = cast(io.RawIOBase, COMPRESSIONS[path.suffix].open(path))
    if path.is_file():  # a pipe has no size to compare with
        raw = _Bounded(raw, path.stat().st_size)
    return io.BufferedReader(raw, 1 << 18)
