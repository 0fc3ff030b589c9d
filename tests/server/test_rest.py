"""What the service answers: the same as the model behind it, in batches of any size."""

from __future__ import annotations

import asyncio
import logging
import shutil

import httpx
import pytest

from depl.server.app import create_app
from depl.server.batching import Batching
from depl.server.live_model import load
from depl.server.security import Access

WINE = "Labelling of sparkling wines made from grapes of named vineyards"


def test_predict_gives_what_the_model_gives(client, model, dataset):
    texts = dataset.dev.texts
    answer = client.post("/v1/predict", json={"texts": texts, "k": 3})
    assert answer.status_code == 200
    results = answer.json()["results"]
    expected = model.predict(texts, 3).rows(model.labels)
    assert [[x["id"] for x in r["labels"]] for r in results] == [
        [label.id for label, _ in row] for row in expected
    ]
    first, (label, score) = results[0]["labels"][0], expected[0][0]
    assert first == {
        "id": label.id,
        "name": label.name,
        "training_documents": int(model.train_counts[model.labels.index(label.id)]),
        "band": "1-9",
        "probability": pytest.approx(score),
    }


def test_thresholds_and_bands_choose_among_the_labels(client):
    def ids(**wish):
        answer = client.post("/v1/predict", json={"texts": [WINE], "k": 12, **wish}).json()
        return [(x["id"], x["band"], x["probability"]) for x in answer["results"][0]["labels"]]

    everything = ids()
    middle = everything[1][2]
    assert ids(threshold=middle) == [x for x in everything if x[2] >= middle]
    assert ids(threshold=1.0) == []
    for band in ("0", "1-9", "10-99", "100+"):
        assert ids(band=band) == [x for x in everything if x[1] == band]
    assert ids(band="1-9", k=1) == [x for x in everything if x[1] == "1-9"][:1]


def test_thresholds_in_words(client, model):
    def found(threshold, **wish):
        body = {"texts": [WINE], "threshold": threshold, **wish}
        answer = client.post("/v1/predict", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["results"]

    best = model.thresholds.best_f1
    assert best is not None
    assert found("f1") == found(best, k=12)  # no longer cut at 5
    assert len(found("f1", k=1)[0]["labels"]) == 1
    low = float(model.thresholds.curve().precision.min())
    assert found(f"precision={low:.2f}") == found(
        model.thresholds.for_precision(float(f"{low:.2f}")), k=12
    )
    assert found("0.2", k=3) == found(0.2, k=3)


@pytest.mark.parametrize("wrong", ["best", "precision=2", "precision", "", "x" * 1000, True, [0.5]])
def test_what_is_no_threshold_is_one_sentence(client, wrong):
    answer = client.post("/v1/predict", json={"texts": [WINE], "threshold": wrong})
    assert answer.status_code == 422
    message = "threshold must be a number, precision=P with P above 0 and at most 1, or f1."
    assert answer.json()["error"]["message"] == message


def test_what_is_not_there_is_one_sentence(client):
    said = client.get("/v1/nothing").json()["error"]["message"]
    assert said == "There is nothing at /v1/nothing. /docs lists all requests."


def test_a_percentage_is_no_threshold(client):
    answer = client.post("/v1/predict", json={"texts": [WINE], "threshold": 80})
    assert answer.status_code == 422
    assert "at most 1; got 80; for 80 % give 0.8." in answer.json()["error"]["message"]


def test_a_precision_out_of_reach_says_what_the_run_reaches(client):
    answer = client.post("/v1/predict", json={"texts": [WINE], "threshold": "precision=1"})
    assert answer.status_code == 422
    assert "out of reach" in answer.json()["error"]["message"]


def test_many_at_once_get_the_same_answers_as_one_by_one(model, dataset):
    texts = [f"{text} number {i}" for i in range(4) for text in dataset.dev.texts]
    wishes = [{"texts": [t], "k": 1 + i % 7, "threshold": 0.01} for i, t in enumerate(texts)]

    async def scenario():
        app = create_app(model, batching=Batching(max_batch=16, max_wait=0.01))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            together = await asyncio.gather(
                *(client.post("/v1/predict", json=wish) for wish in wishes)
            )
            batches = await client.get("/metrics")
            alone = [await client.post("/v1/predict", json=wish) for wish in wishes]
        return together, alone, batches.text

    together, alone, metrics = asyncio.run(scenario())
    assert {answer.status_code for answer in together} == {200}
    assert [a.json() for a in together] == [a.json() for a in alone]
    counted = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line[0] != "#")
    assert float(counted['depl_documents_total{run="fitted"}']) == len(texts)
    batches = float(counted['depl_batch_texts_count{run="fitted"}'])
    assert batches < len(texts) / 4  # they were put together


