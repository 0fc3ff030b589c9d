"""One document, as every reader gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Document(NamedTuple):
    """One document as it was found: label ids not yet checked, and its place in the files.

    ``original`` is what it was made from, where that is to be written again: the fields of its
    row, or its MARC record. ``numbered``: it has no id of its own, so ``id`` is the number of its
    row, which says nothing outside of its file.
    """

    id: str
    text: str
    labels: Sequence[str] = ()
    where: str = ""
    original: object = None
    numbered: bool = False
