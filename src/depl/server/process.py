"""The process of ``depl serve``: uvicorn, signals, reloading, and log lines."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from depl.core.errors import DeplError
from depl.server.connections import Connection, Server
from depl.server.live_model import LiveModel
from depl.server.logs import log_event

GRACE = 30  # seconds that requests get to finish when the service is stopped


def run_app(
    app: FastAPI,
    listener: socket.socket,
    tls: tuple[Path, Path | None] | None,
    begin: Callable[[FastAPI], None],
) -> None:
    """Answer on this socket until SIGTERM or Ctrl-C.

    Parameters
    ----------
    app : FastAPI
        What answers.
    listener : socket
        Listening.
    tls : tuple of Path and (Path or None), or None
        Certificate and key, to answer by HTTPS.
    begin : function
        Called in the event loop before the first request is accepted.
    """
    asyncio.run(_run(app, listener, tls, begin))


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


async def _run(
    app: FastAPI,
    listener: socket.socket,
    tls: tuple[Path, Path | None] | None,
    begin: Callable[[FastAPI], None],
) -> None:
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
        timeout_graceful_shutdown=GRACE,
    )
    server = Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    # uvicorn finishes what it has accepted and then raises the signal again. With this handler
    # that second one changes nothing, and a service that was told to stop exits with success. It
    # also stops a service that has not yet begun.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    begin(app)
    await server.serve(sockets=[listener])


def reload_on_hangup(app: FastAPI) -> None:
    """Let SIGHUP reload the runs; called in the event loop."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[Any]]()

    def reload() -> None:
        task = loop.create_task(reload_runs(app.state.runs))
        tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(tasks.discard)

    if hasattr(signal, "SIGHUP"):  # not on Windows
        loop.add_signal_handler(signal.SIGHUP, reload)


async def reload_runs(runs: Iterable[LiveModel]) -> tuple[float, str | None]:
    """Reload runs; where that fails, the old one stays in use. Seconds, and what went wrong."""
    taken, trouble = 0.0, None
    for run in runs:
        try:
            seconds = await run.reload()
        except DeplError as error:
            trouble = str(error)
            log_event(logging.ERROR, "reload failed", run=run.name, error=trouble)
        else:
            taken += seconds
            log_event(logging.WARNING, "reloaded", run=run.name, seconds=round(seconds, 3))
    return taken, trouble
