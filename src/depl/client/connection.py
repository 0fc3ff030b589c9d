"""Requests to the service: sent again while it has no room, and errors in its own words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depl.core.errors import DeplError

if TYPE_CHECKING:
    import httpx

_PATIENCE = 60.0  # seconds that a client waits, all in all, while the service has no room


class ServiceError(DeplError):
    """The service has refused a request, or cannot be reached.

    Parameters
    ----------
    message : str
        What it said.
    status : int
        The status of its answer; 0 where there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """Sends requests with a client of httpx, which has the address and the headers.

    Parameters
    ----------
    http : httpx.Client
        What sends them.
    root : str
        What the addresses of a run begin with.
    """

    def __init__(self, http: httpx.Client, root: str) -> None:
        self.http = http
        self.root = root

    def ask(self, method: str, path: str, **request: Any) -> Any:  # noqa: ANN401
        """The JSON of an answer; None where it is empty."""
        answer = self.checked(method, self.root + path, **request)
        return answer.json() if answer.content else None

    def checked(self, method: str, address: str, **request: Any) -> httpx.Response:  # noqa: ANN401
        """An answer that is no error, when there is room for the request."""
        until = time.monotonic() + _PATIENCE
        while True:
            with self._in_words():
                answer = self.http.request(method, address, **request)
            wait = _wait(answer)
            if wait is None or time.monotonic() + wait > until:
                return _check(answer)
            time.sleep(wait)

    def save(self, path: str, file: Path) -> None:
        """Write the body of an answer to a file."""
        with self._in_words(), self.http.stream("GET", self.root + path) as answer:
            if answer.is_error:
                answer.read()
            _check(answer)
            with file.open("wb") as out:
                for piece in answer.iter_bytes():
                    out.write(piece)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.HTTPError as error:
            raise ServiceError(
                f"There was no answer from {self.http.base_url}: {error or type(error).__name__}. "
                f"Check the address, and that `depl serve` is running."
            ) from error


def _wait(answer: httpx.Response) -> float | None:
    """Seconds after which to try again, if the service has no room for the request now."""
    said = answer.headers.get("retry-after", "")
    return float(said) if answer.status_code in (429, 503) and said.isdigit() else None


def _check(answer: httpx.Response) -> httpx.Response:
    if not answer.is_error:
        return answer
    try:
        message = answer.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = f"The service answered with the status {answer.status_code}."
    raise ServiceError(str(message), answer.status_code)
