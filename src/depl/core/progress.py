"""Progress bars that the command line and notebooks turn on; as a library depl is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

T = TypeVar("T")
Tell = Callable[[int, str], None]

_bars: Progress | None = None


class _Count(MofNCompleteColumn):
    """How much of all is done, where that is known."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class _Time(TimeRemainingColumn):
    """The time that is left, or else the time since the beginning."""

    def render(self, task: Task) -> Text:
        return TimeElapsedColumn().render(task) if task.total is None else super().render(task)


@contextmanager
def shown(console: Console) -> Iterator[None]:
    """Show progress bars on this console while the block runs."""
    global _bars
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        _Count(),
        _Time(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        _bars = bars
        try:
            yield
        finally:
            _bars = None


@contextmanager
def shown_in_notebook() -> Iterator[None]:
    """Show progress bars in a notebook that can draw them; elsewhere, and within others, do not."""
    console = Console()
    if _bars is not None or not console.is_jupyter or find_spec("ipywidgets") is None:
        yield
        return
    with shown(console):
        yield


def track(items: Iterable[T], text: str, total: int, step: int = 1) -> Iterator[T]:
    """Yield the items; each one moves the bar by ``step`` of ``total``."""
    if _bars is None:
        yield from items
        return
    task = _bars.add_task(text, total=total)
    try:
        for item in items:
            yield item
            _bars.advance(task, step)
    finally:
        _bars.remove_task(task)


@contextmanager
def bar(text: str, total: int) -> Iterator[Tell]:
    """A bar that is set to how much is done, with a message after ``text``."""
    if _bars is None:
        yield lambda done, remark: None
        return
    bars, task = _bars, _bars.add_task(text, total=total)
    try:
        yield lambda done, remark: bars.update(
            task, completed=done, description=f"{text:<22} {remark}"
        )
    finally:
        bars.remove_task(task)


@contextmanager
def busy(text: str) -> Iterator[None]:
    """A bar that moves to and fro, with the time since it began: nobody knows how long it takes."""
    if _bars is None:
        yield
        return
    bars, task = _bars, _bars.add_task(text, total=None)
    try:
        yield
    finally:
        bars.remove_task(task)
