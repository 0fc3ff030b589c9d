"""Files for ``depl labels RUN add``: new labels, and example documents for them."""

from __future__ import annotations

from pathlib import Path

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.readers.fields import WrongFieldError, as_id, as_ids, as_text, documents
from depl.readers.records import records
from depl.readers.trouble import Kind, Trouble


def read_labels(path: Path) -> tuple[list[Label], dict[str, str]]:
    """Labels from rows with ``id``, ``name``, and perhaps ``alt_names`` and ``description``."""
    _check_exists(path)
    trouble = Trouble()
    labels: dict[str, Label] = {}
    descriptions = {}
    for row in records(path, ("id", "name"), trouble):
        try:
            label = Label(
                as_id(row.fields.get("id"), "id"),
                as_text(row.fields.get("name"), "name"),
                tuple(as_ids(row.fields.get("alt_names"), "alt_names")),
            )
            text = as_text(row.fields.get("description"), "description")
        except WrongFieldError as error:
            trouble.add(Kind.WRONG_FIELDS, row.where, str(error))
            continue
        if label.id in labels:
            trouble.add(Kind.DUPLICATE_LABELS, row.where, repr(label.id))
        if not label.name.strip():
            trouble.add(Kind.UNNAMED_LABELS, row.where, repr(label.id))
        labels[label.id] = label
        if text.strip():
            descriptions[label.id] = text
    _stop_at(trouble, path)
    return list(labels.values()), descriptions


def read_examples(path: Path, added: set[str], known: set[str]) -> dict[str, list[str]]:
    """Texts by label; labels that the run already has are ignored, unknown ones are errors."""
    _check_exists(path)
    trouble = Trouble()
    found: dict[str, list[str]] = {}
    for document in documents(path, path.stem, trouble):
        own = [x for x in document.labels if x in added]
        unknown = [x for x in document.labels if x not in added | known]
        if not document.text.strip():
            trouble.add(Kind.NO_TEXT, document.where)
        elif unknown:
            trouble.add(Kind.UNKNOWN_LABELS, document.where, repr(unknown[0]))
        elif not own:
            trouble.add(Kind.NO_LABELS, document.where, "none of those to be added")
        for label_id in own:
            found.setdefault(label_id, []).append(document.text)
    _stop_at(trouble, path)
    return found


def _stop_at(trouble: Trouble, path: Path) -> None:
    if trouble:
        raise CorpusError(
            f"{path} cannot be used as it is. Nothing was changed.\n"
            + trouble.listing(remedies=True)
        )


def _check_exists(path: Path) -> None:
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise CorpusError(
            f"{path} {what}. Give a .jsonl, .csv, .tsv or .parquet file; nothing was changed."
        )
