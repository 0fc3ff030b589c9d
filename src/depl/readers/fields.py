"""The fields of depl's own layouts, whether a row came from JSON lines or from a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.assembling import Contents, Document, LabelRow, Layout
from depl.readers.records import TABLES, records
from depl.readers.trouble import Kind, Trouble

LABEL_FILES = tuple(f"labels{suffix}" for suffix in (".jsonl", *TABLES))


class WrongFieldError(Exception):
    """A field has a type that cannot be used; the message says which."""

    def __init__(self, field: str, value: object) -> None:
        super().__init__(f"{field} is {value!r:.60}")


def as_id(value: object, field: str) -> str:
    """A string or a whole number as an id."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise WrongFieldError(field, value)


def as_text(value: object, field: str) -> str:
    """A string; nothing at all counts as an empty one."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise WrongFieldError(field, value)


def as_list(value: object, field: str) -> list[object]:
    """A list; nothing at all counts as an empty one."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise WrongFieldError(field, value)


def as_ids(value: object, field: str) -> list[str]:
    """A list of ids; nothing at all counts as an empty one."""
    return [as_id(item, f"an item of {field}") for item in as_list(value, field)]


def document_id(value: object, split: str, line: int) -> str:
    """The document's own id, or one made of split and line number.

    Examples
    --------
    >>> document_id(31960, "train", 17), document_id(None, "train", 17)
    ('31960', 'train-17')
    """
    return f"{split}-{line}" if value is None or value == "" else as_id(value, "id")


def documents(path: Path, split: str, trouble: Trouble) -> Iterator[Document]:
    """Documents from a file's rows with ``id`` (or none), ``text`` and ``labels``."""
    for record in records(path, ("text", "labels"), trouble):
        fields = record.fields
        try:
            document = Document(
                record.where,
                document_id(fields.get("id"), split, record.line),
                as_text(fields.get("text"), "text"),
                as_ids(fields.get("labels"), "labels"),
            )
        except WrongFieldError as error:
            trouble.add(Kind.WRONG_FIELDS, record.where, str(error))
        else:
            yield document


def label_rows(path: Path, trouble: Trouble) -> Iterator[LabelRow]:
    """Labels from a file's rows with ``id``, ``name`` and perhaps ``alt_names``."""
    for record in records(path, ("id", "name"), trouble):
        fields = record.fields
        try:
            label = Label(
                as_id(fields.get("id"), "id"),
                as_text(fields.get("name"), "name"),
                tuple(as_ids(fields.get("alt_names"), "alt_names")),
            )
        except WrongFieldError as error:
            trouble.add(Kind.WRONG_FIELDS, record.where, str(error))
        else:
            yield LabelRow(record.where, label)


def load(layout: Layout, splits: Sequence[str], trouble: Trouble) -> Contents:
    """Labels at once, documents one by one; no labels file means the labels of the documents."""
    return Contents(
        None if layout.labels is None else list(label_rows(layout.labels, trouble)),
        {split: documents(layout.splits[split], split, trouble) for split in splits},
    )
