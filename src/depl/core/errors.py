"""Every error that depl raises on purpose.

The tree::

    DeplError
    ├── CorpusError        files that cannot be read, or have invalid contents
    ├── ConfigError        an unknown setting, a wrong value, or two that contradict each other
    ├── RunError           a run folder that is missing, damaged or of another kind
    │   └── BusyError      one that another process is writing to
    ├── NotFittedError     something was used before ``fit``
    └── MissingExtraError  an optional library is needed and not installed

A message says what is wrong, what was given, and what to do next. The command line prints it and
exits with code 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 2_000  # characters of a message; whoever reads it sees a screen of it
_BEGINNING = 1_400


class DeplError(Exception):
    """Base class of all errors raised on purpose.

    A message that quotes its input at length loses its middle: the beginning says what is wrong,
    the end what to do.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(without_middle(message))


def without_middle(message: str) -> str:
    """A message of at most 2,000 characters: a longer one loses its middle."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[:_BEGINNING]} … {message[-(_LONGEST - _BEGINNING - 3) :]}"


class CorpusError(DeplError):
    """Input files cannot be read, or have invalid contents."""


class ConfigError(DeplError):
    """A setting is unknown, has a wrong value, or contradicts another one."""


class RunError(DeplError):
    """A run folder is missing, damaged, read-only, or not what was asked for."""


class BusyError(RunError):
    """Another process is writing to a run folder."""


class NotFittedError(DeplError):
    """A fitted object was used before ``fit``."""

    def __init__(self, thing: object) -> None:
        name = type(thing).__name__
        super().__init__(f"This {name} is not fitted yet. Call fit() or load() first.")


class MissingExtraError(DeplError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the library {library!r}, which is not installed. "
            f"Install it with: pip install 'depl[{extra}]'"
        )


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into a message that says so."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"Cannot write to {path}: {error.strerror or error}. Nothing finished is lost: "
            f"free some space or fix the permissions and give the same command again."
        ) from error
