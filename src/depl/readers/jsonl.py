"""depl's own layout: JSON lines, a document or a label a line; tables have the same fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from depl.core.corpus import Label
from depl.readers.checks import Contents, LabelRow, Layout
from depl.readers.document import Document
from depl.readers.fields import as_id, as_id_or, as_ids, as_text, as_texts, as_words
from depl.readers.files import Source, find_file, find_splits, format_of, named
from depl.readers.problems import Problems
from depl.readers.rows import Row, convert, rows

DESCRIPTION = 'JSON lines with "id", "text", "labels", and labels.jsonl with "id", "name"'
FILES = "train.jsonl, dev.jsonl, test.jsonl, labels.jsonl (also .gz .bz2 .xz .zst)"
TABLES = ("csv", "tsv", "parquet", "excel")
_LISTS = ("alt_names", "broader")
LABEL_FIELDS = ("id", "name", *_LISTS, "description")
"""What a label has in a labels file."""
NEW_LABEL_FIELDS = (*LABEL_FIELDS, "examples")
"""What a label has that is added to a run: also texts of documents that carry it."""


class NewLabelRow(NamedTuple):
    """One label to add, where it was found, its examples, and fields that no label has."""

    where: str
    label: Label
    examples: list[str]
    others: list[str]


def look(folder: Path) -> Layout | None:
    """Find ``{train,dev,test}.jsonl`` and the labels file."""
    return look_for(folder, "jsonl")


def look_for(folder: Path, *formats: str) -> Layout | None:
    """Find documents in these formats, and the labels file in any."""
    splits = find_splits(folder, *named("{}", *formats))
    labels = find_file(folder, *named("labels", "jsonl", *TABLES))
    return Layout(folder, splits, labels) if splits else None


def load(layout: Layout, splits: Sequence[str], problems: Problems) -> Contents:
    """Labels at once, documents one by one; no labels file means the labels of the documents."""
    return Contents(
        None if layout.labels is None else list(label_rows(layout.labels, problems)),
        {split: documents(layout.splits[split], split, problems) for split in splits},
    )


def documents(path: Path, split: str, problems: Problems) -> Iterator[Document]:
    """Documents from a file's rows with ``text``, ``labels`` and perhaps ``id``."""

    def make(row: Row) -> Document:
        return Document(
            as_id_or(row.fields.get("id"), "id", f"{split}-{row.line}"),
            as_text(row.fields.get("text"), "text"),
            as_ids(row.fields.get("labels"), "labels"),
            row.where,
        )

    found = _rows(path, problems, ("text", "labels"), ("id",), ("labels",))
    return convert(found, make)


def label_rows(
    path: Path, problems: Problems, called: Mapping[str, str] = MappingProxyType({})
) -> Iterator[LabelRow]:
    """Labels from a file's rows with ``id``, ``name``, and perhaps the other fields of a label.

    ``called`` are columns that have other names in this file.
    """

    def make(row: Row) -> LabelRow:
        return LabelRow(row.where, _label(row))

    optional = LABEL_FIELDS[2:]
    return convert(_rows(path, problems, ("id", "name"), optional, _LISTS, called), make)


def new_label_rows(path: Path, problems: Problems) -> Iterator[NewLabelRow]:
    """Labels to add to a run, from a file's rows as in a labels file, perhaps with ``examples``."""

    def make(row: Row) -> NewLabelRow:
        examples = as_texts(row.fields.get("examples"), "examples")
        filled = (name for name, value in row.fields.items() if value not in (None, "", []))
        others = [name for name in filled if name not in NEW_LABEL_FIELDS]
        return NewLabelRow(row.where, _label(row), examples, others)

    return convert(_rows(path, problems, ("id", "name"), None, _LISTS), make)


def _label(row: Row) -> Label:
    return Label(
        as_id(row.fields.get("id"), "id"),
        as_words(row.fields.get("name"), "name"),
        tuple(as_ids(row.fields.get("alt_names"), "alt_names")),
        as_words(row.fields.get("description"), "description"),
        tuple(as_ids(row.fields.get("broader"), "broader")),
    )


def _rows(
    path: Path,
    problems: Problems,
    needed: Sequence[str],
    optional: Sequence[str] | None,
    lists: Sequence[str],
    called: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Row]:
    # A file of labels may have any name; what does not say that it is a table has JSON lines.
    format = format_of(path)
    format = format if format in (*TABLES, "json") else "jsonl"
    source = Source(path, problems)
    return rows(source, needed, optional=optional, lists=lists, format=format, called=called)
