"""The two consoles of the command line, and how a long command shows its progress."""

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


def print_json(value: object) -> None:
    """One JSON value on standard output, without colours or wrapping."""
    out.file.write(json.dumps(value, ensure_ascii=False) + "\n")
