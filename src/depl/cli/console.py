"""The two consoles of the command line, and how commands print counts, JSON and progress."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

out = Console(highlight=False, soft_wrap=True)
err = Console(highlight=False, soft_wrap=True, stderr=True)


@contextmanager
def progress() -> Iterator[None]:
    """Progress bars on standard error, if that is a terminal; the readers' warnings in any case."""
    from depl.core import progress

    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if not err.is_terminal:
        yield
        return
    with progress.shown(err):
        yield


def count(n: int, singular: str, plural: str | None = None) -> str:
    """A number and what it counts; by default the plural is the singular and an s.

    Examples
    --------
    >>> count(1, "document"), count(1200, "label"), count(2, "row was", "rows were")
    ('1 document', '1,200 labels', '2 rows were')
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """The text without control characters, which could move the cursor of the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def print_json(value: object) -> None:
    """One JSON value on standard output, without colours or wrapping."""
    out.file.write(json.dumps(value, ensure_ascii=False) + "\n")
