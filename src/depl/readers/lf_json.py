"""The Extreme Classification Repository's sets with label features, as raw text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.assembling import Contents, Document, LabelRow, Layout
from depl.readers.fields import WrongFieldError, as_id, as_list, as_text, document_id
from depl.readers.files import find_file, find_splits, needed_file
from depl.readers.pairing import lines_of_labels
from depl.readers.records import json_records
from depl.readers.trouble import Kind, Trouble

DESCRIPTION = "Extreme Classification Repository, raw text: trn.json.gz, tst.json.gz, lbl.json.gz"
FILES = "trn.json.gz, tst.json.gz, lbl.json.gz or Yf.txt (also unpacked)"

_LABELS = (
    "lbl.json",
    "Yf.txt",
)  # sets with label features have the first, AmazonCat-13K the second


def look(folder: Path) -> Layout | None:
    """Find ``{trn,tst}.json`` and the labels, compressed or not."""
    splits = find_splits(folder, "{}.json")
    return Layout(folder, splits, find_file(folder, *_LABELS)) if splits else None


def load(layout: Layout, splits: Sequence[str], trouble: Trouble) -> Contents:
    """Read labels, and the documents of these splits; ``target_ind`` counts lines of labels."""
    path = needed_file(layout.folder, _LABELS, "the file with the title of each label")
    rows = _named_by_line(path, trouble) if path.name.startswith("Yf") else _titled(path, trouble)
    uids = {position: row.label.id for position, row in rows.items()}
    documents = {s: _documents(layout.splits[s], s, uids, trouble) for s in splits}
    return Contents(list(rows.values()), documents)


def _named_by_line(path: Path, trouble: Trouble) -> dict[int, LabelRow]:
    """Labels by their positions, from a file with a name a line."""
    return {
        i: LabelRow(f"{path.name}:{i + 1}", Label(str(i), name))
        for i, name in enumerate(lines_of_labels(path, trouble))
        if name is not None
    }


def _titled(path: Path, trouble: Trouble) -> dict[int, LabelRow]:
    """Labels by their positions, from a file with an object a line."""
    rows: dict[int, LabelRow] = {}
    for record in json_records(path, trouble):
        position = record.line - 1
        try:
            uid = as_id(record.fields.get("uid", position), "uid")
            name = as_text(record.fields.get("title"), "title").strip()
        except WrongFieldError as error:
            trouble.add(Kind.WRONG_FIELDS, record.where, str(error))
            continue
        rows[position] = LabelRow(record.where, Label(uid, name))
    return rows


def _documents(
    path: Path, split: str, uids: Mapping[int, str], trouble: Trouble
) -> Iterator[Document]:
    for record in json_records(path, trouble):
        fields = record.fields
        try:
            parts = (as_text(fields.get(field), field).strip() for field in ("title", "content"))
            text = "\n".join(part for part in parts if part)
            own_id = document_id(fields.get("uid"), split, record.line)
            labels = [
                _label_id(item, uids) for item in as_list(fields.get("target_ind"), "target_ind")
            ]
        except WrongFieldError as error:
            trouble.add(Kind.WRONG_FIELDS, record.where, str(error))
        else:
            yield Document(record.where, own_id, text, labels)


def _label_id(position: object, uids: Mapping[int, str]) -> str:
    """The id of the label in this line of the labels file; a line that is not there is unknown."""
    if not isinstance(position, int) or isinstance(position, bool):
        raise WrongFieldError("an item of target_ind", position)
    return uids.get(position, f"target_ind {position}")
