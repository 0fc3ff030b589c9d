"""The two consoles of the command line, and how commands print counts, JSON and progress."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from depl.core.display import count

if TYPE_CHECKING:
    from depl.core.corpus import Label

__all__ = ["count", "err", "label_text", "named", "out", "print_json", "progress", "visible"]

# All that moves the cursor, colours the terminal or turns the direction of writing, except the line
# feed; and half surrogates, which cannot be written at all.
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with control characters written out, so that none of them reaches a terminal.

    Examples
    --------
    >>> print(visible("wine \x1b[2J\u202e"))
    wine \x1b[2J\u202e
    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


class _Visible(RenderHook):
    """Makes control characters visible in all that a console prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Shown(renderable) for renderable in renderables]


class _Shown:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


class _VisibleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _console(*, stderr: bool) -> Console:
    console = Console(highlight=False, soft_wrap=True, stderr=stderr)
    console.push_render_hook(_Visible())
    return console


# A console takes square brackets in a string for a style, so names, paths and texts are printed as
# a ``Text`` or through rich's ``escape``.
out = _console(stderr=False)
err = _console(stderr=True)


@contextmanager
def progress() -> Iterator[None]:
    """Progress bars on standard error, if that is a terminal; the readers' warnings in any case."""
    from depl.core import progress

    handler = logging.StreamHandler()
    handler.setFormatter(_VisibleFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    if not err.is_terminal:
        yield
        return
    with progress.shown(err):
        yield


def label_text(label: Label, style: str = "") -> Text:
    """A label's name, and its id where that is something else."""
    own_id = () if label.id == label.name else (" ", (label.id, "dim"))
    return Text.assemble((label.name, style), *own_id)


def named(labels: Sequence[Label], most: int = 12) -> str:
    """The names of some labels.

    Examples
    --------
    >>> from depl.core.corpus import Label
    >>> named([Label("1", "wine"), Label("2", "beer"), Label("3", "mead")], most=2)
    'wine; beer; and 1 more'
    """
    names = [label.name for label in labels[:most]]
    return "; ".join(names + [f"and {len(labels) - most:,} more"] * (len(labels) > most))


def print_json(value: object) -> None:
    """One JSON value on standard output, without colours or wrapping."""
    out.file.write(json.dumps(value, ensure_ascii=False) + "\n")
