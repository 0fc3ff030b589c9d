"""Who may do what, and the headers that keep browsers from being misused."""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from depl.core.errors import ConfigError
from depl.server.tokens import Buckets, Role, Token, matching

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

# As browsers send it: in lower case, without a path, the port only where it is not the usual one.
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:]+\](:\d+)?")
_GUESSES = 10  # wrong tokens from one address before it has to wait
_PAUSE = 60.0  # seconds that it waits, counted from the first of them
_ADDRESSES = 10_000  # that are remembered


class Guesses:
    """Counts wrong tokens by the address they come from."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        since, n = self._wrong.get(address, (0.0, 0))
        left = since + _PAUSE - time.monotonic()
        if left <= 0:
            self._wrong.pop(address, None)
        return left if n >= _GUESSES and left > 0 else 0.0

    def count(self, address: str) -> None:
        """Note that a token from this address was wrong."""
        since, n = self._wrong.pop(address, (time.monotonic(), 0))
        self._wrong[address] = since, n + 1
        if len(self._wrong) > _ADDRESSES:
            self._wrong.popitem(last=False)


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may read and change.

    Parameters
    ----------
    token : str or None
        What a client sends as ``Authorization: Bearer TOKEN`` to change labels or to reload.
    tokens : tuple of Token
        Others, each with a role.
    token_for_all : bool
        Whether reading needs a token as well.
    local_writes : bool
        Whether clients on this machine may change labels without a token, where there is none.
    read_only : bool
        Whether nobody may change labels.
    hosts : tuple of str
        Names under which clients may address the service, besides those of this machine.
    origins : tuple of str
        Other sites, such as https://app.example.org, whose pages may read; with a token they may
        do what the token allows.
    buckets : Buckets or None
        What limits the requests of each token or address.
    """

    token: str | None = None
    tokens: tuple[Token, ...] = ()
    token_for_all: bool = False
    local_writes: bool = False
    read_only: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    buckets: Buckets | None = field(default=None, repr=False, compare=False)
    guesses: Guesses = field(default_factory=Guesses, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.token is not None and (
            not self.token.isascii() or self.token.split() != [self.token]
        ):
            raise ConfigError(
                "A token must be one word of ASCII characters, because it is sent in a header. "
                "`openssl rand -hex 32` makes a good one."
            )
        if self.token_for_all and not self.known:
            raise ConfigError("A token for all requests needs a token. Set DEPL_TOKEN.")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"--cors-origin takes the address of a site without a path, such as "
                    f"https://app.example.org or http://localhost:3000; got {origin[:100]!r}."
                )

    @cached_property
    def known(self) -> tuple[Token, ...]:
        """All tokens; the one without a role may do everything."""
        return (*(() if self.token is None else (Token.of(self.token),)), *self.tokens)

    @property
    def writable(self) -> bool:
        """Whether anybody may change labels."""
        editors = any(token.role >= Role.EDIT for token in self.known)
        return not self.read_only and (editors or self.local_writes)

    def trouble_with_host(self, host: str) -> str | None:
        """What is wrong with the name by which a client addresses the service, if anything.

        A page of another site can have its own name lead to this machine (DNS rebinding); its
        visitor's browser then takes the service for part of that site and lets the page read it.
        Numbers cannot be bent like that, and neither can names that are known.
        """
        if not host:  # no browser leaves it out
            return None
        name = _name_of(host)
        own = {socket.gethostname().lower(), "localhost"}
        if name in own or name in self.hosts or _is_address(name):
            return None
        return (
            f"This service does not answer to the name {name[:100]!r}. If it should, start it with "
            f"--allowed-host and that name."
        )

    def check_read(self, request: Request) -> None:
        """Refuse a request that may not read."""
        if self.token_for_all:
            self._check_token(request, Role.READ)

    def check_feedback(self, request: Request) -> None:
        """Refuse a request that may not give feedback."""
        self._check_change(request, Role.FEEDBACK)

    def check_write(self, request: Request) -> None:
        """Refuse a request that may not change labels."""
        self._check_change(request, Role.EDIT)

    def check_operator(self, request: Request) -> None:
        """Refuse a request that may not reload the run."""
        self._check_changer(request, Role.ADMIN)

    def wait(self, address: str, authorization: str) -> float:
        """Seconds until a client may send its request; it is known by its token or address."""
        if self.buckets is None:
            return 0.0
        token = matching(self.known, _shown(authorization)) if authorization else None
        return self.buckets.wait(f"token {token.digest}" if token else f"address {address}")

    def _check_change(self, request: Request, role: Role) -> None:
        if self.read_only:
            raise HTTPException(403, "This service is read-only.")
        self._check_changer(request, role)

    def _check_origin(self, request: Request) -> None:
        """Refuse what a page of another site made its visitor's browser send."""
        origin = request.headers.get("origin")
        if origin is None:
            return
        if self.known and origin in self.origins:
            return
        host = request.headers.get("host", "")
        if _netloc(origin) != host and _name_of(_netloc(origin)) not in self.hosts:
            raise HTTPException(403, "Pages of other sites may not change anything here.")

    def _check_changer(self, request: Request, role: Role) -> None:
        self._check_origin(request)
        if self.known:
            self._check_token(request, role)
        elif not self.local_writes:
            raise HTTPException(
                403,
                "Labels cannot be changed through this service. To allow it, start the service "
                "with a token (DEPL_TOKEN) or, for clients on the same machine only, with "
                "--allow-writes.",
            )
        elif not _from_this_machine(request):
            raise HTTPException(
                403,
                "Without a token, only pages and programs on the service's own machine may change "
                "labels, under an address such as localhost.",
            )

    def _check_token(self, request: Request, role: Role) -> None:
        address = request.client.host if request.client else ""
        wait = self.guesses.wait(address)
        if wait:
            raise HTTPException(
                429,
                f"There were {_GUESSES} wrong tokens from this address. Try again later.",
                {"Retry-After": str(int(wait) + 1)},
            )
        header = request.headers.get("authorization", "")
        token = matching(self.known, _shown(header)) if header else None
        if token is None:
            if header.partition(" ")[2]:
                self.guesses.count(address)
            raise HTTPException(
                401,
                "A token is needed: send the header 'Authorization: Bearer TOKEN'.",
                {"WWW-Authenticate": "Bearer"},
            )
        request.state.token = token.name
        if token.role < role:
            raise HTTPException(
                403,
                f"The token of {token.name} may {token.role.in_words}, but not {role.in_words}. "
                f"Ask for one with the role {role.name.lower()}.",
            )


def token_name(request: Request) -> str:
    """Whose token the client has sent, once it was checked; empty where there is none."""
    return str(getattr(request.state, "token", ""))


def _shown(authorization: str) -> str:
    """The token in the header; empty, which no token is, under another scheme."""
    scheme, _, shown = authorization.partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else ""


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from its own machine only.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _from_this_machine(request: Request) -> bool:
    """Whether the service is addressed by a name that only its own machine can mean."""
    return is_loopback(_name_of(request.headers.get("host", "")))


def _name_of(host: str) -> str:
    """The name in a Host header, without the port; empty where it makes no sense."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
