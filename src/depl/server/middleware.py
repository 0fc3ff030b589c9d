"""Around every request: limits on its body, security headers, metrics and the log."""

from __future__ import annotations

import asyncio
import logging
import time

from fastapi import HTTPException
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from depl.server.logs import log, log_event
from depl.server.metrics import Metrics
from depl.server.problems import problem
from depl.server.security import HEADERS, Access

MAX_BODY = 16 * 2**20  # bytes
MAX_UPLOAD = 256 * 2**20  # of a file to label in the background

_METHODS = {"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"}
_HEALTH = {"/healthz", "/readyz"}
_TOO_MANY = "There were too many requests in a short time. Wait as long as Retry-After says."
_TIMES_SLOWER = 10  # a file may take so many times as long to arrive as another request


class Middleware:
    """Limits, measures and logs the requests to an ASGI application.

    Parameters
    ----------
    app : ASGI application
        The application inside.
    metrics : Metrics
        Where requests are counted.
    timeout : float
        Seconds a client may take to send a request.
    access : Access
        By which names the service may be addressed, and how often.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, timeout: float, access: Access) -> None:
        self.app = app
        self.access = access
        self.metrics = metrics
        self.timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            strange = self.access.trouble_with_host(_header(scope, b"host"))
            wait = self._wait(scope)
            if strange is not None:
                await problem(421, strange)(scope, receive, send_with_headers)
            elif wait:
                seconds = {"Retry-After": str(int(wait) + 1)}
                await problem(429, _TOO_MANY, seconds)(scope, receive, send_with_headers)
            elif _announced_size(scope) > _limit(scope):
                await problem(413, _too_large(scope))(scope, receive, send_with_headers)
            else:
                await self.app(scope, self._limited(scope, receive), send_with_headers)
        except Exception as error:
            log_event(logging.ERROR, "failure", path=scope["path"], error=repr(error))
            log.debug("traceback", exc_info=error)
            if status:  # the answer has begun; breaking the connection is all that is left
                raise
            message = "Something went wrong in the service; its log has the details."
            await problem(500, message)(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, time.perf_counter() - start)

    def _wait(self, scope: Scope) -> float:
        """Seconds until the client may send this request; who asks for health never waits."""
        if scope["path"] in _HEALTH:
            return 0.0
        client = scope.get("client")
        return self.access.wait(client[0] if client else "", _header(scope, b"authorization"))

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        timeout = self.timeout * (_TIMES_SLOWER if _is_upload(scope) else 1)
        size, whole, until = 0, False, time.monotonic() + timeout

        async def limited() -> Message:
            nonlocal size, whole
            if whole:  # after the body, the only message is that the client has disconnected
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), until - time.monotonic())
            except TimeoutError:
                raise HTTPException(
                    408, f"The request had not arrived in full after {timeout:g} s."
                ) from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > _limit(scope):
                raise HTTPException(413, _too_large(scope))
            return message

        return limited

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        # The route, not the path: label ids in paths would make endless series.
        route = getattr(scope.get("route"), "path", "other")
        if scope["path"].startswith("/v1/") and route != "other":
            route = f"/v1{route}"  # the same for all runs
        self.metrics.request_done(method, route, status, seconds)
        if log.isEnabledFor(logging.INFO):
            client = scope.get("client")
            log_event(
                logging.INFO,
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(1000 * seconds, 1),
                client=client[0] if client else None,
                token=scope.get("state", {}).get("token"),
            )


def _is_upload(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "POST" and path.endswith("/jobs")


def _limit(scope: Scope) -> int:
    return MAX_UPLOAD if _is_upload(scope) else MAX_BODY


def _too_large(scope: Scope) -> str:
    remedy = "Divide the file" if _is_upload(scope) else "Send fewer or shorter texts at a time"
    return f"The request is larger than {_limit(scope) // 2**20} MiB. {remedy}."


def _announced_size(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _header(scope: Scope, wanted: bytes) -> str:
    return next((v.decode("latin-1") for name, v in scope["headers"] if name == wanted), "")
