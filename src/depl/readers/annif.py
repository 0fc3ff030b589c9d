"""Annif's short-text corpora (TSV, CSV, JSON lines) and vocabularies (TSV, CSV)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.checks import Contents, LabelRow, Layout
from depl.readers.document import Document
from depl.readers.fields import WrongFieldError, as_id, as_id_or, as_list, as_text, parse_json
from depl.readers.files import Source, find_file, find_splits, format_of, named, needed_file
from depl.readers.lines import first_line
from depl.readers.problems import Kind, Problems
from depl.readers.rows import Row, convert, rows

DESCRIPTION = "Annif short-text corpora (TSV, CSV, JSON lines) with a vocabulary (TSV, CSV)"
FILES = "train.tsv (or .csv, .jsonl), dev.tsv, test.tsv, and vocab.tsv (or vocab.csv, subjects.tsv)"
VOCABULARIES = [
    file for name in ("vocab", "vocabulary", "subjects") for file in named(name, "tsv", "csv")
]


def look(folder: Path) -> Layout | None:
    """Find ``{train,dev,test}.{tsv,csv,jsonl}`` and the vocabulary."""
    splits = find_splits(folder, *named("{}", "tsv", "csv", "jsonl"))
    return Layout(folder, splits, find_file(folder, *VOCABULARIES)) if splits else None


def is_annif(layout: Layout) -> bool:
    """Whether the files are Annif's and not depl's own, which may have the same names."""
    path = next(iter(layout.splits.values()))
    start = first_line(path)
    if format_of(path) == "jsonl":
        try:
            fields = parse_json(start)
        except ValueError:
            return False
        return isinstance(fields, dict) and "subjects" in fields and "labels" not in fields
    cells = [cell.strip('" ').lower() for cell in re.split("[,\t]", start)]
    if format_of(path) == "csv":
        return "subject_uris" in cells
    # Annif's TSV has no header, so its first line is a document with its subjects.
    return "text" not in cells and (layout.labels is not None or "://" in start)


def load(layout: Layout, splits: Sequence[str], problems: Problems) -> Contents:
    """Read the vocabulary, and the documents of these splits; a label's id is its URI."""
    purpose = "the vocabulary, which names the subjects (SKOS is not read: save it as TSV)"
    path = needed_file(layout.folder, VOCABULARIES, purpose)
    vocabulary = _csv_vocabulary if format_of(path) == "csv" else _tsv_vocabulary
    labels = list(vocabulary(path, problems))
    uri_of = {row.label.name: row.label.id for row in reversed(labels)}

    def documents(split: str) -> Iterator[Document]:
        corpus = layout.splits[split]
        if format_of(corpus) == "tsv":
            return _tsv_documents(corpus, split, problems)
        if format_of(corpus) == "csv":
            return _csv_documents(corpus, split, problems)
        return _json_documents(corpus, split, uri_of, problems)

    return Contents(labels, {split: documents(split) for split in splits})


def bare_uri(uri: str) -> str:
    """A URI without the angle brackets around it."""
    return uri.strip().removeprefix("<").removesuffix(">")


def _tsv_vocabulary(path: Path, problems: Problems) -> Iterator[LabelRow]:
    """Lines ``<uri> TAB label``, perhaps with a notation after it."""
    for row in rows(Source(path, problems), ("label",), format="text"):
        cells = [*row.fields["label"].split("\t"), ""]
        yield LabelRow(row.where, Label(bare_uri(cells[0]), cells[1].strip()))


def _csv_vocabulary(path: Path, problems: Problems) -> Iterator[LabelRow]:
    """Columns ``uri`` and ``label`` or ``label_xx``; the first language with a value is taken."""
    for row in rows(Source(path, problems), ("uri",), optional=None):
        names = [
            value.strip()
            for column, value in row.fields.items()
            if column == "label" or column.startswith("label_")
        ]
        label = Label(bare_uri(row.fields["uri"]), next(filter(None, names), ""))
        yield LabelRow(row.where, label)


def _tsv_documents(path: Path, split: str, problems: Problems) -> Iterator[Document]:
    for row in rows(Source(path, problems), ("text",), format="text"):
        text, tab, uris = row.fields["text"].partition("\t")
        if tab:
            yield Document(f"{split}-{row.line}", text, _bare_uris(uris), row.where)
        else:
            problems.add(Kind.WRONG_COLUMNS, row.where, "no tab between text and subjects")


def _csv_documents(path: Path, split: str, problems: Problems) -> Iterator[Document]:
    needed = ("text", "subject_uris")
    for row in rows(Source(path, problems), needed, optional=("document_id",)):
        own_id = row.fields.get("document_id") or f"{split}-{row.line}"
        uris = _bare_uris(row.fields["subject_uris"])
        yield Document(own_id, row.fields["text"], uris, row.where)


def _bare_uris(uris: str) -> list[str]:
    return [bare_uri(uri) for uri in uris.split()]


def _json_documents(
    path: Path, split: str, uri_of: Mapping[str, str], problems: Problems
) -> Iterator[Document]:
    def make(row: Row) -> Document:
        subjects = as_list(row.fields.get("subjects"), "subjects")
        return Document(
            as_id_or(row.fields.get("document_id"), "document_id", f"{split}-{row.line}"),
            as_text(row.fields.get("text"), "text"),
            [_subject_uri(subject, uri_of) for subject in subjects],
            row.where,
        )

    return convert(rows(Source(path, problems), ("text",)), make)


def _subject_uri(subject: object, uri_of: Mapping[str, str]) -> str:
    """The URI of ``{"uri": ...}`` or ``{"label": ...}``; a label not in the vocabulary as it is."""
    if not isinstance(subject, dict):
        raise WrongFieldError("an item of subjects", subject)
    if "uri" in subject:
        return bare_uri(as_id(subject["uri"], "uri"))
    label = as_id(subject.get("label"), "label")
    return uri_of.get(label, label)
