"""depl's own layout as tables: CSV, TSV or Parquet with the columns of the JSON lines."""

from __future__ import annotations

from pathlib import Path

from depl.readers.assembling import Layout
from depl.readers.fields import LABEL_FILES, load
from depl.readers.files import find_file, find_splits
from depl.readers.records import TABLES

__all__ = ["DESCRIPTION", "FILES", "load", "look"]

DESCRIPTION = "CSV, TSV or Parquet with columns id, text, labels, and a labels table with id, name"
FILES = "train.csv (or .tsv, .parquet), dev.csv, test.csv, labels.csv (also .gz .bz2 .xz .zst)"


def look(folder: Path) -> Layout | None:
    """Find ``{train,dev,test}.{csv,tsv,parquet}`` and the labels file."""
    splits = find_splits(folder, *(f"{{}}{suffix}" for suffix in TABLES))
    return Layout(folder, splits, find_file(folder, *LABEL_FILES)) if splits else None
