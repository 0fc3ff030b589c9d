"""Documents from a table of any shape: which rows and columns were taken, and how labels are spelt.

The other formats say what their columns are called and that labels are ids. Here the table is
somebody's own: the columns are chosen, the labels are names, and a row without text or labels is
left out and counted, as every catalogue has some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.core.scratch import TextSpool
from depl.readers.checks import Contents, Layout
from depl.readers.choosing import choose
from depl.readers.columns import Columns
from depl.readers.document import Document
from depl.readers.fields import as_id_or, as_names, as_words
from depl.readers.files import Source, format_of
from depl.readers.jsonl import label_rows
from depl.readers.lines import first_line
from depl.readers.marc_corpus import MarcCorpus, is_marc
from depl.readers.markup import without_markup
from depl.readers.paths import as_written, find_path_separator, tidy_path
from depl.readers.problems import Problems
from depl.readers.rows import Row, convert, open_table
from depl.readers.spellings import Codes, Spellings, sameness
from depl.readers.tables import Table
from depl.readers.vocabularies import Matched

NO_TEXT, NO_LABELS, COPY = "no text", "no labels", "one document with the row of the same id"


@dataclass
class Taken:
    """What was taken from a table."""

    name: str
    described: str = ""
    columns: Columns = field(default_factory=Columns)
    unused: tuple[str, ...] = ()
    left_out: Counter[str] = field(default_factory=Counter)
    variants: dict[str, list[str]] = field(default_factory=dict)
    matched: Matched | None = None


def load(
    layout: Layout,
    splits: Sequence[str],
    problems: Problems,
    *,
    asked: Columns,
    kept: Columns | None = None,
    known: Iterable[Label] = (),
    format: str | None = None,
    opened: Mapping[str, Table] | None = None,
    encoding: str | None = None,
) -> tuple[Contents, Taken]:
    """The documents of these splits, with labels as the labels file, or ``known``, has them.

    Parameters
    ----------
    layout : Layout
        The files.
    splits : sequence of str
        Those to read; what was chosen for the first is taken for the others where it is there.
    problems : Problems
        What collects the rows that cannot be read.
    asked : Columns
        What was asked for.
    kept : Columns, optional
        What was taken before.
    known : iterable of Label
        Labels that are known already, such as those of a run: spellings of their names mean them.
    format : str, optional
        The format of the tables.
    opened : mapping of str to Table, optional
        The table of each split where they are in memory; files are not opened then.
    encoding : str, optional
        That of delimited text; found from its bytes when not given.
    """
    labels = None if layout.labels is None else list(label_rows(layout.labels, problems))
    taken = Taken(next(path.name for path in layout.splits.values()))
    found: dict[str, list[Document]] = {}
    texts: dict[str, Sequence[str]] = {}
    marc: MarcCorpus | None = None
    known = list(known)
    before = None if kept is None else kept.path or ""
    for split in splits:
        source = Source(layout.splits[split], problems, encoding=encoding)
        source.sheet, source.sheet_before = asked.sheet, kept.sheet if kept else None
        source.columns_before = asked.names or (kept.names if kept else ())
        made_id = partial("{}-{}".format, split)
        unused: tuple[str, ...] = ()
        if opened is None and is_marc(source, format):
            marc = marc or MarcCorpus(asked, kept, known)
            columns, described = marc.columns, "MARC records"
            rows = marc.documents(source, made_id)
        else:
            table = _opened(source, format) if opened is None else opened[split]
            if not table.header:
                found[split], texts[split] = [], []
                continue
            columns, described = choose(source.name, table, asked, kept=kept), table.described
            unused = tuple(name for name in table.header if name not in columns.all)
            rows = documents(source, table, columns, made_id)
        if not found:
            taken.name, taken.described = source.name, described
            taken.columns, taken.unused = columns, unused
        kept = columns
        found[split], texts[split] = _one_by_one(rows, taken.left_out)
    if marc is not None:
        taken.columns = marc.columns  # the vocabulary is known by now
    else:
        taken.columns = replace(taken.columns, path=_tidy_paths(found, asked.path, before))
    if marc is not None and labels is None and not known:
        labels = marc.labels()
    names = _Names([row.label for row in labels] if labels is not None else known, taken, found)
    return Contents(
        labels, {split: map(names.put, found[split], texts[split]) for split in splits}
    ), taken


def documents(
    source: Source,
    table: Table,
    columns: Columns,
    made_id: Callable[[int], str],
    *,
    keep_fields: bool = False,
    keep_markup: bool = False,
) -> Iterator[Document]:
    """Documents from the rows of a table, with the names of their labels as they are spelt.

    With ``keep_fields``, all fields of a row are the document's ``original``; without
    ``keep_markup``, cells of HTML become the words in them.
    """
    words = as_words if keep_markup else lambda value, field: without_markup(as_words(value, field))

    def make(row: Row) -> Document:
        texts = (words(row.fields[column], column).strip() for column in columns.text)
        own_id = row.fields[columns.id] if columns.id else None
        return Document(
            as_id_or(own_id, columns.id or "id", made_id(row.line)),
            "\n".join(filter(None, texts)),
            [
                name
                for column in columns.labels
                for name in as_names(row.fields[column], column, columns.separator or "")
            ],
            row.where,
            row.fields if keep_fields else None,
            own_id is None or own_id == "",
        )

    names = table.header if keep_fields else columns.all
    found = (Row(source, number, fields) for number, fields in table.rows(names))
    return convert(found, make)


def _opened(source: Source, format: str | None) -> Table:
    """The table; a file whose name does not say that it is one is taken for delimited text."""
    assert source.path is not None
    format = format or format_of(source.path)
    if format in (None, "text"):
        start = first_line(source.path).lstrip()
        format = {"{": "jsonl", "[": "json"}.get(start[:1], "csv")
    table = open_table(source, format=format)
    if not isinstance(table, Table):
        raise CorpusError(f"{source.name} is no table: it has no columns. Give CSV or JSON.")
    return table


def _one_by_one(
    rows: Iterable[Document], left_out: Counter[str]
) -> tuple[list[Document], Sequence[str]]:
    """Documents with a text and labels, and their texts apart; of rows that repeat one, one."""
    joined: dict[tuple[str, bytes], list[str]] = {}
    order: list[Document] = []
    texts = TextSpool()
    for document in rows:
        if not document.text:
            left_out[NO_TEXT] += 1
            continue
        if not document.labels:
            left_out[NO_LABELS] += 1
            continue
        key = document.id, _digest(document.text)
        if key in joined:
            joined[key] += document.labels
            left_out[COPY] += 1
        else:
            joined[key] = list(document.labels)
            order.append(document._replace(text="", labels=joined[key]))
            texts.append(document.text)
    return order, texts.texts()


def _tidy_paths(found: dict[str, list[Document]], asked: str | None, before: str | None) -> str:
    """Write the paths of all documents in one way; returns their separator, if they are paths.

    ``before`` is how they were written in what the run was made from.
    """
    labels = {label for part in found.values() for document in part for label in document.labels}
    if asked is not None:
        separator = as_written(labels, asked.strip()) if asked.strip() else ""
    else:
        separator = find_path_separator(labels) if before is None else before
    if separator:
        for split, part in found.items():
            found[split] = [
                document._replace(labels=[tidy_path(x, separator) for x in document.labels])
                for document in part
            ]
    return separator


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Names:
    """Finds the label that a name in a cell means."""

    def __init__(
        self, known: Iterable[Label], taken: Taken, found: dict[str, list[Document]]
    ) -> None:
        self._merge = taken.columns.merge
        self._ids: dict[str, str] = {}
        known = list(known)
        for label in known:  # an id is surer than a name, and a name than another name
            self._ids.setdefault(self._same(label.id), label.id)
        for label in known:
            self._ids.setdefault(self._same(label.name), label.id)
        for label in known:
            for name in label.alt_names:
                self._ids.setdefault(self._same(name), label.id)
        self._codes = Codes(label.id for label in known)
        self._spellings = Spellings({})
        if self._merge:
            self._spellings = Spellings.learn(d.labels for part in found.values() for d in part)
            taken.variants = self._spellings.variants

    def put(self, document: Document, text: str) -> Document:
        """The document with its text, and with ids of labels for their names."""
        names: Iterable[str] = dict.fromkeys(document.labels)
        if self._merge:
            names = self._spellings.labels(names)
        return document._replace(text=text, labels=list(dict.fromkeys(map(self._label, names))))

    def _label(self, name: str) -> str:
        """The label of this id or name, or the code whose zeros a spreadsheet has dropped."""
        return self._ids.get(self._same(name)) or self._codes.find(name) or name

    def _same(self, name: str) -> str:
        return sameness(name) if self._merge else name


def single_table(path: Path) -> Layout:
    """The layout of one file with all documents."""
    return Layout(path.parent, {"train": path}, None)
