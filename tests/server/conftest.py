"""The service: without a network, over the network in this process, and as its own process."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


def pytest_collect_file() -> None:
    """Skip this folder as a whole where the service's libraries are not installed."""
    for library in ("fastapi", "uvicorn", "prometheus_client", "httpx"):
        pytest.importorskip(library, reason="the service's tests need the extra depl[serve]")


@pytest.fixture(scope="session")
def model(fitted_run: Path):
    """A loaded run, to be read only."""
    from depl.server.live_model import load

    return load(fitted_run)


@contextmanager
def connecting() -> Iterator[Callable]:
    from starlette.testclient import TestClient

    from depl.server.app import create_app

    with ExitStack() as open_clients:

        def connected(model, **options) -> TestClient:
            app = create_app(model, **options)
            client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
            return open_clients.enter_context(client)

        yield connected


@pytest.fixture
def connect() -> Iterator[Callable]:
    """A function from what ``create_app`` takes to a client of the running application."""
    with connecting() as connected:
        yield connected


@pytest.fixture(scope="session")
def client(model):
    """A client of a service that everybody may read and nobody may change."""
    with connecting() as connected:
        yield connected(model)


@pytest.fixture(scope="session")
def local_client(model, fitted_run: Path):
    """A client that may change labels, but must not: the run is everybody's."""
    from depl.server.security import Access

    with connecting() as connected:
        yield connected(model, run=fitted_run, access=Access(local_writes=True))


@dataclass
class Running:
    """An application behind uvicorn, in a thread of this process."""

    uvicorn: Any
    url: str


@contextmanager
def run_uvicorn(app, **options) -> Iterator[Running]:
    import uvicorn

    from depl.server.listening import listen

    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1, **options)
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until, "the service did not start"
            time.sleep(0.005)
        yield Running(server, url)
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def uvicorn_running() -> Callable:
    """A context manager that runs an application on a free port of this machine."""
    return run_uvicorn


@dataclass
class Served:
    """A running ``depl serve``."""

    process: subprocess.Popen
    url: str

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


@pytest.fixture
def served() -> Callable:
    """A context manager that runs ``depl serve`` with some arguments."""

    @contextmanager
    def running(*arguments: object) -> Iterator[Served]:
        command = [sys.executable, "-m", "depl", "serve", *map(str, arguments), "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                line = process.stderr.readline()
                found = re.search(r"https?://\S+", line)
                assert found, line + process.stderr.read()
                yield Served(process, found[0].rstrip("/"))
            finally:
                process.kill()

    return running
