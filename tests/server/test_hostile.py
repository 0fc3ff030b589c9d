"""Whatever comes in, the answer is a status below 500 and a message that says what is wrong."""

from __future__ import annotations

import asyncio

import pytest
from benchmarks.fuzz_requests import trial

from depl.model.classifier import Classifier
from depl.server.middleware import MAX_BODY
from depl.server.schemas import MAX_CHARACTERS, MAX_LABELS, MAX_TEXTS
from depl.server.security import Access

JSON = {"content-type": "application/json"}

BODIES = {
    "nothing": b"",
    "no JSON": b"{texts",
    "half a JSON": b'{"texts": ["a',
    "not UTF-8": b'{"texts": ["\xff\xfe"]}',
    "another type": b"[1, 2]",
    "null": b"null",
    "a number": b"17",
    "nested without end": b"[" * 100_000,
    "a number without end": b'{"texts": ["a"], "k": ' + b"9" * 10_000 + b"}",
    "texts missing": b"{}",
    "one text, no list": b'{"texts": "a"}',
    "no texts": b'{"texts": []}',
    "an empty text": b'{"texts": ["a", ""]}',
    "a blank text": b'{"texts": [" \\n\\t "]}',
    "a text that is a number": b'{"texts": [1]}',
    "a text that is null": b'{"texts": [null]}',
    "half a surrogate pair": b'{"texts": ["a \\ud800 b"]}',
    "k is zero": b'{"texts": ["a"], "k": 0}',
    "k is huge": b'{"texts": ["a"], "k": 1000000000000000000000}',
    "k is a text": b'{"texts": ["a"], "k": "5"}',
    "k is half": b'{"texts": ["a"], "k": 1.5}',
    "k is true": b'{"texts": ["a"], "k": true}',
    "threshold is no number": b'{"texts": ["a"], "threshold": NaN}',
    "threshold is infinite": b'{"texts": ["a"], "threshold": 1e999}',
    "no such band": b'{"texts": ["a"], "band": "5-6"}',
    "a field too many": b'{"texts": ["a"], "top": 3}',
}


@pytest.mark.parametrize("what", BODIES)
def test_bad_bodies_are_refused_with_a_message(client, what):
    answer = client.post("/v1/predict", content=BODIES[what], headers=JSON)
    assert answer.status_code in (400, 422), answer.text
    assert len(answer.json()["error"]["message"]) > 10


@pytest.mark.parametrize(
    "text",
    [
        "a\x00b",
        "\x00",
        "\u202e\u200d",
        "�",
        "😀" * 50,
        "\r\n.\r\n",
        "wine" * 10_000,
        "'; DROP TABLE",
    ],
)
def test_odd_texts_are_texts(client, text):
    answer = client.post("/v1/predict", json={"texts": [text], "k": MAX_LABELS})
    assert answer.status_code == 200
    assert len(answer.json()["results"]) == 1
    assert client.post("/v1/explain", json={"text": text, "label": "2560"}).status_code == 200


def test_the_message_names_the_place(client):
    def message(body: bytes, **headers: str) -> str:
        answer = client.post("/v1/predict", content=body, headers=JSON | headers)
        return answer.json()["error"]["message"]

    assert message(BODIES["an empty text"]) == "texts.1 must not be empty."
    assert "texts.0 must contain readable text" in message(BODIES["a blank text"])
    assert message(BODIES["texts missing"]) == "texts is missing."
    assert message(BODIES["k is zero"]) == "k must be at least 1."
    assert message(BODIES["k is half"]) == "k must be a whole number."
    assert message(BODIES["no such band"]) == "band must be '0', '1-9', '10-99' or '100+'."
    assert message(BODIES["a field too many"]) == "top is not a known field."
    assert message(BODIES["another type"]) == "The request must be a JSON object."
    assert message(BODIES["k is huge"]) == "k must be at most 100."
    assert "texts.0: " in message(BODIES["half a surrogate pair"])  # in pydantic's own words
    assert "not valid JSON" in message(BODIES["no JSON"])
    assert "application/json" in message(b"{}", **{"content-type": "text/plain"})
    assert len(message(b'{"texts": ["a"], "%s": 1}' % (b"x" * 50_000))) <= 2_000


def test_changed_requests_are_answered_or_refused(own_run):
    counts, failures = asyncio.run(trial(range(700), 1, own_run))
    assert failures == []
    assert counts["JSON", 2] > 50  # and not everything is refused
    assert counts["JSON", 4] > 50


