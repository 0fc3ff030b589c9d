"""Documents; and those to suggest labels for, one by one, from files of any size.

A corpus is read whole, and its problems are listed at the end. Here there may be millions of
documents: none is kept in memory, and a bad row is reported and left out while the rest is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from depl.core.errors import CorpusError, MissingExtraError
from depl.readers.choosing import choose
from depl.readers.columns import Columns
from depl.readers.delimiters import sniff
from depl.readers.document import Document
from depl.readers.extraction import extract
from depl.readers.files import (
    DAMAGE,
    DOCUMENTS,
    SUFFIXES,
    Source,
    find_sources,
    format_named,
    format_of,
)
from depl.readers.limits import LARGEST_DOCUMENT
from depl.readers.lines import reason
from depl.readers.marc import MarcFields, marc_records
from depl.readers.plain_text import NoDocumentError, decode
from depl.readers.problems import Kind, Problem, Problems
from depl.readers.records import documents
from depl.readers.rows import open_table, recognised
from depl.readers.tables import Table

OWN = Columns(("text",), ("labels",), "id")
"""The columns as depl's own formats call them."""


class Documents:
    r"""The documents of files of any size, to be read once.

    A file of plain text, PDF, Word or HTML is a document, called by its path; JSON lines, CSV, TSV
    and Parquet have a document a row. Files may be compressed (.gz .bz2 .xz .zst). The format is
    recognised from a file's name, and from the first bytes of standard input and of files whose
    name says nothing.

    Parameters
    ----------
    sources : sequence of str
        Files, or "-" for standard input; a folder stands for the documents in it.
    left_out : callable
        Called with the place (``file``, ``file:row``) and the reason of all that is left out.
    format : str, optional
        One of ``SUFFIXES``, for files whose names and first bytes mislead.
    lines : bool
        Take every line of plain text as a document.
    columns : Columns, optional
        The columns or fields that are asked for; upper and lower case are the same.
    kept : Columns, optional
        Those that the run was made from; taken where they are there, and otherwise found from
        names and contents, or, in MARC records, the usual fields.
    tell : callable, optional
        Called with the name of every table, what it is, and the columns that are taken.
    keep_fields : bool
        Keep all fields of a row in the document's ``original``.
    keep_blank_records : bool
        Give MARC records without text, too, for they are to be written again.
    encoding : str, optional
        That of text files; found from their bytes when not given.

    Attributes
    ----------
    total : int or None
        The size of all files in bytes; None when it cannot be known.
    lines_of_stdin : int
        How many lines were read as one document from standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "new.jsonl")
    ...     _ = path.write_text('{"id": "a", "text": "sparkling wine"}\n[]\n{"text": "oil"}\n')
    ...     for document in Documents([str(path)], left_out=lambda place, why: print(why)):
    ...         print(document.id, document.text)
    broken JSON: not an object but '[]'
    a sparkling wine
    3 oil
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        left_out: Callable[[str, str], None],
        format: str | None = None,
        lines: bool = False,
        columns: Columns | None = None,
        kept: Columns | None = None,
        tell: Callable[[str, str, Columns], None] = lambda name, described, columns: None,
        keep_fields: bool = False,
        keep_blank_records: bool = False,
        encoding: str | None = None,
    ) -> None:
        format = format and format_named(format)
        if format is not None and format not in SUFFIXES:
            raise CorpusError(
                f"There is no format {format!r} for documents. Name one of {', '.join(SUFFIXES)}."
            )
        self._left_out = left_out
        self._problems = Problems(tell=self._report)
        self._sources: list[Source] = []
        self._in_folders: set[Source] = set()
        for name in sources:
            found = find_sources(name, self._problems, encoding)
            for source in found:
                source.sheet = columns.sheet if columns else None
                source.sheet_before = kept.sheet if kept else None
                source.columns_before = (columns and columns.names) or (kept or OWN).names
            self._sources += found
            if Path(name).is_dir():
                self._in_folders.update(found)
        self._format = format
        self._lines = lines
        self._columns = columns or Columns()
        self._kept = kept or OWN
        # A run that was made from a corpus has read the texts as they are.
        self._keep_markup = kept is None
        self._tell = tell
        self._keep_fields = keep_fields
        self._keep_blank_records = keep_blank_records
        self._header: list[str] | None = None
        self.lines_of_stdin = 0
        self._has_rows = False
        self._before = 0
        self._current: Source | None = None
        sizes = [source.size for source in self._sources]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def name(self) -> str:
        """What messages call the input."""
        n = len(self._sources)
        return self._sources[0].name if n == 1 else f"the input of {n:,} files"

    @property
    def unit(self) -> str:
        """What a document has been so far: a row, or a file."""
        return "row" if self._has_rows else "file"

    @property
    def paths(self) -> list[Path]:
        """The files, without standard input."""
        return [source.path for source in self._sources if source.path is not None]

    @property
    def position(self) -> int:
        """How many bytes of ``total`` have been read."""
        return self._before + (self._current.reached() if self._current else 0)

    def __iter__(self) -> Iterator[Document]:
        for source in self._sources:
            self._current = source
            format = self._format or self._found_format(source)
            if format in DOCUMENTS and not (self._lines and format == "text"):
                found = self._whole(source, format)
            elif source in self._in_folders:
                found = iter(())
                detail = "a file of rows, not a document; name it by itself to read its rows"
                source.report(Kind.NO_DOCUMENT, 0, detail)
            else:
                self._has_rows = True
                found = self._rows(source, format)
            for document in found:
                kept = self._keep_blank_records and format == "marc"
                if not kept and (not document.text or document.text.isspace()):
                    self._problems.add(Kind.NO_TEXT, document.where)
                else:
                    yield document
            self._current = None
            self._before += source.size or 0

    def _rows(self, source: Source, format: str) -> Iterator[Document]:
        """A document a row, from the columns that are asked for, kept or found."""
        if format == "marc":
            return self._records(source)

        def made_id(line: int) -> str:
            return source.place(line) if len(self._sources) > 1 else str(line)

        table = open_table(source, format=format)
        if not isinstance(table, Table):
            rows = table
            return (
                Document(made_id(r.line), r.fields["text"], where=r.where, numbered=True)
                for r in rows
            )
        if not table.header:
            list(table.rows(()))  # no row before what is wrong with the file, which this raises
            return iter(())
        if self._keep_fields and self._header not in (None, list(table.header)):
            raise CorpusError(
                f"{source.name} has other columns than the file before it, so they do not fit in "
                f"one table. Label each file by itself."
            )
        self._header = list(table.header)
        columns = choose(source.name, table, self._columns, kept=self._kept, labelled=False)
        self._tell(source.name, table.described, columns)
        return documents(
            source,
            table,
            columns,
            made_id,
            keep_fields=self._keep_fields,
            keep_markup=self._keep_markup,
        )

    @cached_property
    def marc(self) -> MarcFields:
        """Which fields of MARC records are read."""
        return MarcFields.chosen(self._columns, self._kept)

    def _records(self, source: Source) -> Iterator[Document]:
        for number, record in marc_records(source):
            own = (next((x.data for x in record.get_fields("001")), None) or "").strip()
            place = source.place(number)
            made_id = place if len(self._sources) > 1 else str(number)
            subjects = [name for name, _ in self.marc.subjects_of(record)]
            text = self.marc.text_of(record)
            yield Document(own or made_id, text, subjects, place, record, numbered=not own)

    @property
    def delimiter(self) -> str | None:
        """What separates the cells of the first file of delimited text."""
        for source in self._sources:
            format = self._format or self._found_format(source)
            if format in ("csv", "tsv") and source.path is not None:
                head = decode(source.head(), source.encoding).split("\n")[:200]
                return sniff(head, "," if format == "csv" else "\t").delimiter
        return None

    def _found_format(self, source: Source) -> str:
        by_name = format_of(source.path) if source.path is not None else None
        return by_name or recognised(source, (*self._columns.text, *self._kept.text)[0])

    def _whole(self, source: Source, format: str) -> Iterator[Document]:
        """The file as one document; none, and a problem, if it has no text."""
        try:
            with source.open() as stream:
                raw = stream.read(LARGEST_DOCUMENT + 1)
            if len(raw) > LARGEST_DOCUMENT:
                raise NoDocumentError(
                    f"more than {LARGEST_DOCUMENT >> 20} MB, which is no document; divide it"
                )
            text = extract(raw, html=format == "html", encoding=source.encoding).text
        except DAMAGE as error:
            source.report(Kind.NO_DOCUMENT, 0, f"it cannot be read to its end: {reason(error)}")
        except (NoDocumentError, MissingExtraError) as error:
            source.report(Kind.NO_DOCUMENT, 0, str(error))
        else:
            if source.path is None:
                self.lines_of_stdin = sum(not line.isspace() for line in text.splitlines())
            own = source.name if source.path else "1"
            yield Document(own, text, where=source.name, numbered=source.path is None)

    def _report(self, problem: Problem) -> None:
        """Report a row that is left out; what costs more than a row is an error."""
        if problem.kind.fatal:
            raise CorpusError(
                f"Cannot read {problem.where}: {problem.detail}. Check the file, and copy or "
                f"unpack it again if it is damaged."
            )
        self._left_out(problem.where, problem.reason)


def only_document(name: str) -> Document:
    """The one document in a file or in standard input; none, or a second one, is an error."""
    reasons: list[str] = []
    found = iter(Documents([name], left_out=lambda place, why: reasons.append(f"{place}: {why}")))
    document = next(found, None)
    if document is None:
        raise CorpusError(f"There is no text in {'; '.join(reasons) or name}. Give a document.")
    if next(found, None) is not None:
        raise CorpusError(
            f"{name} holds several documents. Give one of them, in a file of its own or as a text."
        )
    return document


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
