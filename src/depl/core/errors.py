"""Every error that depl raises on purpose.

The tree::

    DeplError
    ├── CorpusError        files that cannot be read, or hold what they should not
    ├── ConfigError        an unknown setting, or a value that is out of range
    ├── RunError           a run folder that is missing, damaged or of another kind
    ├── NotFittedError     a fitted thing was used before ``fit``
    └── MissingExtraError  an optional library is needed and not installed

A message says what is wrong, what was got, and what to do next. The command line prints it and
leaves with exit code 2; nothing below the edges catches it.
"""

from __future__ import annotations


class DeplError(Exception):
    """Base class of all errors raised on purpose."""


class CorpusError(DeplError):
    """Input files cannot be read, or hold what they should not."""


class ConfigError(DeplError):
    """A setting is unknown, or its value is out of range."""


class RunError(DeplError):
    """A run folder is missing, damaged, read-only, or not what was asked for."""


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
