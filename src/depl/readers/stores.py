"""Files of suggested labels: JSON lines, delimited text, Parquet, Excel and MARC."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from depl.core.errors import ConfigError
from depl.core.storage import flush
from depl.readers.document import Document
from depl.readers.files import COMPRESSIONS, format_of
from depl.readers.marc import MarcFile
from depl.readers.suggestions import (
    COLUMNS,
    PLAIN,
    Form,
    Suggested,
    delimited_lines,
    header,
    json_lines,
    table_rows,
)
from depl.readers.workbook import Workbook

_ROW_GROUP = 1 << 17  # rows; small groups make a Parquet file slow to read
_DELIMITERS = {"csv": ",", "tsv": "\t"}


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


class _AppendedFile(Store):
    """A file that grows at its end; its reach is its size."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        return self.path.exists()

    def holds(self, reach: int) -> bool:
        return (self.path.stat().st_size if self.path.exists() else 0) >= reach

    def cut(self, reach: int) -> None:
        self.path.touch()
        os.truncate(self.path, reach)

    def finish(self) -> None:
        """Every chunk is in the file already."""

    def clear(self) -> None:
        """There is nothing but the file."""

    def _add(self, raw: bytes) -> int:
        with self.path.open("ab") as file:
            file.write(raw)
            flush(file)
            return file.tell()


class _TextFile(_AppendedFile):
    """A file of lines, compressed or not; each chunk is a compressed member of its own."""

    def __init__(self, path: Path, form: Form) -> None:
        super().__init__(path)
        self._form = form
        usual = _DELIMITERS.get(format_of(path) or "")
        self._delimiter = usual and (form.delimiter or usual)
        self._columns: list[str] | None = None
        compression = COMPRESSIONS.get(path.suffix)
        self._compress = compression.compress if compression else bytes

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        if self._delimiter is None:
            text = json_lines(documents, rows, self._form)
        else:
            self._columns = self._columns or header(documents, self._form)
            table = table_rows(documents, rows, self._form, self._columns)
            text = delimited_lines(table, self._delimiter, self._form.decimal)
            if not self.path.stat().st_size:
                first = delimited_lines(iter([self._columns]), self._delimiter)
                text = ("\ufeff" if self._form.excel else "") + first + text
        return self._add(self._compress(text.encode("utf-8")))


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


class _MarcStore(_AppendedFile):
    """The records of the input, with the suggestions as subject fields."""

    def __init__(self, path: Path, form: Form) -> None:
        super().__init__(path)
        self._file = MarcFile(form.marc, xml=path.suffix.lower() in (".xml", ".marcxml"))

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> int:
        # A record without text is kept, and gets nothing.
        found = [
            (document.original, [label for label, _ in row] if document.text.strip() else [])
            for document, row in zip(documents, rows, strict=True)
        ]
        return self._add(self._file.records(found, first=not self.path.stat().st_size))

    def finish(self) -> None:
        self._add(self._file.ending)


def is_marc(path: Path) -> bool:
    """Whether a file of suggestions holds MARC records, by its name."""
    return path.suffix.lower() == ".xml" or format_of(path) == "marc"


def open_store(path: Path, form: Form = PLAIN) -> Store:
    """Where suggestions go, by the suffix of the file."""
    format = format_of(path)
    packed = path.suffix in COMPRESSIONS
    if format == "parquet" and not packed:
        if form.wide:
            raise ConfigError("--wide writes .csv, .tsv, .xlsx or .jsonl files, not Parquet.")
        return _PartsOfParquet(path)
    if path.suffix.lower() == ".xlsx":
        return Workbook(path, form)
    if is_marc(path) and not packed:
        return _MarcStore(path, form)
    if format == "jsonl" or format in _DELIMITERS:
        return _TextFile(path, form)
    raise ConfigError(
        f"{path} has a suffix that --output does not know. Use .jsonl, .csv or .tsv (also with "
        f".gz .bz2 .xz .zst), .parquet, .xlsx, or .mrc and .marcxml for MARC records."
    )
