"""Documents; and those to suggest labels for, one by one, from files of any size.

A corpus is read whole, and its problems are listed at the end. Here there may be millions of
documents: none is kept in memory, and a bad row is reported and left out while the rest is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from depl.core.errors import CorpusError
from depl.readers.fields import as_id_or, as_text
from depl.readers.files import SUFFIXES, Source, find_sources
from depl.readers.problems import Kind, Problem, Problems
from depl.readers.rows import Row, convert, rows


class Document(NamedTuple):
    """One document as it was found: label ids not yet checked, and its place in the files."""

    id: str
    text: str
    labels: Sequence[str] = ()
    where: str = ""


class Documents:
    r"""The documents of files of any size, to be read once.

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
        One of text, jsonl, csv, tsv and parquet, for files whose names and first lines mislead.
    whole_files : bool
        Take every file as one document, and of a folder all ``.txt`` files.
    text_column : str
        The field or column of the text; in tables upper and lower case are the same.
    id_column : str, optional
        The field or column of the id; ``id`` when not given, and then it need not be there.

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
    ...         print(document.id, document.text)
    a sparkling wine
    broken JSON: not an object but '[]'
    3 oil
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
        if format is not None and format not in SUFFIXES:
            raise CorpusError(
                f"There is no format {format!r} for documents. Name one of {', '.join(SUFFIXES)}."
            )
        self._left_out = left_out
        self._problems = Problems(tell=self._report)
        self._sources = [
            found for name in sources for found in find_sources(name, whole_files, self._problems)
        ]
        self._format = "whole" if whole_files else format
        self._text_column = text_column
        self._id_column = id_column
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
    def paths(self) -> list[Path]:
        """The files, without standard input."""
        return [source.path for source in self._sources if source.path is not None]

    @property
    def position(self) -> int:
        """How many bytes of ``total`` have been read."""
        return self._before + (self._current.reached() if self._current else 0)

    def __iter__(self) -> Iterator[Document]:
        needed = [self._text_column] + ([self._id_column] if self._id_column else [])
        for source in self._sources:
            self._current = source
            found = rows(source, needed, optional=("id",), format=self._format)
            for document in convert(found, self._document):
                if not document.text or document.text.isspace():
                    self._problems.add(Kind.NO_TEXT, document.where)
                else:
                    yield document
            self._current = None
            self._before += source.size or 0

    def _document(self, row: Row) -> Document:
        id_column = self._id_column or "id"
        made_id = row.where if len(self._sources) > 1 or not row.line else str(row.line)
        return Document(
            as_id_or(row.fields.get(id_column), id_column, made_id),
            as_text(row.fields.get(self._text_column), self._text_column),
            where=row.where,
        )

    def _report(self, problem: Problem) -> None:
        """Report a row that is left out; what costs more than a row is an error."""
        if problem.kind is Kind.MISSING_COLUMNS:
            raise CorpusError(
                f"{problem.where} has {problem.detail}. Name the right ones with --text-column "
                f"and --id-column."
            )
        if problem.kind.fatal:
            raise CorpusError(
                f"Cannot read {problem.where}: {problem.detail}. Copy, unpack or compress the file "
                f"again. What was written to --output is kept: the same command with --resume "
                f"continues after it."
            )
        self._left_out(problem.where, problem.reason)


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
