"""Feedback over REST: kept before it is acknowledged, once however often it is sent."""

from __future__ import annotations

import shutil

import pytest

from depl.labels.feedback import FeedbackStore
from depl.pipeline.learn import learn
from depl.run.folder import Run
from depl.server.live_model import load
from depl.server.security import Access
from depl.server.tokens import Role, Token

WINE = "Labelling of sparkling wines made from grapes of named vineyards"
TOKEN = {"Authorization": "Bearer t"}


@pytest.fixture
def run(own_run):
    return own_run


@pytest.fixture
def service(connect, run):
    return connect(load(run), access=Access(token="t"))


def wine(key: str = "k1", **more) -> dict:
    decision = {"key": key, "label": "2560", "verdict": "accepted", "probability": 0.75}
    return {"text": WINE, "decisions": [decision | more]}


def test_a_decision_is_kept_listed_and_undone(service, run):
    body = wine() | {"id": "d1", "source": "page", "by": "Ada"}
    answer = service.post("/v1/feedback", json=body, headers=TOKEN)
    assert answer.status_code == 201
    (kept,) = answer.json()["decisions"]
    assert kept["run"] == Run(run).version()
    (entry,) = FeedbackStore(run).history()
    assert {name: getattr(entry, name) for name in kept} == kept
    assert (entry.document, entry.by, entry.probability) == ("d1", "Ada", 0.75)

    assert service.post("/v1/feedback", json=body, headers=TOKEN).json() == answer.json()
    assert FeedbackStore(run).count() == 1
    other = service.post("/v1/feedback", json=wine(verdict="rejected"), headers=TOKEN)
    assert (other.status_code, "another decision" in other.text) == (409, True)

    for _ in range(2):  # undoing is safe to repeat, too
        undone = service.delete("/v1/feedback/1", params={"by": "Bob"}, headers=TOKEN)
        assert undone.status_code == 200
        assert undone.json()["undone_by"] == "Bob"
    assert service.delete("/v1/feedback/2", headers=TOKEN).status_code == 404


def test_a_list_has_pages_by_document_and_by_label(service):
    for i in range(5):
        body = wine(f"k{i}", label=["2560", "17"][i % 2]) | {"id": f"d{i % 2}"}
        assert service.post("/v1/feedback", json=body, headers=TOKEN).status_code == 201

    def listed(**query):
        found = service.get("/v1/feedback", params=query, headers=TOKEN).json()
        return found["total"], [x["number"] for x in found["decisions"]], found["next"]

    assert listed() == (5, [5, 4, 3, 2, 1], None)
    assert listed(limit=2) == (5, [5, 4], 4)
    assert listed(limit=2, before=2) == (5, [1], None)
    assert listed(document="d1") == (2, [4, 2], None)
    assert listed(label="2560") == (3, [5, 3, 1], None)
    assert listed(label="nobody") == (0, [], None)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (wine(label="nope"), 404),
        (wine(verdict="liked"), 422),
        (wine() | {"text": " "}, 422),
        (wine() | {"decisions": []}, 422),
        (wine(key="half \ud800"), 422),
        (wine() | {"decisions": wine()["decisions"] + wine("k2")["decisions"]}, 422),
    ],
)
def test_what_is_wrong_is_refused_and_not_kept(service, run, body, status):
    import json

    headers = TOKEN | {"Content-Type": "application/json"}
    answer = service.post("/v1/feedback", content=json.dumps(body), headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert FeedbackStore(run).count() == 0


def test_feedback_is_for_those_who_may_change_labels(service, connect, model):
    def statuses(client, **headers):
        return [
            client.post("/v1/feedback", json=wine(), headers=headers).status_code,
            client.get("/v1/feedback", headers=headers).status_code,
            client.delete("/v1/feedback/1", headers=headers).status_code,
        ]

    assert statuses(service) == [401, 401, 401]
    assert statuses(connect(model)) == [403, 403, 403]
    assert statuses(connect(model, access=Access(token="t", read_only=True)), **TOKEN) == [403] * 3


def test_a_run_fitted_again_meanwhile_is_not_what_was_decided_about(service, run, tmp_path):
    before = Run(run).version()
    shutil.rmtree(run / "fusion")
    manifest = Run(run).manifest()
    del manifest["stages"]["fusion"]
    Run(run).write_manifest(manifest)
    kept = service.post("/v1/feedback", json=wine(), headers=TOKEN).json()["decisions"][0]
    assert kept["run"] == before != Run(run).version()
    assert service.post("/v1/reload", headers=TOKEN).status_code == 200
    kept = service.post("/v1/feedback", json=wine("k2"), headers=TOKEN).json()["decisions"][0]
    assert kept["run"] == Run(run).version()


def test_what_was_learnt_is_taken_over_by_a_reload_and_given_back(service, run):
    text = "Aid for the keeping of hives by farms on steep slopes"
    body = {"text": text, "decisions": [{"key": "k", "label": "77", "verdict": "added"}]}
    assert service.post("/v1/feedback", json=body, headers=TOKEN).status_code == 201

    def documents() -> int:
        return service.get("/v1/labels/77").json()["training_documents"]

    learn(Run(run))
    assert documents() == 0  # the old state answers until the new one is loaded
    assert service.post("/v1/reload", headers=TOKEN).status_code == 200
    assert documents() == 1
    answer = service.post("/v1/predict", json={"texts": [text], "k": 1}).json()
    assert answer["results"][0]["labels"][0]["id"] == "77"
    Run(run).learned.undo()
    service.post("/v1/reload", headers=TOKEN)
    assert documents() == 0


def test_a_token_of_ones_own_signs_what_one_decides(connect, run):
    tokens = tuple(Token.of(name, Role.FEEDBACK, name) for name in ("anna", "bert"))
    service = connect(load(run), access=Access(tokens=tokens))
    for name in ("anna", "bert"):
        headers = {"Authorization": f"Bearer {name}"}
        kept = service.post("/v1/feedback", json=wine(name), headers=headers).json()["decisions"]
        assert kept[0]["by"] == name
    undone = service.delete("/v1/feedback/1", headers={"Authorization": "Bearer bert"}).json()
    assert (undone["by"], undone["undone_by"]) == ("anna", "bert")