def test_info_describes_the_run(client, model, fitted_run):
    info = client.get("/v1/info").json()
    assert info["name"] == fitted_run.name
    assert (info["documents"], info["labels"]) == (48, 12)
    assert info["bands"] == [
        {"name": "0", "first": 0, "last": 0, "labels": 1},
        {"name": "1-9", "first": 1, "last": 9, "labels": 10},
        {"name": "10-99", "first": 10, "last": 99, "labels": 1},
        {"name": "100+", "first": 100, "last": None, "labels": 0},
    ]
    names = ["names", "name coverage", "whole names"]
    assert info["parts"] == ["svm", *names, "word neighbours", "characters"]
    assert info["writable"] is False
    assert info["thresholds"] is None or set(info["thresholds"]) <= {"precision 0.8", "best F1"}


def test_labels_are_listed_searched_and_paged(client, model):
    def listed(**query):
        return client.get("/v1/labels", params=query).json()

    everything = listed(limit=50)
    names = [x["name"] for x in everything["labels"]]
    assert everything["total"] == 12
    assert names == sorted(x.name for x in model.labels)
    paged = [listed(offset=i, limit=5)["labels"] for i in (0, 5, 10, 15)]
    assert [x["name"] for page in paged for x in page] == names
    counts = [x["training_documents"] for x in listed(sort="count")["labels"]]
    assert counts == sorted(counts, reverse=True)
    assert [x["id"] for x in listed(band="0")["labels"]] == ["77"]
    assert [x["id"] for x in listed(search="TRANSPORT", band="", sort="name")["labels"]] == [
        "4512",
        "4523",
    ]
    assert [x["id"] for x in listed(search="apicult")["labels"]] == ["77"]  # another name
    assert [x["id"] for x in listed(search="2560")["labels"]] == ["2560"]
    assert listed(search="no such thing") == {"total": 0, "labels": []}
    wine = listed(search="wine")["labels"][0]
    assert wine["keywords"] == [t for t, _ in model.card(0).keywords[:6]]
    assert wine["description"] == model.descriptions[0]
    assert wine["alt_names"] == ["grape wine"]
    assert [x["id"] for x in listed(search="duty custom")["labels"]] == ["17"]  # in any order


def test_close_matches_are_listed_first(client):
    found = client.get("/v1/labels", params={"search": "o", "limit": 50}).json()["labels"]
    assert found[0]["name"] == "olive oil"  # it begins so; "customs duty" only contains it


def test_one_label_is_shown_whole(client, model):
    label = client.get("/v1/labels/2560").json()
    assert label["name"] == "wine"
    assert label["alt_names"] == ["grape wine"]
    assert [(x["term"], pytest.approx(x["weight"])) for x in label["keywords"]] == model.keywords[0]
    nearest = client.get("/v1/labels/4523").json()["nearest"]
    assert "4523" not in [x["id"] for x in nearest]
    assert {"id", "name", "training_documents", "band", "similarity"} == set(nearest[0])


def test_an_explanation_is_the_models(client, model):
    answer = client.post("/v1/explain", json={"text": WINE, "label": "2560"}).json()
    expected = model.explain(WINE, "2560").to_json()
    assert answer["probability"] == pytest.approx(expected["probability"])
    assert answer["rank"] == 1
    assert [x["term"] for x in answer["keywords"]] == [x["term"] for x in expected["keywords"]]
    for keyword in answer["keywords"]:
        for start, end in keyword["spans"]:
            assert WINE[start:end].lower().startswith(keyword["term"][:3])
    assert {x["id"] for x in answer["neighbours"]} == {x["id"] for x in expected["neighbours"]}


def test_a_run_without_fusion_gives_the_svms_scores(connect, fitted_run, tmp_path):
    from depl.run.folder import Run

    path = shutil.copytree(fitted_run, tmp_path / "early")
    run = Run(path)
    manifest = run.manifest()
    for stage in ("fusion", "held_out"):
        manifest["stages"].pop(stage, None)
        shutil.rmtree(path / stage, ignore_errors=True)
    run.write_manifest(manifest)
    model = load(path)
    client = connect(model)
    labels = client.post("/v1/predict", json={"texts": [WINE], "k": 2}).json()["results"][0]
    scores = [x["probability"] for x in labels["labels"]]
    assert scores == pytest.approx(model.predict([WINE], 2).scores[0].tolist())
    assert client.get("/v1/info").json()["thresholds"] is None
    answer = client.post("/v1/explain", json={"text": WINE, "label": "2560"})
    assert answer.status_code == 200
    assert answer.json()["probability"] is None