def test_sizes_are_limited(client):
    too_many = client.post("/v1/predict", json={"texts": ["a"] * (MAX_TEXTS + 1)})
    assert too_many.status_code == 422
    assert str(MAX_TEXTS) in too_many.json()["error"]["message"]
    too_long = client.post("/v1/predict", json={"texts": ["a" * (MAX_CHARACTERS + 1)]})
    assert too_long.status_code == 422
    assert str(MAX_CHARACTERS) in too_long.json()["error"]["message"]
    assert client.post("/v1/predict", json={"texts": ["a"] * MAX_TEXTS}).status_code == 200


def test_a_body_that_says_it_is_too_large_is_not_read(client):
    answer = client.post("/v1/predict", content=b"x" * (MAX_BODY + 1), headers=JSON)
    assert answer.status_code == 413
    assert "16 MiB" in answer.json()["error"]["message"]


def test_a_body_that_does_not_say_its_size_is_cut_off(client):
    def chunks():
        for _ in range(20):
            yield b" " * 2**20

    answer = client.post("/v1/predict", content=chunks(), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "path", ["/v1/labels/nope", "/v1/labels/", "/v1/labels/%00", "/v1/labels/%ED%A0%80", "/..%2f"]
)
def test_unknown_labels_and_pages_are_404(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "query",
    [
        "band=5",
        "sort=size",
        "limit=0",
        "limit=100000",
        "offset=-1",
        "offset=x",
        "search=" + "a" * 999,
    ],
)
def test_bad_queries_are_refused(client, query):
    answer = client.get(f"/v1/labels?{query}")
    assert answer.status_code == 422
    assert query.split("=")[0] in answer.json()["error"]["message"]


@pytest.mark.parametrize("query", ["search=%00", "search=%FF", "offset=999999999", "search=%F0%9F"])
def test_odd_queries_find_nothing(client, query):
    assert client.get(f"/v1/labels?{query}").json()["labels"] == []


def test_explaining_an_unknown_label_is_404(client):
    answer = client.post("/v1/explain", json={"text": "a", "label": "nope"})
    assert answer.status_code == 404
    assert "'nope'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "no id"},
        {"id": "", "name": "a"},
        {"id": "a", "name": " "},
        {"id": "a\nb", "name": "a"},
        {"id": "a", "name": "a\x00b"},
        {"id": "a", "name": "a", "alt_names": "b"},
        {"id": "a", "name": "a", "examples": [""]},
        {"id": "a", "name": "a" * 1000},
        {"id": "a", "name": "a", "description": "\u2003"},
        {"id": 5, "name": "a"},
    ],
)
def test_bad_labels_are_refused_before_anything_changes(local_client, body):
    answer = local_client.post("/v1/labels", json=body)
    assert answer.status_code == 422
    assert local_client.get("/v1/info").json()["labels"] == 12


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"title": "a"}, {"name": None}])
def test_bad_changes_are_refused(local_client, body):
    assert local_client.patch("/v1/labels/2560", json=body).status_code == 422


def test_a_failure_inside_is_a_500_without_details(connect, model, monkeypatch):
    def fails(model, asked):
        raise ZeroDivisionError("inner secrets")

    monkeypatch.setattr("depl.server.live_model.suggest", fails)
    answer = connect(model).post("/v1/predict", json={"texts": ["a"]})
    assert answer.status_code == 500
    assert "secrets" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_changing_a_model_that_has_no_folder_is_refused(connect, model):
    alone = Classifier(model.state, n_train=model.n_train, fusion=model.fusion, name="in memory")
    client = connect(alone, access=Access(token="t"))
    assert client.get("/v1/runs").json()["runs"][0]["name"] == "in-memory"
    assert client.post("/v1/jobs", content=b"text\nwine\n").status_code == 404
    answer = client.post("/v1/reload", headers={"Authorization": "Bearer t"})
    assert answer.status_code == 500
    assert "no run folder" in answer.json()["error"]["message"]


def test_a_client_that_is_gone_is_no_failure_of_the_service():
    from fastapi import HTTPException, Request

    from depl.server.problems import CLIENT_GONE, as_problem

    request = Request({"type": "http", "path": "/v1/predict"})
    answer = as_problem(request, HTTPException(CLIENT_GONE, "The client closed the connection."))
    assert answer.status_code == CLIENT_GONE
