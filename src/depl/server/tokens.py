"""Tokens of people and programs, each with a role; and how many requests each may send.

A file has one line for each token: its role, the name of whoever has it, and the token's SHA-256.
The token itself is nowhere on the disk, so that whoever can read the file cannot use it. A random
token of 256 bits needs no slow hash: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from depl.core.errors import ConfigError

_LINE = re.compile(r"(?P<role>\w+)\s+(?P<name>[\w.@-]{1,100})\s+(?P<digest>[0-9a-fA-F]{64})")
_CLIENTS = 10_000  # that are remembered


class Role(IntEnum):
    """What a token may do; each role includes the ones before it."""

    READ = 1
    FEEDBACK = 2
    EDIT = 3
    ADMIN = 4

    @property
    def in_words(self) -> str:
        """What it allows."""
        return ("read", "give feedback", "edit labels", "reload the run")[self - 1]


class Token(NamedTuple):
    """A token, known by its hash: what it may do, and whose it is."""

    role: Role
    name: str
    digest: str

    @classmethod
    def of(cls, token: str, role: Role = Role.ADMIN, name: str = "token") -> Token:
        """The token with this secret."""
        return cls(role, name, _digest(token))

    @property
    def line(self) -> str:
        """What a file of tokens has for it."""
        return f"{self.role.name.lower()} {self.name} {self.digest}"


def new_token(role: str, name: str) -> tuple[str, Token]:
    """A secret that nobody had before, and the token that a service knows it by."""
    secret = secrets.token_urlsafe(32)
    token = Token.of(secret, _role(role, "--role"), name)
    if _LINE.fullmatch(token.line) is None:
        raise ConfigError(
            f"--name takes letters, digits and . @ _ - without spaces; got {name[:100]!r}."
        )
    return secret, token


def read_tokens(path: Path) -> tuple[Token, ...]:
    """The tokens of a file; blank lines and those after ``#`` are passed over."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(
            f"{path} is no text file. --tokens-file has a line for each token; `depl token --role "
            f"edit --name anna` makes one."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot read tokens from {path}: {error.strerror}.") from error
    tokens: dict[str, Token] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:  # the line is not quoted: somebody may have put a token there
            raise ConfigError(
                f"{path}:{number} is no line of a token. It needs a role, a name and the SHA-256 "
                f"of the token; `depl token --role edit --name anna` makes one."
            )
        role = _role(found["role"], f"{path}:{number}")
        token = Token(role, found["name"], found["digest"].lower())
        if token.digest in tokens:
            raise ConfigError(f"{path}:{number} has the token of a line above it. Remove one.")
        tokens[token.digest] = token
    if not tokens:
        raise ConfigError(f"{path} has no token. `depl token --role edit --name anna` makes one.")
    return tuple(tokens.values())


def matching(tokens: Iterable[Token], shown: str) -> Token | None:
    """The token that was shown; all are compared, in a time that does not tell which is close."""
    digest = _digest(shown)
    found = None
    for token in tokens:
        if hmac.compare_digest(token.digest, digest):
            found = token
    return found


class Buckets:
    """Limits requests by whoever sends them: so many a second, and twice as many at once.

    Parameters
    ----------
    rate : float
        Requests a second, on average.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._full = max(2 * rate, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until this client may send a request; 0, and one is counted, if it may now."""
        now = time.monotonic()
        then, left = self._left.pop(client, (now, self._full))
        left = min(self._full, left + (now - then) * self._rate)
        allowed = left >= 1
        self._left[client] = now, left - 1 if allowed else left
        if len(self._left) > _CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _role(name: str, where: str) -> Role:
    try:
        return Role[name.upper()]
    except KeyError:
        known = ", ".join(role.name.lower() for role in Role)
        raise ConfigError(f"{where}: there is no role {name[:50]!r}. Roles are {known}.") from None