def test_the_service_answers_with_the_model_that_the_run_is_set_to(connect, own_run):
    from depl.pipeline import fit as pipeline
    from depl.run.folder import Run

    pipeline.fit(None, own_run, Run.open(own_run).config().changed(["model=svm"]))
    model = load(own_run)
    client = connect(model)
    found = client.post("/v1/predict", json={"texts": [WINE], "k": 4}).json()["results"][0]
    every = model.all_rankings([WINE], 4)
    assert every["svm"].indices.tolist() != every["fusion"].indices.tolist()
    expected = [model.labels[j].id for j in every["svm"].indices[0]]
    assert [x["id"] for x in found["labels"]] == expected
    answer = client.post("/v1/predict", json={"texts": [WINE], "threshold": "f1"})
    assert answer.status_code == 422  # thresholds in words are those of the fusion's probabilities


def test_changes_of_labels_show_at_once_and_can_be_undone(connect, own_run):
    client = connect(load(own_run), access=Access(local_writes=True))
    must = {
        "id": "x/1 ä",
        "name": "grape must",
        "alt_names": ["must"],
        "description": "juice of grapes\nbefore the wine",
        "examples": ["Distillation of grape must", "Grape must in the wine year"],
    }
    added = client.post("/v1/labels", json=must)
    assert added.status_code == 201
    assert added.json()["name"] == "grape must"
    assert added.json()["alt_names"] == ["must"]
    assert "grapes before the wine" in added.json()["description"]
    address = "/v1/labels/x%2F1%20%C3%A4"
    assert client.get(address).json() == added.json()
    assert client.post("/v1/labels", json=must).status_code == 409
    suggested = client.post(
        "/v1/predict", json={"texts": ["Distillation of grape must"], "k": 3}
    ).json()
    assert "x/1 ä" in [x["id"] for x in suggested["results"][0]["labels"]]
    assert client.get("/v1/labels", params={"search": "must"}).json()["total"] == 1
    assert client.get("/v1/info").json()["labels"] == 13

    changed = client.patch(address, json={"name": "new must", "description": "sweet juice"})
    assert (changed.status_code, changed.json()["name"]) == (200, "new must")
    assert "sweet" in changed.json()["description"]
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.get("/v1/info").json()["labels"] == 12
    assert client.get("/v1/labels", params={"search": "must"}).json()["total"] == 0
    assert client.delete(address).status_code == 404
    assert client.patch(address, json={"name": "x"}).status_code == 404
    undone = client.post("/v1/labels/undo")
    assert undone.status_code == 200
    assert isinstance(undone.json()["undone"], str)
    assert client.get(address).json()["name"] == "new must"
    again = load(own_run)  # another process would see the same
    assert again.labels[again.labels.index("x/1 ä")].name == "new must"


def test_other_names_can_be_changed_and_examples_added(connect, own_run):
    client = connect(load(own_run), access=Access(local_writes=True))
    changed = client.patch("/v1/labels/2560", json={"alt_names": ["olive wine", " vino "]})
    assert changed.json()["alt_names"] == ["olive wine", "vino"]
    assert changed.json()["name"] == "wine"
    assert client.get("/v1/labels", params={"search": "vino"}).json()["total"] == 1
    both = client.patch("/v1/labels/2560", json={"name": "vin", "alt_names": []}).json()
    assert (both["name"], both["alt_names"]) == ("vin", [])
    again = load(own_run)
    assert again.labels[again.find("2560")].alt_names == ()
    assert client.post("/v1/labels/undo").json()["undone"] == (
        "renamed 2560 from 'wine' to 'vin' and took the other names of 2560 away"
    )
    undone = client.post("/v1/labels/undo").json()["undone"]
    assert undone == "gave 2560 the other names olive wine, vino"
    assert client.get("/v1/labels/2560").json()["alt_names"] == ["grape wine"]

    examples = {"examples": ["Must of the autumn", "Zwickelmost"]}
    assert client.patch("/v1/labels/2560", json=examples).status_code == 200
    kept = client.get("/v1/feedback", params={"label": "2560"}).json()["decisions"]
    assert {(x["opening"], x["verdict"]) for x in kept} == {
        ("Must of the autumn", "added"),
        ("Zwickelmost", "added"),
    }
    assert client.patch("/v1/labels/nope", json=examples).status_code == 404
    assert client.patch("/v1/labels/2560", json={}).status_code == 422
    assert client.patch("/v1/labels/2560", json={"alt_names": [" "]}).status_code == 422


def test_undo_with_nothing_to_undo_is_a_conflict(connect, own_run):
    client = connect(load(own_run), access=Access(local_writes=True))
    answer = client.post("/v1/labels/undo")
    assert answer.status_code == 409
    assert answer.json()["error"]["message"]


