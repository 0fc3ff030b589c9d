"""depl's own layout: JSON lines, one document or one label a line."""

from __future__ import annotations

from pathlib import Path

from depl.readers.assembling import Layout
from depl.readers.fields import LABEL_FILES, load
from depl.readers.files import find_file, find_splits

__all__ = ["DESCRIPTION", "FILES", "load", "look"]

DESCRIPTION = 'JSON lines with "id", "text", "labels", and labels.jsonl with "id", "name"'
FILES = "train.jsonl, dev.jsonl, test.jsonl, labels.jsonl (also .gz .bz2 .xz .zst)"


def look(folder: Path) -> Layout | None:
    """Find ``{train,dev,test}.jsonl`` and the labels file."""
    splits = find_splits(folder, "{}.jsonl")
    return Layout(folder, splits, find_file(folder, *LABEL_FILES)) if splits else None
