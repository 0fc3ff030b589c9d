"""Labels added to a run: found by every word and every example, and with all reasons."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy.sparse import csr_array

from depl.core.corpus import Label
from depl.fusion.newcomers import Simulated
from depl.labels.background import Background
from depl.labels.simulation import NewcomerPlay, simulate_newcomers
from depl.model.classifier import Classifier
from depl.run.folder import Run

MONOPILE = Label("mono", "Monopile")
TEXTS = [
    "Monopiles of wind farms at sea, rammed into the ground",
    "Noise of ramming at wind farms and the protection of porpoises",
]


@pytest.fixture
def model(own_run) -> Classifier:
    return Classifier.load(own_run)


def first(model: Classifier, text: str) -> str:
    return model.predict([text], 1).rows()[0][0][0].id


def test_a_word_that_the_run_does_not_know_finds_the_label(model, own_run):
    assert model.features.unknown_terms(["Monopile"]) == ["monopile"]
    before = model.predict(["Customs duty on wine"], 12)
    model.add_labels([MONOPILE, Label("x", "Offshore monopile")])
    again = Classifier.load(own_run)
    for one in (model, again):
        best = one.predict(["Installing a MONOPILE"], 2).rows()[0]
        assert [label.id for label, _ in best] == ["mono", "x"]
        assert best[0][1] > best[1][1]
    # Texts without the word are ranked as before.
    after = model.predict(["Customs duty on wine"], 14).without([12, 13])
    assert after.indices[0, :12].tolist() == before.indices[0].tolist()


def test_a_label_is_first_for_its_own_examples_whatever_else_they_carry(model, dataset):
    texts = [dataset.train.texts[i] for i in (4, 12, 40)]
    model.add_labels([Label("own", "Kellerei")], examples={"own": texts})
    assert [first(model, text) for text in texts] == ["own"] * 3


def test_an_example_finds_what_the_name_does_not(model):
    model.add_labels([MONOPILE, Label("bee", "honey")], examples={"mono": TEXTS})
    rows = model.predict(["Wind farms, noise and porpoises", "wine"], 14).rows()
    found = [{label.id: p for label, p in row} for row in rows]
    assert found[0]["mono"] > 5 * found[1].get("mono", 0)
    assert found[0]["mono"] > found[0].get("bee", 0)


def test_renamed_described_and_removed_newcomers_follow(model, own_run):
    model.add_labels([MONOPILE, Label("x", "Kai")], examples={"x": TEXTS})
    model.rename_label("mono", "Gantry")
    assert first(model, "Gantry") == "mono"
    model.describe_label("mono", "Crane on rails of a jackup")
    assert first(model, "jackup crane") == "mono"
    model.remove_label("x")
    assert first(model, TEXTS[0]) != "x"
    model.undo()
    assert first(model, TEXTS[0]) == "x"
    for _ in range(3):
        model.undo()
    model.add_labels([Label("y", "Jackup")], examples={"y": [TEXTS[1]]})
    again = Classifier.load(own_run)
    texts = [*TEXTS, "jackup crane", "wine"]
    np.testing.assert_array_equal(again.predict(texts, 13).scores, model.predict(texts, 13).scores)
    assert first(again, TEXTS[1]) == "y"


def test_reasons_are_names_examples_and_labels_alike(model):
    text = "A monopile of a wind farm, and duties on wine"
    model.add_labels([MONOPILE], examples={"mono": TEXTS})
    why = model.explain(text, "mono")
    assert [part.name for part in why.parts] == [
        "names",
        "examples",
        "labels alike",
        "likely documents",
        "how broad it is",
    ]
    assert [(x.term, x.spans) for x in why.name_words] == [("monopile", [(2, 10)])]
    assert [near.text for near in why.neighbours] == TEXTS
    assert why.neighbours[0].id == "example 1"
    assert why.neighbours[0].similarity > why.neighbours[1].similarity
    assert why.svm is None
    ranked = model.predict([text], 13)
    assert ranked.place(0, 12) == (why.probability, why.rank - 1)
    newcomers = model.state.newcomers
    nothing = np.zeros((1, 1, len(newcomers.columns)), np.float32)
    added = sum(part.contribution for part in why.parts)
    at_none = newcomers.model.log_odds(nothing, np.array([2]))[0, 0]
    odds = np.log(why.probability / (1 - why.probability))
    np.testing.assert_allclose(added + at_none, odds, rtol=1e-4)
    assert model.explain(text, "wine").parts[0].name == "svm"


def test_new_names_with_words_that_the_run_lacks_are_told(model, caplog):
    with caplog.at_level(logging.WARNING):
        model.rename_label("2560", alt_names=["grape must", "Oenologie"])
    (said,) = [record.getMessage() for record in caplog.records]
    assert "No training document has oenologie" in said
    caplog.clear()
    model.undo()
    model.rename_label("2560", alt_names=["grape must"])
    model.add_labels([Label("x-1", "monopile")])
    caplog.clear()
    model.rename_label("x-1", "gabion")  # an added label is found by words of its own
    assert not caplog.records


def test_names_without_a_known_word_are_told(model, caplog):
    with caplog.at_level(logging.WARNING):
        model.add_labels([MONOPILE, Label("q", "§ 5"), Label("w", "wine cellar")])
    unknown, wordless = [record.getMessage() for record in caplog.records]
    assert "(Monopile): they are suggested only where a text has these words" in unknown
    assert "(§ 5): they cannot be suggested by it" in wordless
    caplog.clear()
    model.add_labels([Label("m", "Jackup")], examples={"m": TEXTS})
    assert not caplog.records


def test_a_run_of_an_earlier_version_simulates_newcomers_when_a_label_is_added(model, own_run):
    run = Run.open(own_run)
    kept = run.newcomer_model()
    again = simulate_newcomers(run)
    # The same choice of labels and documents; only the ranks may be cut elsewhere.
    np.testing.assert_allclose(again.weights, kept.weights, atol=0.05)
    assert kept.knots == again.knots == (0, 1, 3)  # no label of the run has ten documents


def test_labels_that_play_newcomers_are_as_common_as_they_are_without_their_examples(own_run):
    run = Run.open(own_run)
    X, Y = run.train_vectors(), run.Y
    everything, nothing = np.arange(len(run.train())), csr_array(Y.shape, dtype=np.float32)
    untitled, rng = csr_array(X.shape, dtype=np.float32), np.random.default_rng(0)
    background = Background(everything, X, nothing, untitled)
    idf = run.features().idf_
    play = NewcomerPlay(X, Y, run.names(), run.svm(), idf, background, None, rng)
    sizes = run.train_counts()[0]
    for n in (0, 1, 3):
        simulated = Simulated.together([x.pairs for x in play.rounds(n)])
        usable = sizes[sizes > max(n, 5)]
        assert len(usable)
        # All documents are looked at, in each of two rounds.
        weight = simulated.times[simulated.carried].sum()
        np.testing.assert_allclose(weight, 2 * usable.sum())
        assert simulated.carried.sum() == 2 * (usable - n).sum()
        assert (simulated.times[~simulated.carried] == 1).all()


def test_rarer_labels_play_as_if_they_were_as_common_as_those_that_people_add(own_run):
    run = Run.open(own_run)
    few = np.flatnonzero(run.train_counts()[0] > 5)[:1]
    Y = run.Y.tolil()
    Y[run.Y[:, few].tocoo().row[3:], few] = 0  # three documents are left of it
    Y = csr_array(Y)
    everything, nothing = np.arange(Y.shape[0]), csr_array(Y.shape, dtype=np.float32)
    rng = np.random.default_rng(0)
    X = run.train_vectors()
    untitled = csr_array(X.shape, dtype=np.float32)
    background = Background(everything, X, nothing, untitled)
    idf = run.features().idf_
    play = NewcomerPlay(X, Y, run.names(), run.svm(), idf, background, None, rng)
    np.testing.assert_allclose(play.missed(few, 0), 6 / 3)
    np.testing.assert_allclose(play.missed(few, 2), 6 / 1)
