"""Suggested labels on their way out: as JSON lines, as a table, as Parquet."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import zstandard

from depl.core.corpus import Label
from depl.core.errors import ConfigError
from depl.readers.documents import Document
from depl.readers.files import bare_suffix

Suggested = Sequence[tuple[Label, float]]

COLUMNS = ("id", "rank", "label_id", "label_name", "score")
_ROW_GROUP = 1 << 17  # rows; small groups make a Parquet file slow to read

_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda raw: gzip.compress(raw, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda raw: zstandard.ZstdCompressor().compress(raw),
}


def json_lines(documents: Sequence[Document], rows: Sequence[Suggested]) -> str:
    """An object a document: ``{"id", "labels": [{"id", "name", "score"}]}``."""
    return "".join(
        json.dumps(
            {
                "id": document.id,
                "labels": [{"id": x.id, "name": x.name, "score": round(s, 4)} for x, s in row],
            },
            ensure_ascii=False,
        )
        + "\n"
        for document, row in zip(documents, rows, strict=True)
    )


def delimited_lines(
    documents: Sequence[Document], rows: Sequence[Suggested], delimiter: str
) -> str:
    """A row a suggestion, in the order of ``COLUMNS``."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    for document, row in zip(documents, rows, strict=True):
        for rank, (label, score) in enumerate(row, 1):
            writer.writerow((document.id, rank, label.id, label.name, round(score, 4)))
    return text.getvalue()


class Store(Protocol):
    """Where the rows go. A ``reach`` says how far it came: bytes of a file, or whole parts."""

    def exists(self) -> bool:
        """Whether a finished or unfinished output is there."""

    def holds(self, reach: int) -> bool:
        """Whether it came so far, and nothing of that has been lost."""

    def cut(self, reach: int) -> None:
        """Take away what came after; with 0, begin anew."""

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        """Write the suggestions of these documents and give the new reach."""

    def finish(self) -> None:
        """Put the whole output in its place."""

    def clear(self) -> None:
        """Take away what lies beside the output."""


class _TextFile(Store):
    """A file of lines, compressed or not; each chunk is a compressed member of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._suffix = bare_suffix(path)
        self._compress = _COMPRESS.get(path.suffix, bytes)

    def exists(self) -> bool:
        return self.path.exists()

    def holds(self, reach: int) -> bool:
        return (self.path.stat().st_size if self.path.exists() else 0) >= reach

    def cut(self, reach: int) -> None:
        self.path.touch()
        os.truncate(self.path, reach)

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        if self._suffix == ".jsonl":
            text = json_lines(documents, rows)
        else:
            delimiter = "," if self._suffix == ".csv" else "\t"
            text = delimited_lines(documents, rows, delimiter)
            if not self.path.stat().st_size:
                text = delimiter.join(COLUMNS) + "\n" + text
        with self.path.open("ab") as file:
            file.write(self._compress(text.encode("utf-8")))
            flush(file)
            return file.tell()

    def finish(self) -> None:
        """All is there already."""

    def clear(self) -> None:
        """Nothing lies beside the file."""


class _PartsOfParquet(Store):
    """A Parquet file, which cannot be appended to: parts in a folder, joined at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.with_name(f"{path.name}.parts")
        self._n_parts = 0

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06}.parquet"

    def exists(self) -> bool:
        return self.path.exists()

    def holds(self, reach: int) -> bool:
        return all(self._part(number).exists() for number in range(reach))

    def cut(self, reach: int) -> None:
        self.folder.mkdir(exist_ok=True)
        kept = {self._part(number) for number in range(reach)}
        for path in [*self.folder.glob("*.parquet"), *self.folder.glob("*.tmp")]:
            if path not in kept:
                path.unlink()
        self._n_parts = reach

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        import pyarrow as pa
        import pyarrow.parquet as pq

        flat = [
            (document.id, rank, label.id, label.name, score)
            for document, row in zip(documents, rows, strict=True)
            for rank, (label, score) in enumerate(row, 1)
        ]
        columns = list(zip(*flat, strict=True)) if flat else [()] * len(COLUMNS)
        types = (pa.string(), pa.int32(), pa.string(), pa.string(), pa.float32())
        arrays = [pa.array(values, t) for values, t in zip(columns, types, strict=True)]
        temporary = self.folder / "part.tmp"
        with temporary.open("wb") as file:
            pq.write_table(pa.table(dict(zip(COLUMNS, arrays, strict=True))), file)
            flush(file)
        temporary.replace(self._part(self._n_parts))
        self._n_parts += 1
        return self._n_parts

    def finish(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        temporary = self.path.with_name(f".{self.path.name}.tmp")
        schema = pq.read_schema(self._part(0))
        with temporary.open("wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                held: list[Any] = []
                for number in range(self._n_parts):
                    held.append(pq.read_table(self._part(number)))
                    if sum(map(len, held)) >= _ROW_GROUP or number == self._n_parts - 1:
                        writer.write_table(pa.concat_tables(held).combine_chunks())
                        held = []
            flush(file)
        temporary.replace(self.path)

    def clear(self) -> None:
        if self.folder.is_dir():
            self.cut(0)
            self.folder.rmdir()


def open_store(path: Path) -> Store:
    """Where suggestions go, by the suffix of the file."""
    suffix = bare_suffix(path)
    if suffix == path.suffix == ".parquet":
        return _PartsOfParquet(path)
    if suffix in (".jsonl", ".csv", ".tsv"):
        return _TextFile(path)
    raise ConfigError(
        f"{path} has a suffix that --output does not know. Use .jsonl, .csv or .tsv (also with "
        f".gz .bz2 .xz .zst), or .parquet."
    )


def flush(file: BinaryIO) -> None:
    """Ask the disk to keep what was written, so that a power cut cannot take it back."""
    file.flush()
    os.fsync(file.fileno())
