"""The service: without a network, over the network in this process, and as its own process."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.quick_python import Quick


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
        yield connected(model, access=Access(local_writes=True))


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


@pytest.fixture
def logs_restored() -> Iterator[None]:
    """Takes back what ``depl serve`` in this process does to the logs: they would outlive it."""
    loggers = [logging.getLogger(name) for name in ("depl", "depl.server", "uvicorn")]
    before = [(x.handlers[:], x.level, x.propagate) for x in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


@dataclass
class Served:
    """A running ``depl serve``."""

    process: Quick
    url: str

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


@pytest.fixture
def served(quick_python: Callable) -> Callable:
    """A context manager that runs ``depl serve`` with some arguments."""

    @contextmanager
    def running(*arguments: object) -> Iterator[Served]:
        command = ("-m", "depl", "serve", *arguments, "--port", "0")
        with quick_python(*command, stderr=subprocess.PIPE) as process:
            try:
                line = process.stderr.readline()
                found = re.search(r"https?://\S+", line)
                assert found, line + process.stderr.read()
                yield Served(process, found[0].rstrip("/"))
            finally:
                process.kill()

    return running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for the pages of a file: its event loop must not be that of other tests."""
    sync_api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def serving(uvicorn_running: Callable, browser: Any) -> Callable:
    """A context manager that serves a run, or several by name; gives the address of the page."""
    from depl.model.classifier import Classifier
    from depl.server.app import create_app

    @contextmanager
    def running(run: Path | dict[str, Path], access: Any) -> Iterator[str]:
        if isinstance(run, dict):
            model: Any = {name: Classifier.load(path) for name, path in run.items()}
        else:
            model = Classifier.load(run)
        app = create_app(model, access=access)
        with uvicorn_running(app) as server:
            yield f"{server.url}/"
            # A page may still be asking, and would complain that nobody answers.
            for context in browser.contexts:
                for page in context.pages:
                    if page.url.startswith(server.url):
                        page.goto("about:blank")

    return running


VIEWPORT = {"viewport": {"width": 1280, "height": 800}}

# The page keeps what is open for the next visit; the next test begins with nothing.
FORGET = """() => new Promise((done) => {
  sessionStorage.clear();
  const opened = indexedDB.open("depl");
  opened.onupgradeneeded = () => opened.result.createObjectStore("drafts");
  opened.onsuccess = () => {
    const clearing = opened.result.transaction("drafts", "readwrite");
    clearing.objectStore("drafts").clear();
    clearing.oncomplete = () => { opened.result.close(); done(); };
  };
})"""


def answers(url: str) -> bool:
    """Whether a service is still running."""
    import httpx

    try:
        return httpx.get(f"{url}healthz").is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """One tab for all pages that need no other settings; a new one for each would cost more."""
    context = browser.new_context(**VIEWPORT)
    yield context.new_page()
    context.close()


@pytest.fixture
def visit(browser: Any, tab: Any) -> Iterator[Callable]:
    """Opens pages, in a context of their own where they need options; none may complain."""
    contexts: list[Any] = []
    watched: list[tuple[Any, str, Callable]] = []
    complaints: list[str] = []
    in_tab: list[str] = []

    def open_page(url: str, *, expected: tuple[str, ...] = (), **options: object) -> Any:
        def listen(said) -> None:
            if said.type in ("error", "warning") and not any(x in said.text for x in expected):
                complaints.append(f"{said.text} {said.location}")

        page = tab
        if options:
            contexts.append(browser.new_context(**{**VIEWPORT, **options}))
            page = contexts[-1].new_page()
        elif url.startswith("http"):
            in_tab.append(url.partition("#")[0])
        page.set_default_timeout(8000)
        watched.append((page, "console", listen))
        watched.append((page, "pageerror", lambda error: complaints.append(str(error))))
        for _, event, listener in watched[-2:]:
            page.on(event, listener)
        page.goto(url)
        return page

    yield open_page
    tab.unroute_all()
    tab.goto("about:blank")
    for watched_page, event, listener in watched:
        watched_page.remove_listener(event, listener)
    if in_tab and answers(in_tab[0]):  # and otherwise nobody comes back to it
        tab.goto(f"{in_tab[0]}icon.svg")
        tab.evaluate(FORGET)
        tab.goto("about:blank")
    tab.context.clear_permissions()
    for context in contexts:
        context.close()
    assert complaints == []
