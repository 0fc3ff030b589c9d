"""Files for ``depl labels RUN add``: new labels, and example documents for them."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.readers.jsonl import NEW_LABEL_FIELDS, documents, new_label_rows
from depl.readers.problems import Kind, Problems

_NAMED = 5  # fields that were not used


class NewLabels(NamedTuple):
    """Labels to add, descriptions and examples by id, and fields of the file that were not used."""

    labels: list[Label]
    descriptions: dict[str, str]
    examples: dict[str, list[str]]
    others: list[str]


def read_labels(path: Path) -> NewLabels:
    """Labels from rows with ``id``, ``name``, and perhaps the other fields of a new label."""
    _check_exists(path)
    problems = Problems()
    labels: dict[str, Label] = {}
    descriptions = {}
    examples = {}
    unused: dict[str, None] = {}  # in the order of the file
    for where, label, texts, others in new_label_rows(path, problems):
        if label.id in labels:
            problems.add(Kind.DUPLICATE_LABELS, where, repr(label.id))
        if not label.name.strip():
            problems.add(Kind.UNNAMED_LABELS, where, repr(label.id))
        labels[label.id] = label
        if label.description.strip():
            descriptions[label.id] = label.description
        for text in texts:
            if not text.strip():
                problems.add(Kind.NO_TEXT, where, f"an example of {label.id!r}")
        if texts:
            examples[label.id] = texts
        unused |= dict.fromkeys(others)
    _stop_at(problems, path)
    return NewLabels(list(labels.values()), descriptions, examples, list(unused))


def not_used(path: Path, others: list[str]) -> str:
    """What to say of fields that no label has: a misspelt one would be missed."""
    said = []
    for name in others[:_NAMED]:
        close = get_close_matches(name.casefold(), NEW_LABEL_FIELDS, 1, 0.75)
        said.append(f"{name!r:.60}" + (f" (did you mean {close[0]!r}?)" if close else ""))
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return (
        f"{path.name} has fields that were not used: {', '.join(said)}{more}. A new label can have "
        f"{', '.join(NEW_LABEL_FIELDS)}. If one of these was meant, undo, rename it in the file, "
        f"and add again."
    )


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
            f"{path} {what}. Give a .jsonl, .json, .csv, .tsv, .parquet or .xlsx file; "
            f"nothing was changed."
        )
