"""depl's own layout as tables: CSV, TSV, Parquet or Excel with the columns of the JSON lines."""

from __future__ import annotations

from pathlib import Path

from depl.readers.checks import Layout
from depl.readers.jsonl import TABLES, load, look_for

__all__ = ["DESCRIPTION", "FILES", "load", "look"]

DESCRIPTION = (
    "CSV, TSV, Parquet or Excel: columns id, text, labels, and a labels table with id, name"
)
FILES = (
    "train.csv (or .tsv, .parquet, .xlsx), dev.csv, test.csv, labels.csv (also .gz .bz2 .xz .zst)"
)


def look(folder: Path) -> Layout | None:
    """Find ``{train,dev,test}.{csv,tsv,parquet}`` and the labels file."""
    return look_for(folder, *TABLES)
