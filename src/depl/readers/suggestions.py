"""Files of suggested labels: JSON lines, CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from depl.core.corpus import Label
from depl.core.errors import ConfigError
from depl.core.storage import flush
from depl.readers.cells import safe_cell
from depl.readers.document import Document
from depl.readers.files import COMPRESSIONS, format_of

Suggested = Sequence[tuple[Label, float]]

COLUMNS = ("id", "rank", "label_id", "label_name", "score")
_ROW_GROUP = 1 << 17  # rows; small groups make a Parquet file slow to read
_DELIMITERS = {"csv": ",", "tsv": "\t"}


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
    """A row a suggestion, in the order of ``COLUMNS``; no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    for document, row in zip(documents, rows, strict=True):
        for rank, (label, score) in enumerate(row, 1):
            cells = (document.id, rank, label.id, label.name, round(score, 4))
            writer.writerow(map(safe_cell, cells))
    return text.getvalue()


class Store(Protocol):
    """Where the rows go. A ``reach`` is how much is written: bytes of a file, or whole parts."""

    def exists(self) -> bool:
        """Whether a finished or unfinished output is there."""

    def holds(self, reach: int) -> bool:
        """Whether so much is written, and nothing of that has been lost."""

    def cut(self, reach: int) -> None:
        """Delete what was written after that; with 0, start over."""

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        """Write the suggestions of these documents and return the new reach."""

    def finish(self) -> None:
        """Complete the output."""

    def clear(self) -> None:
        """Delete what was only needed until the output was complete."""


class _TextFile(Store):
    """A file of lines, compressed or not; each chunk is a compressed member of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._delimiter = _DELIMITERS.get(format_of(path) or "")
        compression = COMPRESSIONS.get(path.suffix)
        self._compress = compression.compress if compression else bytes

    def exists(self) -> bool:
        return self.path.exists()

    def holds(self, reach: int) -> bool:
        return (self.path.stat().st_size if self.path.exists() else 0) >= reach

    def cut(self, reach: int) -> None:
        self.path.touch()
        os.truncate(self.path, reach)

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        if self._delimiter is None:
            text = json_lines(documents, rows)
        else:
            text = delimited_lines(documents, rows, self._delimiter)
            if not self.path.stat().st_size:
                text = self._delimiter.join(COLUMNS) + "\n" + text
        with self.path.open("ab") as file:
            file.write(self._compress(text.encode("utf-8")))
            flush(file)
            return file.tell()

    def finish(self) -> None:
        """Every chunk is in the file already."""

    def clear(self) -> None:
        """There is nothing but the file."""


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
    format = format_of(path)
    if format == "parquet" and path.suffix not in COMPRESSIONS:
        return _PartsOfParquet(path)
    if format == "jsonl" or format in _DELIMITERS:
        return _TextFile(path)
    raise ConfigError(
        f"{path} has a suffix that --output does not know. Use .jsonl, .csv or .tsv (also with "
        f".gz .bz2 .xz .zst), or .parquet."
    )
