"""Files for ``depl labels RUN add``: new labels, and example documents for them."""

from __future__ import annotations

from pathlib import Path

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.readers.jsonl import documents, label_rows
from depl.readers.problems import Kind, Problems


def read_labels(path: Path) -> tuple[list[Label], dict[str, str]]:
    """Labels from rows with ``id``, ``name``, and perhaps ``alt_names`` and ``description``."""
    _check_exists(path)
    problems = Problems()
    labels: dict[str, Label] = {}
    descriptions = {}
    for where, label in label_rows(path, problems):
        if label.id in labels:
            problems.add(Kind.DUPLICATE_LABELS, where, repr(label.id))
        if not label.name.strip():
            problems.add(Kind.UNNAMED_LABELS, where, repr(label.id))
        labels[label.id] = label
        if label.description.strip():
            descriptions[label.id] = label.description
    _stop_at(problems, path)
    return list(labels.values()), descriptions


def read_examples(path: Path, added: set[str], known: set[str]) -> dict[str, list[str]]:
    """Texts by label; labels that the run already has are ignored, unknown ones are errors."""
    _check_exists(path)
    problems = Problems()
    found: dict[str, list[str]] = {}
    for document in documents(path, path.stem, problems):
        own = [x for x in document.labels if x in added]
        unknown = [x for x in document.labels if x not in added | known]
        if not document.text.strip():
            problems.add(Kind.NO_TEXT, document.where)
        elif unknown:
            problems.add(Kind.UNKNOWN_LABELS, document.where, repr(unknown[0]))
        elif not own:
            problems.add(Kind.NO_LABELS, document.where, "none of those to be added")
        for label_id in own:
            found.setdefault(label_id, []).append(document.text)
    _stop_at(problems, path)
    return found


def _stop_at(problems: Problems, path: Path) -> None:
    if problems:
        raise CorpusError(
            f"{path} cannot be used as it is. Nothing was changed.\n"
            + problems.listing(remedies=True)
        )


def _check_exists(path: Path) -> None:
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise CorpusError(
            f"{path} {what}. Give a .jsonl, .csv, .tsv or .parquet file; nothing was changed."
        )
