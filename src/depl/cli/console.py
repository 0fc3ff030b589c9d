"""The two consoles of the command line, and how commands print counts, JSON and progress."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import (
    Console,
    ConsoleDimensions,
    ConsoleOptions,
    ConsoleRenderable,
    RenderHook,
    RenderResult,
)
from rich.markup import escape
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from depl.core.display import count

if TYPE_CHECKING:
    from depl.core.corpus import Label

__all__ = [
    "copied",
    "count",
    "err",
    "label_text",
    "moment",
    "named",
    "out",
    "print_entry",
    "print_json",
    "print_line",
    "progress",
    "visible",
]

_ENDLESS = 100_000  # characters that a line may have where nothing has to fit on a screen

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


class _Console(Console):
    """A console that breaks lines between words on a terminal, and nowhere else.

    In a pipe or a file a line stays a line, and a table is as wide as what is in it. A word that is
    longer than a line, such as a path, is left whole so that it can be copied.
    """

    @property
    def size(self) -> ConsoleDimensions:
        """Width and height."""
        size = super().size
        free = not self.is_terminal and self._width is None
        return ConsoleDimensions(_ENDLESS, size.height) if free else size

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        self._width, self._height = new

    def print(self, *objects: object, **options: object) -> None:
        """As rich prints, but for the line breaks."""
        chosen: dict[str, Any] = {"soft_wrap": not self.is_terminal, **options}
        if self.is_terminal and len(objects) == 1 and not options:
            text = self.render_str(objects[0]) if isinstance(objects[0], str) else objects[0]
            if isinstance(text, Text):
                objects, chosen = (_broken(text, self.width),), {"soft_wrap": True}
        super().print(*objects, **chosen)


def _broken(text: Text, width: int) -> Text:
    """The text with its long lines broken between words, each below the beginning of the first."""
    lines = []
    for line in text.split("\n", allow_blank=True):
        indent = len(line.plain) - len(line.plain.lstrip())
        breaks, used = [], 0
        for word in re.finditer(r"(?:^\s+)?\S+\s*", line.plain):
            if used > indent and used + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                used = indent
            used += cell_len(word[0])
        first, *others = line.divide(breaks)
        for line_before in [first, *others[:-1]]:
            line_before.rstrip()
        lines += [first, *(Text(" " * indent) + other for other in others)]
    return Text("\n").join(lines)


def _console(*, stderr: bool) -> Console:
    console = _Console(highlight=False, stderr=stderr)
    console.push_render_hook(_Visible())
    return console


# A console takes square brackets in a string for a style, so names, paths and texts are printed as
# a ``Text`` or through rich's ``escape``.
out = _console(stderr=False)
err = _console(stderr=True)


def print_line(console: Console, text: Text) -> None:
    """One line, cut at the edge of a terminal."""
    if console.is_terminal:
        console.print(text, no_wrap=True, overflow="ellipsis")
    else:
        console.print(text)


def print_entry(console: Console, head: str, body: Text | str) -> None:
    """What an entry is about, and the entry; on a terminal its lines begin below one another."""
    body = Text(body) if isinstance(body, str) else body
    if not console.is_terminal:
        console.print(Text(head) + body)
        return
    grid = Table.grid(Column(width=len(head)), Column(overflow="fold"))
    grid.add_row(head, body)
    console.print(grid)


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


def copied(path: Path) -> str:
    """A path as it stands in a command that people copy: quoted for the shell where it must be."""
    return escape(shlex.quote(str(path)))


def moment(time: str) -> str:
    """A time of the records, which are in UTC, as a clock on this machine shows it."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}"


def print_json(value: object) -> None:
    """One JSON value on standard output, without colours or wrapping."""
    out.file.write(json.dumps(value, ensure_ascii=False) + "\n")
