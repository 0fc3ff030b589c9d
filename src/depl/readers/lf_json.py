"""The Extreme Classification Repository's sets with label features, as raw text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from depl.core.corpus import Label
from depl.readers.checks import Contents, LabelRow, Layout
from depl.readers.document import Document
from depl.readers.fields import WrongFieldError, as_id, as_id_or, as_list, as_text
from depl.readers.files import Source, find_file, find_splits, needed_file
from depl.readers.pairing import lines_of_labels
from depl.readers.problems import Problems
from depl.readers.rows import Row, convert, rows

DESCRIPTION = "Extreme Classification Repository, raw text: trn.json.gz, tst.json.gz, lbl.json.gz"
FILES = "trn.json.gz, tst.json.gz, lbl.json.gz or Yf.txt (also unpacked)"

# Sets with label features have the first, AmazonCat-13K the second.
_LABELS = ("lbl.json", "Yf.txt")


def look(folder: Path) -> Layout | None:
    """Find ``{trn,tst}.json`` and the labels, compressed or not."""
    splits = find_splits(folder, "{}.json")
    return Layout(folder, splits, find_file(folder, *_LABELS)) if splits else None


def load(layout: Layout, splits: Sequence[str], problems: Problems) -> Contents:
    """Read labels, and the documents of these splits; ``target_ind`` counts lines of labels."""
    path = needed_file(layout.folder, _LABELS, "the file with the title of each label")
    named = _named_by_line if path.name.startswith("Yf") else _titled
    labels = named(path, problems)
    uids = {position: row.label.id for position, row in labels.items()}
    documents = {s: _documents(layout.splits[s], s, uids, problems) for s in splits}
    return Contents(list(labels.values()), documents)


def _named_by_line(path: Path, problems: Problems) -> dict[int, LabelRow]:
    """Labels by their positions, from a file with a name a line."""
    return {
        i: LabelRow(f"{path.name}:{i + 1}", Label(str(i), name))
        for i, name in enumerate(lines_of_labels(path, problems))
        if name is not None
    }


def _titled(path: Path, problems: Problems) -> dict[int, LabelRow]:
    """Labels by their positions, from a file with an object a line."""

    def make(row: Row) -> tuple[int, LabelRow]:
        position = row.line - 1
        uid = as_id(row.fields.get("uid", position), "uid")
        name = as_text(row.fields.get("title"), "title").strip()
        return position, LabelRow(row.where, Label(uid, name))

    return dict(convert(_objects(path, problems), make))


def _documents(
    path: Path, split: str, uids: Mapping[int, str], problems: Problems
) -> Iterator[Document]:
    def make(row: Row) -> Document:
        parts = (as_text(row.fields.get(field), field).strip() for field in ("title", "content"))
        labels = as_list(row.fields.get("target_ind"), "target_ind")
        return Document(
            as_id_or(row.fields.get("uid"), "uid", f"{split}-{row.line}"),
            "\n".join(part for part in parts if part),
            [_label_id(position, uids) for position in labels],
            row.where,
        )

    return convert(_objects(path, problems), make)


def _objects(path: Path, problems: Problems) -> Iterator[Row]:
    return rows(Source(path, problems), ("title",), format="jsonl")


def _label_id(position: object, uids: Mapping[int, str]) -> str:
    """The id of the label in this line of the labels file; a line that is not there is unknown."""
    if not isinstance(position, int) or isinstance(position, bool):
        raise WrongFieldError("an item of target_ind", position)
    return uids.get(position, f"target_ind {position}")
