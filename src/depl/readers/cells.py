"""Cells that a spreadsheet shows and does not calculate."""

from __future__ import annotations

import re
from typing import TypeVar

T = TypeVar("T")

# What Excel, LibreOffice and Google Sheets take for the beginning of a formula, also after the
# white space and in the full-width forms that some of them ignore; a mere number is harmless.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")


def safe_cell(value: T) -> T | str:
    """A text that would be taken for a formula, with an apostrophe before it; else the value.

    A table of labels may be opened by someone who did not choose the names in it, and a formula
    can send what the table holds to another machine. The apostrophe is how spreadsheets
    themselves mark a text.

    Examples
    --------
    >>> safe_cell("=HYPERLINK(0)"), safe_cell("wine"), safe_cell("-5"), safe_cell(-0.5)
    ("'=HYPERLINK(0)", 'wine', '-5', -0.5)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
