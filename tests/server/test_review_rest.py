"""Reviewing over REST: the queue, what a visitor may do, tables, the hierarchy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.server.app import create_app  # noqa: F401 - skips this file where it cannot be imported
from depl.server.security import Access
from depl.server.tokens import Role, Token

TEXTS = (
    "Customs duty on sparkling wine from vineyards",
    "Catch quotas for cod and herring",
    "Hives of bees and honey",
)


@pytest.fixture
def reviewers(connect: Callable, own_run: Path):
    """A service for two reviewers and a reader, as headers by name."""
    tokens = {"anna": Role.FEEDBACK, "ben": Role.FEEDBACK, "rita": Role.READ}
    known = tuple(Token.of(name * 8, role, name) for name, role in tokens.items())
    client = connect(Classifier.load(own_run), access=Access(tokens=known))
    return client, {name: {"Authorization": f"Bearer {name * 8}"} for name in tokens}


def test_two_reviewers_get_different_documents_and_see_each_others_progress(reviewers) -> None:
    client, headers = reviewers
    anna, ben = headers["anna"], headers["ben"]
    body = {"documents": [{"text": text, "id": f"d{i}"} for i, text in enumerate(TEXTS)]}
    added = client.post("/v1/review/documents", json=body, headers=anna)
    assert added.status_code == 201
    assert added.json()["added"] == 3
    assert client.post("/v1/review/documents", json=body, headers=anna).json()["added"] == 0

    first = client.post("/v1/review/next", headers=anna).json()
    assert first["progress"] == {
        "total": 3, "done": 0, "skipped": 0, "left": 3, "by": [], "you": "anna",
    }  # fmt: skip
    again = client.post("/v1/review/next", headers=anna).json()
    assert again["document"]["number"] == first["document"]["number"]
    assert again["document"]["looking"] == ""  # nobody else
    other = client.post("/v1/review/next", headers=ben).json()["document"]
    assert other["number"] != first["document"]["number"]
    assert all(0.05 <= reason["probability"] <= 0.95 for reason in other["reasons"])
    shown = client.get(f"/v1/review/{other['number']}", headers=anna).json()
    assert shown["looking"] == "ben"
    assert shown["text"] == TEXTS[int(other["id"][1:])]

    for document, who, state in ((first["document"], anna, "done"), (other, ben, "skipped")):
        address = f"/v1/review/{document['number']}"
        assert client.post(address, json={"state": state}, headers=who).status_code == 200
    progress = client.get("/v1/review", headers=ben).json()
    assert (progress["done"], progress["skipped"], progress["left"]) == (1, 1, 1)
    assert progress["by"] == [{"name": "anna", "done": 1}]
    last = client.post("/v1/review/next", headers=ben).json()["document"]
    client.post(f"/v1/review/{last['number']}", json={"state": "done"}, headers=ben)
    assert client.post("/v1/review/next", headers=ben).json()["document"] is None


def test_only_those_who_may_give_feedback_review(reviewers) -> None:
    client, headers = reviewers
    assert client.get("/v1/review").status_code == 401
    assert client.get("/v1/review", headers=headers["rita"]).status_code == 403
    missing = client.get("/v1/review/7", headers=headers["anna"])
    assert missing.status_code == 404
    assert "no document 7" in missing.json()["error"]["message"]


def test_a_visitor_learns_what_they_may_do(reviewers, connect: Callable, own_run: Path) -> None:
    client, headers = reviewers
    assert client.get("/v1/visitor").json() == {
        "name": "", "feedback": "token", "edit": "token", "why_not": "", "undo": None,
    }  # fmt: skip
    anna = client.get("/v1/visitor", headers=headers["anna"]).json()
    assert (anna["name"], anna["feedback"], anna["edit"], anna["why_not"]) == (
        "anna", "yes", "no", "role",
    )  # fmt: skip
    model = Classifier.load(own_run)
    model.rename_label("77", "apiculture")
    for access, feedback, why_not in (
        (Access(), "no", "closed"),
        (Access(read_only=True, local_writes=True), "no", "read-only"),
        (Access(local_writes=True), "yes", ""),
    ):
        found = connect(model, access=access).get("/v1/visitor").json()
        assert (found["feedback"], found["why_not"]) == (feedback, why_not)
        assert "bee-keeping" in found["undo"]
    outside = connect(model, access=Access(local_writes=True, hosts=("depl.example",)))
    found = outside.get("/v1/visitor", headers={"Host": "depl.example"}).json()
    assert (found["edit"], found["why_not"]) == ("no", "elsewhere")


def test_a_table_becomes_documents(client) -> None:
    raw = "\ufeffNr;Titel;Abstract\r\n7;Wine;Of grapes\r\n8;Cod;\r\n9;;\r\n".encode("utf-16")
    found = client.post("/v1/table?name=neue.csv", content=raw).json()
    assert found["documents"] == [
        {"id": "7", "text": "Wine\nOf grapes", "numbered": False},
        {"id": "8", "text": "Cod", "numbered": False},
    ]
    assert found["text"] == ["Titel", "Abstract"]
    assert found["left_out"] == 1
    assert found["reasons"][0].startswith("neue.csv:4")
    assert "UTF-16" in found["described"]
    only = client.post("/v1/table?name=neue.csv&text=Abstract", content=raw).json()
    assert [x["text"] for x in only["documents"]] == ["Of grapes"]
    bare = client.post("/v1/table?name=bare.csv", content=b"text\nWine of grapes\nCod\n").json()
    assert [(x["id"], x["numbered"]) for x in bare["documents"]] == [("2", True), ("3", True)]


@pytest.mark.parametrize("name", ["a.csv", "../../a.csv", "..", "a.xlsx", "a/b\0.csv", "x" * 400])
def test_a_table_that_is_none_is_refused_without_the_places_of_this_machine(client, name) -> None:
    answer = client.post("/v1/table", params={"name": name}, content=b"\x00\x01\x02")
    assert answer.status_code == 422, answer.text
    assert "/tmp" not in answer.text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Classifier:
    """A run whose labels have a hierarchy."""
    labels = LabelSet(
        [
            Label("food", "food"),
            Label("drink", "drink", broader=("food",)),
            Label("wine", "Wine", broader=("drink",)),
            Label("beer", "beer", broader=("drink",)),
            Label("rail", "rail transport"),
            Label("tram", "tram", broader=("vehicles",)),  # which is no label
        ]
    )
    texts = ["wine of grapes", "beer of hops", "drinks and juices", "trains on track"] * 4
    carried = [[2], [3], [1], [4]] * 4
    corpus = Corpus.from_rows([str(i) for i in range(16)], texts, carried, labels)
    train = Dataset(labels, {"train": corpus}).train
    return Classifier.load(fit(train, tmp_path_factory.mktemp("tree") / "run").path)


def test_the_hierarchy_is_browsed_level_by_level(connect: Callable, tree: Classifier) -> None:
    client = connect(tree)
    top = client.get("/v1/hierarchy").json()
    assert (top["total"], top["alone"]) == (2, 1)
    found = [(x["id"], x["narrower"], x["known"]) for x in top["labels"]]
    assert found == [("food", 1, True), ("vehicles", 1, False)]
    assert [x["id"] for x in client.get("/v1/hierarchy?under=vehicles").json()["labels"]] == [
        "tram"
    ]
    level = client.get("/v1/hierarchy?under=drink").json()
    assert [x["name"] for x in level["labels"]] == ["beer", "Wine"]
    second = client.get("/v1/hierarchy?under=drink&offset=1&limit=1").json()
    assert second["total"] == 2
    assert [x["id"] for x in second["labels"]] == ["wine"]
    assert client.get("/v1/hierarchy?under=none").status_code == 404


def test_a_flat_label_set_has_no_hierarchy(client) -> None:
    assert client.get("/v1/hierarchy").json() == {
        "total": 0,
        "alone": 12,
        "above": "",
        "labels": [],
    }
