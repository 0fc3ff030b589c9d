"""Ctrl-C and SIGTERM: one sentence, and the exit code that shells expect."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_WORDS = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated"}

_received = signal.SIGINT
_remark = ""


def obey_signals() -> None:
    """Let SIGTERM end a command as Ctrl-C does, so that it tidies up and says what is kept."""
    global _remark
    _remark = ""  # of a command before this one in the same process
    for number in _WORDS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = signal.Signals(number)
    raise KeyboardInterrupt


@contextmanager
def remarking(remark: Callable[[], str]) -> Iterator[None]:
    """If the block is interrupted, have the sentence end in this remark."""
    global _remark
    try:
        yield
    except KeyboardInterrupt:
        _remark = remark()
        raise


def last_words() -> tuple[str, int]:
    """The sentence about the signal that ended the command, and the exit code."""
    said = _WORDS[_received] + (f"; {_remark}" if _remark else "")
    return f"{said}.", 128 + _received
