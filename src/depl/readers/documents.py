"""Documents to suggest labels for, one by one, from files of any size or from standard input.

A corpus is read whole, and stops at bad rows. Here there may be millions of documents: none is kept
in memory, and a bad row is told and left out while the rest goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from depl.core.errors import CorpusError
from depl.readers.fields import WrongFieldError, as_id, as_text
from depl.readers.files import BOM, DAMAGE, bare_suffix, open_binary
from depl.readers.records import parse_json
from depl.readers.streaming import (
    Line,
    Source,
    cannot_read,
    column_values,
    decoded,
    delimited,
    find_sources,
    lines_of,
    lowered,
    offset,
)

FORMATS = ("text", "jsonl", "csv", "tsv", "parquet")

_FORMAT_OF = {f".{name}": name for name in FORMATS} | {".txt": "text", ".ndjson": "jsonl"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}


class Document(NamedTuple):
    """One document: its own id, or one made of its place in the file; and its text."""

    id: str
    text: str


class Documents:
    r"""The documents of files of any size, to be gone through once.

    Plain text has a document a line; JSON lines, CSV, TSV and Parquet a document a row. Files may
    be compressed (.gz .bz2 .xz .zst). The format is recognised from a file's name, and from the
    first line of standard input and of files whose name says nothing.

    Parameters
    ----------
    sources : sequence of str
        Files, or "-" for standard input. Folders, too, with ``whole_files``.
    left_out : callable
        Called with the place (``file:row``) and the reason of every row that is left out.
    format : str, optional
        One of ``FORMATS``, for files whose names and first lines mislead.
    whole_files : bool
        Take every file as one document, and of a folder all ``.txt`` files.
    text_column : str
        The field or column of the text; in tables upper and lower case are the same.
    id_column : str, optional
        The field or column of the id; ``id`` unless told, and then it need not be there.

    Attributes
    ----------
    total : int or None
        The size of all files in bytes; None when it cannot be known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "new.jsonl")
    ...     _ = path.write_text('{"id": "a", "text": "sparkling wine"}\n[]\n{"text": "oil"}\n')
    ...     for document in Documents([str(path)], left_out=lambda place, why: print(why)):
    ...         print(document)
    Document(id='a', text='sparkling wine')
    not an object but '[]'
    Document(id='3', text='oil')
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        left_out: Callable[[str, str], None],
        format: str | None = None,
        whole_files: bool = False,
        text_column: str = "text",
        id_column: str | None = None,
    ) -> None:
        if format is not None and format not in FORMATS:
            raise CorpusError(
                f"There is no format {format!r} for documents. Name one of {', '.join(FORMATS)}."
            )
        self._sources = [found for name in sources for found in find_sources(name, whole_files)]
        self._left_out = left_out
        self._format = format
        self._whole_files = whole_files
        self._text_column = text_column
        self._id_column = id_column
        self._before = 0
        self._here: Callable[[], int] = int
        sizes = [source.size for source in self._sources]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def name(self) -> str:
        """What messages call the input."""
        n = len(self._sources)
        return self._sources[0].name if n == 1 else f"the input of {n:,} files"

    @property
    def paths(self) -> list[Path]:
        """The files, without standard input."""
        return [source.path for source in self._sources if source.path is not None]

    @property
    def position(self) -> int:
        """How many bytes of ``total`` have been read."""
        return self._before + self._here()

    def __iter__(self) -> Iterator[Document]:
        for source in self._sources:
            yield from self._whole(source) if self._whole_files else self._read(source)
            self._here = int
            self._before += source.size or 0

    def _read(self, source: Source) -> Iterator[Document]:
        known = None if source.path is None else _FORMAT_OF.get(bare_suffix(source.path).lower())
        format = self._format or known
        if format == "parquet":
            yield from self._parquet(source)
            return
        with self._opened(source) as stream:
            lines = lines_of(stream, source.name)
            if format is None:
                format, lines = self._recognise(source, lines)
            if format == "text":
                yield from self._texts(source, lines)
            elif format == "jsonl":
                yield from self._objects(source, lines)
            else:
                yield from self._table(source, lines, _DELIMITERS[format])

    @contextmanager
    def _opened(self, source: Source) -> Iterator[BinaryIO]:
        if source.path is None:
            yield sys.stdin.buffer
            return
        try:
            stream = open_binary(source.path)
        except OSError as error:
            cannot_read(source.name, error)
        with stream:
            self._here = lambda: offset(stream)
            yield stream
            self._here = int

    def _recognise(self, source: Source, lines: Iterator[Line]) -> tuple[str, Iterator[Line]]:
        """The format that the first line with anything in it shows, and all lines again."""
        seen = []
        for line in lines:
            seen.append(line)
            if line.text.strip():
                break
        first = seen[-1].text.strip() if seen else ""
        if source.path is not None and bare_suffix(source.path) == ".json" and first[:1] == "[":
            raise CorpusError(
                f"{source.name} is one JSON list. Give an object a line instead; jq makes them: "
                f"jq -c '.[]' {source.name} > documents.jsonl"
            )
        for format, delimiter in _DELIMITERS.items():
            names = lowered(first.split(delimiter))
            if len(names) > 1 and self._text_column.lower() in names:
                return format, chain(seen, lines)
        return "jsonl" if first.startswith("{") else "text", chain(seen, lines)

    def _whole(self, source: Source) -> Iterator[Document]:
        with self._opened(source) as stream:
            try:
                raw = stream.read()
            except DAMAGE as error:
                cannot_read(source.name, error)
        text, fault = decoded(raw.removeprefix(BOM))
        if fault or not text.strip():
            self._left_out(source.name, fault or "no text")
        else:
            yield Document(source.name, text)

    def _texts(self, source: Source, lines: Iterator[Line]) -> Iterator[Document]:
        for line in lines:
            if line.fault:
                self._left_out(f"{source.name}:{line.number}", line.fault)
            elif line.text and not line.text.isspace():
                yield Document(self._made_id(source, line.number), line.text)

    def _objects(self, source: Source, lines: Iterator[Line]) -> Iterator[Document]:
        for number, text, fault in lines:
            if not text or text.isspace():
                continue
            why = fault
            if not fault:
                try:
                    value = parse_json(text)
                except ValueError as error:
                    why = f"broken JSON: {error}"
                else:
                    if isinstance(value, dict):
                        fields = (value.get(self._id_column or "id"), value.get(self._text_column))
                        yield from self._row(source, number, *fields)
                        continue
                    why = f"not an object but {text!r:.60}"
            self._left_out(f"{source.name}:{number}", why)

    def _table(self, source: Source, lines: Iterator[Line], delimiter: str) -> Iterator[Document]:
        def left_out(number: int, why: str) -> None:
            self._left_out(f"{source.name}:{number}", why)

        width, id_at, text_at = 0, None, 0
        for number, cells in delimited(lines, delimiter, left_out):
            if not width:
                width = len(cells)
                id_at, text_at = self._columns(source, cells)
            elif len(cells) != width:
                left_out(number, f"{len(cells)} cells where the header has {width}")
            else:
                own_id = None if id_at is None else cells[id_at]
                yield from self._row(source, number, own_id, cells[text_at])

    def _parquet(self, source: Source) -> Iterator[Document]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if source.path is None or bare_suffix(source.path) != source.path.suffix:
            raise CorpusError(
                f"{source.name} cannot be read as Parquet, which has to be a plain file: it is "
                f"compressed inside, and read from its end. Unpack it, and give the file."
            )
        number, size = 0, source.size or 0
        try:
            # Page by page: a row group may be as large as the file.
            with pq.ParquetFile(source.path, pre_buffer=False, buffer_size=1 << 20) as file:
                names, n_rows = file.schema_arrow.names, max(file.metadata.num_rows, 1)
                id_at, text_at = self._columns(source, names)
                wanted = [names[text_at]] + ([] if id_at is None else [names[id_at]])
                self._here = lambda: size * number // n_rows
                for batch in file.iter_batches(batch_size=1000, columns=wanted):
                    texts = column_values(batch.column(names[text_at]))
                    no_ids: list[object] = [None] * len(texts)
                    ids = no_ids if id_at is None else column_values(batch.column(names[id_at]))
                    for own_id, text in zip(ids, texts, strict=True):
                        number += 1
                        yield from self._row(source, number, own_id, text)
        except (pa.ArrowException, OSError) as error:
            cannot_read(f"{source.name} from row {number + 1} on", error)

    def _columns(self, source: Source, names: Sequence[str]) -> tuple[int | None, int]:
        """Where the id (if there is one) and the text are."""
        known = lowered(names)
        needed = [self._text_column] + ([self._id_column] if self._id_column else [])
        missing = [name for name in needed if name.lower() not in known]
        if missing:
            raise CorpusError(
                f"{source.name} has no column {' or '.join(map(repr, missing))}; its columns are "
                f"{', '.join(names)}. Name the right ones with --text-column and --id-column."
            )
        id_column = (self._id_column or "id").lower()
        id_at = known.index(id_column) if id_column in known else None
        return id_at, known.index(self._text_column.lower())

    def _row(self, source: Source, number: int, own_id: object, text: object) -> Iterator[Document]:
        """The document of a row, or none, which is told."""
        try:
            words = as_text(text, self._text_column)
            if not words or words.isspace():
                self._left_out(f"{source.name}:{number}", f"no {self._text_column}")
                return
            if own_id is None or own_id == "":
                name = self._made_id(source, number)
            else:
                name = as_id(own_id, self._id_column or "id")
        except WrongFieldError as error:
            self._left_out(f"{source.name}:{number}", str(error))
        else:
            yield Document(name, words)

    def _made_id(self, source: Source, number: int) -> str:
        return f"{source.name}:{number}" if len(self._sources) > 1 else str(number)


def chunks(documents: Iterator[Document], size: int, characters: int) -> Iterator[list[Document]]:
    """Documents in lists of at most ``size``, ended sooner when they reach so many characters.

    Examples
    --------
    >>> texts = ["ab", "c", "defgh", "i"]
    >>> [len(c) for c in chunks((Document("", text) for text in texts), 2, 4)]
    [2, 1, 1]
    """
    chunk: list[Document] = []
    length = 0
    for document in documents:
        chunk.append(document)
        length += len(document.text)
        if len(chunk) == size or length >= characters:
            yield chunk
            chunk, length = [], 0
    if chunk:
        yield chunk
