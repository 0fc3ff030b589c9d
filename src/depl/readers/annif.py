"""Annif's short-text corpora (TSV, CSV, JSON lines) and vocabularies (TSV, CSV)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.assembling import Contents, Document, LabelRow, Layout
from depl.readers.fields import WrongFieldError, as_id, as_list, as_text, document_id
from depl.readers.files import bare_suffix, find_file, find_splits, first_line, lines, needed_file
from depl.readers.records import csv_records, json_records, parse_json
from depl.readers.trouble import Kind, Trouble

DESCRIPTION = "Annif short-text corpora (TSV, CSV, JSON lines) with a vocabulary (TSV, CSV)"
FILES = "train.tsv (or .csv, .jsonl), dev.tsv, test.tsv, and vocab.tsv (or vocab.csv, subjects.tsv)"
VOCABULARIES = tuple(
    f"{name}{suffix}" for name in ("vocab", "vocabulary", "subjects") for suffix in (".tsv", ".csv")
)


def look(folder: Path) -> Layout | None:
    """Find ``{train,dev,test}.{tsv,csv,jsonl}`` and the vocabulary."""
    splits = find_splits(folder, "{}.tsv", "{}.csv", "{}.jsonl")
    return Layout(folder, splits, find_file(folder, *VOCABULARIES)) if splits else None


def is_annif(layout: Layout) -> bool:
    """Whether the files are Annif's and not depl's own, which may have the same names."""
    path = next(iter(layout.splits.values()))
    start = first_line(path)
    if bare_suffix(path) == ".jsonl":
        try:
            fields = parse_json(start)
        except ValueError:
            return False
        return isinstance(fields, dict) and "subjects" in fields and "labels" not in fields
    cells = [cell.strip('" ').lower() for cell in re.split("[,\t]", start)]
    if bare_suffix(path) == ".csv":
        return "subject_uris" in cells
    # Annif's TSV has no header, so its first line is a document with its subjects.
    return "text" not in cells and (layout.labels is not None or "://" in start)


def load(layout: Layout, splits: Sequence[str], trouble: Trouble) -> Contents:
    """Read the vocabulary, and the documents of these splits; a label's id is its URI."""
    purpose = "the vocabulary, which names the subjects (SKOS is not read: save it as TSV)"
    path = needed_file(layout.folder, VOCABULARIES, purpose)
    vocabulary = _csv_vocabulary if bare_suffix(path) == ".csv" else _tsv_vocabulary
    rows = list(vocabulary(path, trouble))
    uri_of = {label.name: label.id for _, label in reversed(rows)}

    def documents(split: str) -> Iterator[Document]:
        corpus = layout.splits[split]
        if bare_suffix(corpus) == ".tsv":
            return _tsv_documents(corpus, split, trouble)
        if bare_suffix(corpus) == ".csv":
            return _csv_documents(corpus, split, trouble)
        return _json_documents(corpus, split, uri_of, trouble)

    return Contents(rows, {split: documents(split) for split in splits})


def bare_uri(uri: str) -> str:
    """A URI without the angle brackets around it."""
    return uri.strip().removeprefix("<").removesuffix(">")


def _tsv_vocabulary(path: Path, trouble: Trouble) -> Iterator[LabelRow]:
    """Lines ``<uri> TAB label``, perhaps with a notation after it."""
    for number, text, whole in lines(path, trouble):
        if whole and text.strip():
            cells = [*text.split("\t"), ""]
            label = Label(bare_uri(cells[0]), cells[1].strip())
            yield LabelRow(f"{path.name}:{number}", label)


def _csv_vocabulary(path: Path, trouble: Trouble) -> Iterator[LabelRow]:
    """Columns ``uri`` and ``label`` or ``label_xx``; the first language with a value is taken."""
    for record in csv_records(path, ("uri",), trouble):
        names = [
            str(value).strip()
            for column, value in record.fields.items()
            if column == "label" or column.startswith("label_")
        ]
        label = Label(bare_uri(str(record.fields["uri"])), next(filter(None, names), ""))
        yield LabelRow(record.where, label)


def _tsv_documents(path: Path, split: str, trouble: Trouble) -> Iterator[Document]:
    for number, text, whole in lines(path, trouble):
        if not whole or not text.strip():
            continue
        where = f"{path.name}:{number}"
        body, tab, uris = text.partition("\t")
        if tab:
            yield Document(where, f"{split}-{number}", body, [bare_uri(u) for u in uris.split()])
        else:
            trouble.add(Kind.WRONG_COLUMNS, where, "no tab between text and subjects")


def _csv_documents(path: Path, split: str, trouble: Trouble) -> Iterator[Document]:
    for record in csv_records(path, ("text", "subject_uris"), trouble):
        fields = {name: str(value) for name, value in record.fields.items()}
        own_id = document_id(fields.get("document_id"), split, record.line)
        uris = [bare_uri(uri) for uri in fields["subject_uris"].split()]
        yield Document(record.where, own_id, fields["text"], uris)


def _json_documents(
    path: Path, split: str, uri_of: Mapping[str, str], trouble: Trouble
) -> Iterator[Document]:
    for record in json_records(path, trouble):
        fields = record.fields
        try:
            own_id = document_id(fields.get("document_id"), split, record.line)
            text = as_text(fields.get("text"), "text")
            subjects = as_list(fields.get("subjects"), "subjects")
            uris = [_subject_uri(subject, uri_of) for subject in subjects]
        except WrongFieldError as error:
            trouble.add(Kind.WRONG_FIELDS, record.where, str(error))
        else:
            yield Document(record.where, own_id, text, uris)


def _subject_uri(subject: object, uri_of: Mapping[str, str]) -> str:
    """The URI of ``{"uri": ...}`` or ``{"label": ...}``; a label not in the vocabulary as it is."""
    if not isinstance(subject, dict):
        raise WrongFieldError("an item of subjects", subject)
    if "uri" in subject:
        return bare_uri(as_id(subject["uri"], "uri"))
    label = as_id(subject.get("label"), "label")
    return uri_of.get(label, label)