def test_reload_takes_a_run_that_was_fitted_again(connect, own_run, dataset):
    from depl.core.corpus import Corpus
    from depl.pipeline.fit import fit
    from depl.run.config import Config

    client = connect(load(own_run), access=Access(token="t"))
    before = client.get("/v1/labels/2560").json()["keywords"]
    asked = {"text": WINE, "label": "2560"}
    explained = connect(load(own_run)).post("/v1/explain", json=asked).json()
    other = [0, *range(len(dataset.train))[:0:-1]]  # other documents at the same positions
    texts = [dataset.train.texts[i] for i in other]
    changed = Corpus(dataset.train.ids, texts, dataset.train.Y[other], dataset.labels)
    fit(changed, own_run, Config.load(None, ["linear.C=3"]), overwrite=True)
    assert client.get("/v1/labels/2560").json()["keywords"] == before
    assert client.post("/v1/explain", json=asked).json() == explained
    shutil.rmtree(own_run / "features")
    shutil.rmtree(own_run / "corpus")
    assert client.post("/v1/explain", json=asked).json() == explained
    examples = {"id": "dep", "name": "depot", "examples": ["Storage under a licence"]}
    shown = {"Authorization": "Bearer t"}
    assert client.post("/v1/labels", json=examples, headers=shown).status_code == 201
    assert client.post("/v1/reload", headers=shown).status_code == 500  # the old one stays at work
    assert client.post("/v1/explain", json=asked).json()["neighbours"] == explained["neighbours"]
    fit(dataset.train, own_run, Config.load(None, ["linear.C=3"]), overwrite=True)
    answer = client.post("/v1/reload", headers={"Authorization": "Bearer t"})
    assert (answer.status_code, answer.json()["labels"]) == (200, 13)
    assert client.get("/v1/labels/2560").json()["keywords"] != before


def test_a_run_that_cannot_be_reloaded_leaves_the_model_as_it_is(connect, own_run):
    client = connect(load(own_run), access=Access(token="t"))
    (own_run / "manifest.json").write_text("{")
    answer = client.post("/v1/reload", headers={"Authorization": "Bearer t"})
    assert answer.status_code == 500
    assert "manifest.json is damaged" in answer.json()["error"]["message"]
    assert client.post("/v1/predict", json={"texts": [WINE]}).status_code == 200


def test_a_full_queue_is_503_and_a_late_answer_504(model, connect, monkeypatch):
    import threading

    may_go = threading.Event()
    monkeypatch.setattr(
        "depl.server.live_model.suggest",
        lambda model, asked: may_go.wait(5) and [[] for _ in asked],
    )

    async def scenario():
        app = create_app(model, batching=Batching(max_batch=1, queue=1, timeout=0.4, max_wait=0))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            waiting = []
            for _ in range(3):
                waiting.append(
                    asyncio.create_task(client.post("/v1/predict", json={"texts": ["a"]}))
                )
                await asyncio.sleep(0.1)
            answers = await asyncio.gather(*waiting)
            may_go.set()
            return answers, await client.post("/v1/predict", json={"texts": ["a"]})

    answers, later = asyncio.run(scenario())
    assert [a.status_code for a in answers] == [504, 504, 503]
    assert answers[2].headers["retry-after"] == "1"
    assert "busy" in answers[2].json()["error"]["message"]
    assert later.status_code == 200


def test_health_readiness_and_metrics(connect, model):
    client = connect(model)
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}
    client.post("/v1/predict", json={"texts": [WINE, WINE]})
    client.get("/v1/labels/2560")
    client.get("/no/such/page")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    for line in (
        'depl_requests_total{method="POST",route="/v1/predict",status="200"} 1.0',
        'depl_requests_total{method="GET",route="/v1/labels/{label_id:path}",status="200"} 1.0',
        'depl_requests_total{method="GET",route="other",status="404"} 1.0',
        'depl_request_seconds_count{route="/v1/predict"} 1.0',
        'depl_documents_total{run="fitted"} 2.0',
        'depl_batch_texts_sum{run="fitted"} 2.0',
        'depl_queue{run="fitted"} 0.0',
        'depl_labels{run="fitted"} 12.0',
    ):
        assert line in answer.text.splitlines()


def test_before_its_start_the_service_is_not_ready(model):
    async def scenario():
        transport = httpx.ASGITransport(create_app(model))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/readyz")

    answer = asyncio.run(scenario())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_requests_are_logged_as_json_without_their_texts(client, caplog):
    import json

    with caplog.at_level(logging.INFO, logger="depl.server"):
        client.post("/v1/predict", json={"texts": ["a secret"]})
    (line,) = [json.loads(record.getMessage()) for record in caplog.records]
    assert (line["method"], line["path"], line["status"]) == ("POST", "/v1/predict", 200)
    assert "secret" not in str(line)
