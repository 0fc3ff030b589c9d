"""The process of ``depl serve``: uvicorn, signals, reloading, and log lines."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from depl.core.errors import DeplError
from depl.server.connections import Connection
from depl.server.live_model import LiveModel
from depl.server.logs import log_event

_GRACE = 30  # seconds that requests get to finish when the service is stopped


def run_app(
    app: FastAPI, listener: socket.socket, tls: tuple[Path, Path | None] | None = None
) -> None:
    """Answer on this socket until SIGTERM or Ctrl-C; SIGHUP reloads the run.

    ``tls`` are certificate and key, to answer by HTTPS.
    """
    asyncio.run(_run(app, listener, tls))


class _JsonLines(logging.Formatter):
    """The service's own lines are JSON already; those of others are converted."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        if record.name == "depl.server":
            return message
        now = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": now, "event": record.name, "message": message})


def log_to_stderr(*, requests: bool) -> None:
    """Log as JSON lines on standard error: warnings, and every request if wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in ("depl", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
    logging.getLogger("depl.server").setLevel(logging.INFO if requests else logging.WARNING)


async def _run(app: FastAPI, listener: socket.socket, tls: tuple[Path, Path | None] | None) -> None:
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        ssl_certfile=certificate,
        ssl_keyfile=key,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    # uvicorn finishes what it has accepted and then raises the signal again. With this handler
    # that second one changes nothing, and a service that was told to stop exits with success.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    reloading = _Reloading(app.state.runs)
    if hasattr(signal, "SIGHUP"):  # not on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloading.begin)
    await uvicorn.Server(config).serve(sockets=[listener])


class _Reloading:
    """Reloads all runs on demand; where that fails, the old one stays in use."""

    def __init__(self, runs: Sequence[LiveModel]) -> None:
        self._runs = runs
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload())
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)

    async def _reload(self) -> None:
        for run in self._runs:
            try:
                seconds = await run.reload()
            except DeplError as error:
                log_event(logging.ERROR, "reload failed", run=run.name, error=str(error))
            else:
                log_event(logging.WARNING, "reloaded", run=run.name, seconds=round(seconds, 3))
