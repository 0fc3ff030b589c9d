"""Who may do what, and the headers that keep browsers from being misused."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from depl.core.errors import ConfigError

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


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may read and change.

    Parameters
    ----------
    token : str or None
        What a client sends as ``Authorization: Bearer TOKEN`` to change labels or to reload.
    token_for_all : bool
        Whether reading needs the token as well.
    local_writes : bool
        Whether clients on this machine may change labels without a token, where there is none.
    read_only : bool
        Whether nobody may change labels.
    """

    token: str | None = None
    token_for_all: bool = False
    local_writes: bool = False
    read_only: bool = False

    def __post_init__(self) -> None:
        if self.token is not None and (
            not self.token.isascii() or self.token.split() != [self.token]
        ):
            raise ConfigError(
                "A token must be one word of ASCII characters, because it is sent in a header. "
                "`openssl rand -hex 32` makes a good one."
            )
        if self.token_for_all and self.token is None:
            raise ConfigError("A token for all requests needs a token. Set DEPL_TOKEN.")

    @property
    def writable(self) -> bool:
        """Whether anybody may change labels."""
        return not self.read_only and (self.token is not None or self.local_writes)

    def check_read(self, request: Request) -> None:
        """Refuse a request that may not read."""
        if self.token_for_all:
            self._check_token(request)

    def check_write(self, request: Request) -> None:
        """Refuse a request that may not change labels."""
        if self.read_only:
            raise HTTPException(403, "This service is read-only.")
        self.check_operator(request)

    def check_operator(self, request: Request) -> None:
        """Refuse a request that may not reload the run."""
        if self.token is not None:
            self._check_token(request)
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

    def _check_token(self, request: Request) -> None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        token = (self.token or "").encode()
        # In a time that does not depend on where the two differ.
        same = hmac.compare_digest(shown.strip().encode("utf-8", "replace"), token)
        if scheme.lower() != "bearer" or not same:
            raise HTTPException(
                401,
                "A token is needed: send the header 'Authorization: Bearer TOKEN'.",
                {"WWW-Authenticate": "Bearer"},
            )


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
    """Whether the request comes neither from another site's page nor through a foreign host name.

    A web page can make a visitor's browser send requests to the visitor's own machine, but it
    cannot hide its origin.
    """
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    try:
        name = urlsplit(f"//{host}").hostname or ""
        foreign = origin is not None and urlsplit(origin).netloc != host
    except ValueError:
        return False
    return is_loopback(name) and not foreign
