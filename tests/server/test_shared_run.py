"""Several processes on one run: a service, another one, and the command line."""

from __future__ import annotations

import multiprocessing
import threading
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.corpus import Label
from depl.labels.journal import Journal
from depl.server.live_model import load
from depl.server.security import Access

NEW = {"id": "x-1", "name": "carbon border levy"}


@pytest.fixture
def service(connect, own_run):
    return connect(load(own_run), access=Access(local_writes=True))


def depl_labels(run, *arguments):
    result = CliRunner().invoke(app, ["labels", str(run), *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def names(client):
    answer = client.get("/v1/labels", params={"limit": 100, "sort": "count"}).json()
    return {x["id"]: x["name"] for x in answer["labels"]}


def test_the_command_line_edits_and_the_service_sees_it_at_once(service, own_run, tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"id": "x-1", "name": "carbon border levy"}\n')
    before = names(service)
    depl_labels(own_run, "add", str(tmp_path / "labels.jsonl"))
    assert names(service) == before | {"x-1": "carbon border levy"}
    assert 'depl_labels{run="own"} 13.0' in service.get("/metrics").text
    depl_labels(own_run, "rename", "2560", "vino")
    assert service.get("/v1/labels/2560").json()["name"] == "vino"
    depl_labels(own_run, "undo")
    assert service.get("/v1/labels/2560").json()["name"] == "wine"
    depl_labels(own_run, "undo")
    assert names(service) == before


def test_two_services_see_each_others_edits(service, connect, own_run):
    other = connect(load(own_run), access=Access(local_writes=True))
    assert service.post("/v1/labels", json=NEW).status_code == 201
    assert other.post("/v1/labels", json=NEW).status_code == 409
    assert other.patch("/v1/labels/x-1", json={"name": "levy"}).status_code == 200
    assert service.get("/v1/labels/x-1").json()["name"] == "levy"
    assert other.post("/v1/labels/undo").json()["undone"].startswith("renamed x-1")
    assert service.post("/v1/labels/undo").json()["undone"].startswith("added")
    assert other.get("/v1/labels/x-1").status_code == 404
    assert other.post("/v1/labels/undo").status_code == 409


def hold(run, ready, done) -> None:
    with Journal(run).locked():
        ready.set()
        done.wait(30)


@contextmanager
def holding(run):
    """Another process that holds the journal's lock."""
    context = multiprocessing.get_context("fork")  # a new interpreter takes seconds
    ready, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(run, ready, done))
    process.start()
    try:
        assert ready.wait(30)
        yield process.pid
    finally:
        done.set()
        process.join()


def test_whoever_holds_the_lock_stops_writers_for_a_while_and_readers_never(
    service, own_run, monkeypatch
):
    monkeypatch.setattr("depl.labels.journal.Journal.locked.__defaults__", (0.3,))
    with holding(own_run) as holder:
        answers = []
        writing = threading.Thread(
            target=lambda: answers.append(service.post("/v1/labels", json=NEW))
        )
        writing.start()
        while writing.is_alive():
            assert service.post("/v1/predict", json={"texts": ["wine"]}).status_code == 200
            assert service.get("/v1/labels/2560").status_code == 200
            assert service.get("/readyz").status_code == 200
        (answer,) = answers
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        message = answer.json()["error"]["message"]
        assert f"process {holder}" in message
        assert "Try again when it is done" in message
    assert service.post("/v1/labels", json=NEW).status_code == 201


def test_edits_that_cannot_be_read_leave_the_service_at_work(service, own_run, caplog):
    assert service.post("/v1/labels", json=NEW).status_code == 201
    journal = own_run / "labels" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"nonsense\n")
    assert service.get("/v1/labels/x-1").status_code == 200
    assert service.post("/v1/predict", json={"texts": ["wine"]}).status_code == 200
    assert "journal.jsonl:2 is damaged" in caplog.text
    answer = service.delete("/v1/labels/x-1")
    assert answer.status_code == 500
    assert "journal.jsonl:2 is damaged" in answer.json()["error"]["message"]
    journal.write_bytes(whole)
    assert service.delete("/v1/labels/x-1").status_code == 204


def test_a_journal_that_was_put_back_from_a_copy_is_read_again(service, own_run):
    journal = own_run / "labels" / "journal.jsonl"
    service.post("/v1/labels", json=NEW)
    copy = journal.read_bytes()
    load(own_run).add_labels([Label("x-2", "levy")])
    assert service.get("/v1/labels/x-2").status_code == 200
    journal.write_bytes(copy)  # one entry less: as after a kill between the two files
    assert service.get("/v1/labels/x-2").status_code == 404
    assert service.get("/v1/labels/x-1").status_code == 200
