"""A run whose labels have definitions and broader labels: what commands and service show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.corpus import Dataset, Label, LabelSet
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.pipeline.stages import STAGES
from depl.run.config import Config

TEXT = "Tariff quota for wines of fresh grapes, with a reduced customs duty"
WINE, CUSTOMS = "2560", "17"


@pytest.fixture(scope="module")
def run(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The laws, where wine is below customs duty."""
    wine, *others = dataset.labels
    wine = replace(wine, description="Of grapes only.", broader=(CUSTOMS, "drink"))
    train = replace(dataset.train, labels=LabelSet([wine, *others]))
    return fit(train, tmp_path_factory.mktemp("runs") / "laws").path


def depl(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(x) for x in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_label_is_shown_with_what_is_above_and_below(run: Path):
    wine = depl("labels", run, "show", "wine")
    assert "definition   Of grapes only." in wine
    assert "broader      customs duty; drink" in wine
    assert "narrower     wine" in depl("labels", run, "show", "customs duty")
    shown = json.loads(depl("labels", run, "show", "wine", "--json"))
    assert shown["broader"] == [
        {"id": CUSTOMS, "name": "customs duty"},
        {"id": "drink", "name": "drink"},
    ]


def test_rare_labels_can_be_described_by_their_definition(dataset: Dataset, tmp_path: Path):
    wine, duty, *others = dataset.labels
    n = int(dataset.train.label_counts[0])
    wine = replace(wine, description="Of grapes only.", broader=(CUSTOMS,))
    duty = replace(duty, description="Paid at borders.")
    train = replace(dataset.train, labels=LabelSet([wine, duty, *others]))
    settings = {"descriptions": {"definitions": n + 1}}  # customs duty has more documents
    run = fit(train, tmp_path / "run", Config.load(settings), until="descriptions")
    texts = run.descriptions().texts
    assert texts[0].startswith("wine customs duty Of grapes only. ")
    assert "Paid" not in texts[1]


def test_runs_from_before_definitions_stay_up_to_date():
    stage = next(stage for stage in STAGES if stage.name == "descriptions")
    assert "definitions" not in stage.settings(Config())
    assert stage.settings(Config.load({"descriptions": {"definitions": 1}}))["definitions"] == 1


def test_an_explanation_names_broader_and_narrower_labels(run: Path):
    said = [line.split() for line in depl("explain", run, TEXT, "--label", "wine").splitlines()]
    assert ["broader", "customs", "duty;", "drink"] in said
    explained = json.loads(depl("explain", run, TEXT, "--label", "customs duty", "--json"))
    assert explained["label"]["narrower"] == [{"id": WINE, "name": "wine"}]


def test_an_ancestor_makes_room_for_the_next_label(run: Path, tmp_path: Path):
    (tmp_path / "letter.txt").write_text(TEXT)
    asked = ("predict", run, tmp_path / "letter.txt", "-k", 3, "--json")
    usual, without = (
        [x["id"] for x in json.loads(depl(*asked, *more))["labels"]]
        for more in ((), ("--no-ancestors",))
    )
    assert {WINE, CUSTOMS} <= set(usual)
    assert len(without) == 3
    assert CUSTOMS not in without
    assert [x for x in usual if x != CUSTOMS] == without[:2]


def test_a_label_below_the_threshold_costs_no_ancestor_its_place(run: Path, tmp_path: Path):
    (tmp_path / "letter.txt").write_text(TEXT)
    ranking = Classifier.load(run).predict([TEXT], 12)
    scores = {label.id: s for label, s in ranking.rows()[0] if label.id in (WINE, CUSTOMS)}
    first, second = sorted(scores, key=scores.__getitem__, reverse=True)
    between = (scores[first] + scores[second]) / 2
    asked = ("predict", run, tmp_path / "letter.txt", "--no-ancestors", "--json", "--threshold")
    found = json.loads(depl(*asked, between))["labels"]
    assert {x["id"] for x in found} & {WINE, CUSTOMS} == {first}


def test_the_service_leaves_ancestors_out_when_asked(run: Path):
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from depl.server.app import create_app

    with TestClient(create_app(Classifier.load(run)), "http://127.0.0.1") as client:

        def suggested(**wish: object) -> list[str]:
            answer = client.post("/v1/predict", json={"texts": [TEXT], "k": 3} | wish).json()
            return [x["id"] for x in answer["results"][0]["labels"]]

        assert {WINE, CUSTOMS} <= set(suggested())
        assert CUSTOMS not in suggested(ancestors=False)
        assert len(suggested(ancestors=False)) == 3
        wine = client.get(f"/v1/labels/{WINE}").json()
        assert wine["definition"] == "Of grapes only."
        assert [x["name"] for x in wine["broader"]] == ["customs duty", "drink"]


def test_added_labels_have_a_place_in_the_hierarchy(run: Path, tmp_path: Path):
    model = Classifier.load(run)
    model.add_labels([Label("x", "sparkling wine", broader=(WINE,))])
    try:
        assert [x.name for x in model.card(model.find("wine")).narrower] == ["sparkling wine"]
        added = Classifier.load(run).card(model.find("x"))
        assert [x.name for x in added.broader] == ["wine"]
    finally:
        model.undo()
    assert Classifier.load(run).card(model.find("wine")).narrower == []
