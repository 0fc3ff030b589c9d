"""Several runs in one service."""

from __future__ import annotations

import shutil
import sys

import httpx
import pytest

from depl import Client
from depl.cli.app import main
from depl.client import ServiceError
from depl.server.live_model import load
from depl.server.security import Access


@pytest.fixture
def http(connect, fitted_run, own_run):
    """Two runs, of which the second has a label of its own."""
    models = {"law": load(fitted_run), "own": load(own_run)}
    client = connect(models, access=Access(local_writes=True))
    added = Client.over(client, run="own").add_label("x-1", "grape must")
    assert added.name == "grape must"
    return client


def test_each_run_answers_under_its_name_and_the_first_without(http):
    first, law, own = (Client.over(http, run=name) for name in (None, "law", "own"))
    assert first.runs() == ["law", "own"]
    assert [len(list(x.labels())) for x in (first, law, own)] == [12, 12, 13]
    assert own.label("x-1").name == "grape must"
    with pytest.raises(ServiceError, match="no label"):
        first.label("x-1")
    texts = ["Distillation of grape must", "Customs duties on cod"]
    assert first.predict(texts) == law.predict(texts)
    assert "x-1" in [x.id for x in own.predict(texts, 3)[0]]
    assert own.reload() == 13
    assert http.get("/v1/runs/nope/info").status_code == 404
    entries = http.get("/v1/runs").json()["runs"]
    assert [x["path"] for x in entries] == ["/v1/runs/law", "/v1/runs/own"]
    assert [x["labels"] for x in entries] == [12, 13]


def test_metrics_are_counted_for_each_run(http):
    Client.over(http, run="own").predict(["wine", "cod"])
    text = http.get("/metrics").text
    assert 'depl_documents_total{run="own"} 2.0' in text
    assert 'depl_documents_total{run="law"} 0.0' in text
    assert 'depl_labels{run="own"} 13.0' in text
    assert 'route="/v1/predict"' in text


def test_the_page_is_there_for_each_run(http):
    whole = http.get("/").text
    assert http.get("/runs/own/").text == whole
    assert http.get("/runs/own/page.js").status_code == 200
    assert http.get("/runs/nope/").status_code == 404


def test_openapi_has_every_address_once(http):
    description = http.get("/openapi.json").json()
    assert "/v1/predict" in description["paths"]
    assert not any("runs/" in path for path in description["paths"])
    assert "/v1/runs/NAME" in description["info"]["description"]


def test_names_come_from_the_command_line_or_from_the_folder(fitted_run, own_run, served, tmp_path):
    odd = shutil.copytree(fitted_run, tmp_path / "a=b c")  # and no run "b c" called a
    with served(f"law={fitted_run}", own_run, odd) as service, httpx.Client() as http:
        answer = http.get(f"{service.url.partition('/runs')[0]}/v1/runs").json()
        assert [x["name"] for x in answer["runs"]] == ["law", "own", "a-b-c"]


@pytest.mark.usefixtures("logs_restored")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a={run}", "a={run}"], "Two runs are called a"),
        (["{run}", "{run}"], "Two runs are called"),
        (["a b={run}"], "letters, digits"),
        (["={run}"], "letters, digits"),
        (["a/b={run}"], "letters, digits"),
        (["law={run}-there-is-none"], "no run folder"),
    ],
)
def test_names_that_cannot_be_are_refused(fitted_run, monkeypatch, capsys, arguments, message):
    given = [x.format(run=fitted_run) for x in arguments]
    monkeypatch.setattr(sys, "argv", ["depl", "serve", *given, "--port", "0"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
