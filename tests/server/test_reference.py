"""The reference of the API, and the page of one of several runs, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from depl.server.app import create_app


@pytest.fixture
def watched(browser) -> Any:
    """A context manager: a page, the addresses that it asks for, and what it complains about."""

    @contextmanager
    def opened(url: str) -> Iterator[tuple[Any, list[str], list[str]]]:
        context = browser.new_context()
        page, asked, complaints = context.new_page(), [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else 0)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_default_timeout(20_000)
        page.goto(url)
        yield page, asked, complaints
        context.close()

    return opened


def test_the_reference_is_drawn_without_anything_from_elsewhere(model, uvicorn_running, watched):
    with (
        uvicorn_running(create_app(model)) as server,
        watched(f"{server.url}/docs") as (page, asked, complaints),
    ):
        page.get_by_text("Predict", exact=True).first.click()
        page.get_by_text("Suggest labels for texts").first.wait_for()
        assert complaints == []
        assert {url.split("/")[2] for url in asked} == {server.url.removeprefix("http://")}


def test_the_page_of_a_run_asks_that_run(model, uvicorn_running, watched):
    with (
        uvicorn_running(create_app({"law": model, "other": model})) as server,
        watched(f"{server.url}/runs/other/") as (page, asked, complaints),
    ):
        page.get_by_role("textbox").first.wait_for()
        page.wait_for_load_state("networkidle")
        # Which runs there are is a question to the service.
        of_the_api = [url for url in asked if "/v1/" in url and not url.endswith("/v1/runs")]
        assert of_the_api
        assert all("/v1/runs/other/" in url for url in of_the_api)
        assert complaints == []
