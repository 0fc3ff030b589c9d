"""Learning from feedback: as a fit would, only for what changed, and it can be undone."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

from depl import Classifier
from depl.cli.app import app
from depl.core.errors import RunError
from depl.labels.feedback import Decision, FeedbackStore
from depl.pipeline.fit import fit
from depl.pipeline.learn import learn
from depl.run.config import Config
from depl.run.folder import Run

# In words that the run knows: it learns no new ones.
BEES = (
    "Aid for the keeping of hives by farms on steep slopes",
    "Farms with hives on steep slopes in the regions",
    "The labelling of honey from farms on slopes",
)
PLANES = "Slots at airports for the flights of air carriers with passengers"


@pytest.fixture
def run(own_run) -> Run:
    """A run with feedback: new documents, one of them rejected for a label, one of training."""
    store = FeedbackStore(own_run)
    for text in BEES:
        store.add(text, [Decision("77", "added"), Decision("1590", "rejected")])
    store.add("The bottling of wine", [Decision("17", "added")], id="train-1")
    return Run(own_run)


def test_affected_labels_are_solved_as_liblinear_solves_them_and_others_stay(run, dataset):
    before = Classifier.load(run.path)
    lesson, _ = learn(run)
    after = Classifier.load(run.path)
    affected = [after.labels.index(x) for x in ("77", "1590", "2560", "17")]
    others = np.setdiff1d(np.arange(12), affected)
    assert (lesson.documents, lesson.labels) == (4, 4)
    assert (before.svm.weights_[others] != after.svm.weights_[others]).nnz == 0
    assert np.array_equal(before.svm.bias_[others], after.svm.bias_[others])
    assert [before.card(j) for j in others] == [after.card(j) for j in others]

    texts = ["The bottling of wine", *dataset.train.texts[1:], *BEES]
    X = after.features.transform(texts).toarray().astype(np.float64)
    carried = {j: dataset.train.Y[:, [j]].toarray().ravel() for j in affected}
    carried[after.labels.index("17")][0] = 1
    for j in affected:
        y = np.append(carried[j], [float(after.labels[j].id == "77")] * 3)
        oracle = LinearSVC(C=after.svm.C, tol=1e-6, max_iter=100_000).fit(X, y)
        size = np.abs(oracle.coef_[0])
        w = oracle.coef_[0] * (size >= after.svm.cull)
        sure = np.abs(size - after.svm.cull) > 0.01  # of being dropped, or not
        found = after.svm.weights_[[j]].toarray()[0]
        assert found[sure] == pytest.approx(w[sure], abs=0.01)
        bonus = after.svm.rare_bonus * np.log(y.sum())
        assert after.svm.bias_[j] == pytest.approx(oracle.intercept_[0] - bonus, abs=0.02)
        assert after.train_counts[j] == y.sum()
    assert after.n_train == 51


def test_what_was_learnt_is_suggested_and_described(run):
    text = "Subsidies for farms on steep slopes"
    before = Classifier.load(run.path).card(11)
    assert before.training_documents == 0
    learn(run)
    model = Classifier.load(run.path)
    card = model.card(11)
    assert card.training_documents == 3
    assert {"farm", "slope", "steep"} <= {term for term, _ in card.keywords}
    assert "slope" in card.description
    assert model.explain(text, "77").keywords
    p = {x.label.id: x.probability for x in model.explain_best(text, 3)}
    assert next(iter(p)) == "77"


def test_every_lesson_can_be_undone_one_after_the_other(run):
    states = [Classifier.load(run.path).svm.weights_]
    versions = [run.version()]
    for text in (None, PLANES, "Flights of airlines to airports"):
        if text:
            FeedbackStore(run.path).add(text, [Decision("4512", "accepted")])
        learn(run)
        states.append(Classifier.load(run.path).svm.weights_)
        versions.append(run.version())
    assert len(set(versions)) == 4
    assert sorted(x.name for x in (run.path / "learned").iterdir()) == ["2", "3", "current.json"]
    assert run.learned.undo() == 2
    assert (Classifier.load(run.path).svm.weights_ != states[2]).nnz == 0
    assert run.learned.undo() == 0  # the first is gone: as it was fitted
    assert (Classifier.load(run.path).svm.weights_ != states[0]).nnz == 0
    assert run.version() == versions[0]
    with pytest.raises(RunError, match="nothing to undo"):
        run.learned.undo()
    learn(run)  # and again
    assert (Classifier.load(run.path).svm.weights_ != states[3]).nnz == 0


def test_learning_again_starts_from_the_fit_and_follows_what_was_undone(run):
    learn(run)
    once = Classifier.load(run.path).svm.weights_
    learn(run)
    assert (Classifier.load(run.path).svm.weights_ != once).nnz == 0
    store = FeedbackStore(run.path)
    for entry in store.history():
        store.undo(entry.number)
    with pytest.raises(RunError, match="nothing to learn"):
        learn(run)


def test_a_state_that_is_not_pointed_to_is_not_used(run):
    learn(run)
    version = run.version()
    shutil.copytree(run.path / "learned" / "1", run.path / "learned" / "2")  # a kill before the end
    assert run.version() == version
    learn(run)
    assert run.learned.current() == 3


def test_a_run_that_is_fitted_again_is_what_was_fitted(run, dataset):
    learn(run)
    fit(dataset.train, run.path)
    assert run.learned.current() == 1  # nothing was made again
    fit(dataset.train, run.path, Config.load(None, ["linear.C=2"]))
    assert run.learned.current() == 0
    assert Classifier.load(run.path).train_counts[11] == 0
    learn(run)
    assert Classifier.load(run.path).train_counts[11] == 3


def test_edits_of_labels_and_what_was_learnt_go_together(run):
    model = Classifier.load(run.path)
    model.rename_label("77", "apiculture")
    learn(run)
    model = Classifier.load(run.path)
    card = model.card(model.find("apiculture"))
    assert card.training_documents == 3
    assert card.description.startswith("apiculture")
    assert "slope" in card.description
    assert model.refresh() is False


def test_damage_is_told_with_the_way_out(run):
    learn(run)
    path = run.path / "learned" / "1" / "svm.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert "depl learn" in str(CliRunner().invoke(app, ["check", str(run.path)]).exception)
    with pytest.raises(RunError, match=r"1/svm\.safetensors is damaged .* --undo"):
        Classifier.load(run.path)
    assert depl("learn", run.path, "--undo").startswith("Undone:")
    assert Classifier.load(run.path).n_train == 48


def test_a_run_with_an_encoder_is_refused(run):
    config = Config.load("cpu-frozen").to_dict()
    run.write_manifest(run.manifest() | {"config": config})
    with pytest.raises(RunError, match="only runs of the sparse recipe"):
        learn(Run(run.path))


def depl(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_command_learns_and_undoes(run):
    FeedbackStore(run.path).add("Zeppelins in the sky", [Decision("new-1", "added")])
    told = depl("learn", run.path)
    assert told.startswith("Learnt 4 labels again with 5 documents of feedback")
    assert "not fitted with: new-1" in told
    assert depl("check", run.path).endswith("Everything is as it was written.\n")
    facts = json.loads(depl("learn", run.path, "--json"))
    assert (facts["state"], facts["documents"], facts["unknown_labels"]) == (2, 5, ["new-1"])
    assert json.loads(depl("learn", run.path, "--undo", "--json"))["state"] == 1
    assert "as it was fitted" in depl("learn", run.path, "--undo")
