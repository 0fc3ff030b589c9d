"""``depl serve``."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import signal
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from depl.cli.console import err
from depl.core.errors import ConfigError, DeplError, MissingExtraError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from depl.server.live_model import LiveModel

_GRACE = 30  # seconds that requests get to finish when the service is told to end
_CONNECTIONS = 1_000  # open at the same time; further ones get 503 at once


def serve(
    run: Path,
    *,
    host: str,
    port: int,
    token: str | None,
    token_file: Path | None,
    token_for_all: bool,
    allow_writes: bool,
    read_only: bool,
    max_batch: int,
    max_wait_ms: float,
    queue: int,
    timeout: float,
    log_requests: bool,
) -> None:
    """Load the run, listen, and answer until SIGTERM or Ctrl-C; SIGHUP reloads the run."""
    if importlib.util.find_spec("uvicorn") is None:
        raise MissingExtraError("uvicorn", "serve", "The service")
    from depl.server.app import create_app
    from depl.server.batching import Batching
    from depl.server.listening import listen
    from depl.server.live_model import load
    from depl.server.security import Access, is_loopback

    token = _token(token, token_file)
    local = is_loopback(host)
    if allow_writes and token is None and not local:
        raise ConfigError(
            f"--allow-writes without a token is for this machine alone, but {host} can be reached "
            f"from others. Set DEPL_TOKEN, or leave --host out."
        )
    access = Access(
        token=token,
        token_for_all=token_for_all,
        local_writes=allow_writes and local,
        read_only=read_only,
    )
    batching = Batching(
        max_batch=max_batch, max_wait=max_wait_ms / 1000, queue=queue, timeout=timeout
    )
    _log_to_stderr(logging.INFO if log_requests else logging.WARNING)
    with listen(host, port) as listener:  # before loading, which takes longer to fail
        model = load(run)
        app = create_app(model, run=run, access=access, batching=batching)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        there = len(model.labels) - len(model.removed)
        err.print(f"{escape(model.name)}: {there:,} labels at {address}/")
        if not local and token is None:
            err.print(
                "[yellow]Warning:[/] everybody who can reach this machine can use the service. "
                "DEPL_TOKEN and --token-for-all ask for a token."
            )
        asyncio.run(_run(app, listener))


def _token(token: str | None, file: Path | None) -> str | None:
    if file is None:
        return token
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the token from {file}: {error}.") from error


class _JsonLines(logging.Formatter):
    """The service's own lines are JSON already; those of others become it."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        if record.name == "depl.server":
            return message
        now = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": now, "event": record.name, "message": message})


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in ("depl", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
    logging.getLogger("depl.server").setLevel(level)


async def _run(app: FastAPI, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )
    # uvicorn finishes what it has accepted and then raises the signal again. With this handler
    # that second one changes nothing, and a service that was asked to end has ended well.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    reloading = _Reloading(app.state.live_model)
    if hasattr(signal, "SIGHUP"):  # not on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloading.begin)
    await uvicorn.Server(config).serve(sockets=[listener])


class _Reloading:
    """Reloads the run when told to; if that fails, the old model keeps answering."""

    def __init__(self, model: LiveModel) -> None:
        self._model = model
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload())
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)

    async def _reload(self) -> None:
        from depl.server.logs import log_event

        try:
            seconds = await self._model.reload()
        except DeplError as error:
            log_event(logging.ERROR, "reload failed", error=str(error))
        else:
            log_event(logging.WARNING, "reloaded", seconds=round(seconds, 3))
