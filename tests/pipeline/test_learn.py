"""Learning from feedback: as a fit would, only for what changed, and it can be undone."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

from depl import Classifier
from depl.cli.app import app
from depl.core.errors import RunError
from depl.fusion.candidates import candidate_pairs
from depl.fusion.fusion import Fusion
from depl.fusion.updating import updated
from depl.labels.decisions import Decision
from depl.labels.feedback import FeedbackStore
from depl.pipeline.fit import fit
from depl.pipeline.learn import learn
from depl.run.config import Config
from depl.run.folder import Run
from depl.sparse.names import names_and_owners
from depl.sparse.renewal import Renewal
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

# In words that no training document has, and in no pair of words that one of them has.
BEES = (
    "Subsidised beehives kept high above alpine hills",
    "Alpine beehives high above snowy hills",
    "Beehives above alpine hills, labelled snowy",
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


def test_tf_idf_and_names_are_those_of_a_fit_on_all_documents(own_run, dataset):
    texts = [*dataset.train.texts, *BEES]
    for text in BEES:
        FeedbackStore(own_run).add(text, [Decision("77", "added")])
    learn(Run(own_run))
    model = Classifier.load(own_run)
    names, owner = names_and_owners(model.labels.names, [label.alt_names for label in model.labels])
    fitted = TfidfFeatures(max_df=model.features.max_df, language="en", pairs="yes")
    fitted.fit(texts, names)
    known = {term: j for j, term in enumerate(model.features.terms_)}
    assert set(fitted.terms_) <= set(known)
    columns = [known[term] for term in fitted.terms_]
    assert model.features.idf_[columns] == pytest.approx(fitted.idf_, abs=1e-6)
    assert np.array_equal(model.names.owner, owner)
    found = model.names.names[:, columns].toarray()
    assert found == pytest.approx(fitted.transform(names).toarray(), abs=1e-6)
    expected = fitted.transform(dataset.train.texts).toarray()
    assert model.training.vectors[:, columns].toarray() == pytest.approx(expected, abs=1e-6)


def test_affected_labels_are_solved_as_liblinear_solves_them_and_others_stay(run, dataset):
    before = Classifier.load(run.path)
    lesson, _ = learn(run)
    after = Classifier.load(run.path)
    affected = [after.labels.index(x) for x in ("77", "1590", "2560", "17")]
    others = np.setdiff1d(np.arange(12), affected)
    assert (lesson.documents, lesson.labels) == (4, 4)
    moved = Renewal(before.features.idf_, after.features).weights(before.svm.weights_)
    assert (after.svm.weights_[others] != moved[others]).nnz == 0
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
        sure = np.abs(size - after.svm.cull) > 0.04  # of being dropped, or not
        found = after.svm.weights_[[j]].toarray()[0]
        assert found[sure] == pytest.approx(w[sure], abs=0.04)
        assert np.linalg.norm((found - w)[sure]) < 0.1 * np.linalg.norm(w)
        bonus = after.svm.rare_bonus * np.log(y.sum())
        assert after.svm.bias_[j] == pytest.approx(oracle.intercept_[0] - bonus, abs=0.02)
        assert after.train_counts[j] == y.sum()
    assert after.n_train == 51


def test_labels_of_changed_training_documents_are_solved_from_the_beginning(run, monkeypatch):
    told = []

    def taking_in(svm, fitted, n_fitted, labels, X, Y, altered):
        assert fitted.weights_.shape == svm.weights_.shape  # over the same terms
        told.append(({run.labels[j].id for j in altered.tolist()}, n_fitted, X.shape[0]))
        return svm

    monkeypatch.setattr("depl.pipeline.learn.take_in", taking_in)
    learn(run)
    n = run.Y.shape[0]
    # Its text is another and it carries one label more; the new documents alter nothing.
    assert told == 2 * [({"17", "2560"}, n, n + 3)]  # words, and characters
    FeedbackStore(run.path).add(PLANES, [Decision("77", "added"), Decision("17", "rejected")])
    told.clear()
    learn(run)
    assert told == 2 * [({"17"}, n, n + 4)]  # of those that are learnt


def test_a_large_run_takes_new_documents_in_near_the_weights_of_the_fit(own_run, monkeypatch):
    for text in BEES:
        FeedbackStore(own_run).add(text, [Decision("77", "added")])
    before = Classifier.load(own_run)
    learn(Run(own_run))
    exact = Classifier.load(own_run).svm
    Run(own_run).learned.undo()
    monkeypatch.setattr("depl.sparse.updating._FEW", 0)
    learn(Run(own_run))
    after = Classifier.load(own_run)
    j = after.labels.index("77")
    found, best = (x.weights_[[j]].toarray()[0] for x in (after.svm, exact))
    assert not np.array_equal(found, best)
    assert found @ best > 0.97 * np.linalg.norm(found) * np.linalg.norm(best)
    text = "Subsidies for alpine beehives"
    p = [{x.label.id: x.probability for x in m.explain_best(text, 3)} for m in (before, after)]
    assert p[1]["77"] > p[0].get("77", 0)


def test_the_svm_on_characters_learns_too(run, dataset):
    before = Classifier.load(run.path).state.characters
    learn(run)
    after = Classifier.load(run.path)
    part = after.state.characters
    affected = np.sort([after.labels.index(x) for x in ("77", "1590", "2560", "17")])
    others = np.setdiff1d(np.arange(12), affected)
    assert (part.svm.weights_[others] != before.svm.weights_[others]).nnz == 0
    texts = ["The bottling of wine", *dataset.train.texts[1:], *BEES]
    Y = np.vstack([dataset.train.Y.toarray(), np.zeros((3, 12), np.float32)])
    Y[-3:, after.labels.index("77")] = 1
    Y[0, after.labels.index("17")] = 1
    settings = {"C": part.svm.C, "cull": part.svm.cull, "rare_bonus": part.svm.rare_bonus}
    X = before.features.transform(texts)
    expected = OneVsAllSVM(**settings).fit(X, csr_array(Y[:, affected]))
    found, fitted = part.svm.weights_[affected].toarray(), expected.weights_.toarray()
    both = (found != 0) & (fitted != 0)
    assert found[both] == pytest.approx(fitted[both], abs=0.04)
    assert np.abs(found - fitted)[~both].max() < part.svm.cull + 0.04  # dropped by one of them
    assert part.svm.bias_[affected] == pytest.approx(expected.bias_, abs=0.04)
    assert np.abs(found - before.svm.weights_[affected].toarray()).max() > 0.1


def test_what_was_learnt_votes_for_texts_that_are_like_it(run, dataset):
    learn(run)
    near = Classifier.load(run.path).state.word_neighbours
    model = Classifier.load(run.path)
    asked = model.features.transform([BEES[1], "The bottling of wine"])
    nearest = near.nearest(asked)
    n = len(dataset.train)
    assert set(nearest.indices[0, :3].tolist()) == {n, n + 1, n + 2}
    assert nearest.scores[:, 0] == pytest.approx([1, 1], abs=1e-6)
    assert nearest.indices[1, 0] == run.train().ids.index("train-1")
    expected = (asked @ near_vectors(model, dataset).T).toarray()
    found = np.sort(nearest.scores[np.isfinite(nearest.scores)])
    assert found == pytest.approx(np.sort(expected[expected > 0]), abs=1e-6)
    assert near.rank(asked, 3).indices[0, 0] == model.find("77")


def near_vectors(model, dataset):
    """The vectors of all documents, of which one has another text now."""
    texts = list(dataset.train.texts)
    texts[dataset.train.ids.index("train-1")] = "The bottling of wine"
    return model.features.transform([*texts, *BEES])


def test_what_was_learnt_is_suggested_and_described(run):
    text = "Subsidies for alpine beehives"
    before = Classifier.load(run.path).card(11)
    assert before.training_documents == 0
    learn(run)
    model = Classifier.load(run.path)
    card = model.card(11)
    assert card.training_documents == 3
    assert {"beehive", "alpine", "hill"} <= {term for term, _ in card.keywords}
    assert "alpine" in card.description
    assert model.explain(text, "77").keywords
    p = {x.label.id: x.probability for x in model.explain_best(text, 3)}
    assert next(iter(p)) == "77"


def test_every_lesson_can_be_undone_one_after_the_other(run):
    def weights():
        return Classifier.load(run.path).svm.weights_

    def same(one, other):
        return one.shape == other.shape and (one != other).nnz == 0

    states = [weights()]
    versions = [run.version()]
    for text in (None, PLANES, "Flights of airlines to airports"):
        if text:
            FeedbackStore(run.path).add(text, [Decision("4512", "accepted")])
        learn(run)
        states.append(weights())
        versions.append(run.version())
    assert len(set(versions)) == 4
    assert sorted(x.name for x in (run.path / "learned").iterdir()) == ["2", "3", "current.json"]
    assert run.learned.undo() == 2
    assert same(weights(), states[2])
    assert run.learned.undo() == 0  # the first is gone: as it was fitted
    assert same(weights(), states[0])
    assert run.version() == versions[0]
    with pytest.raises(RunError, match="nothing to undo"):
        run.learned.undo()
    learn(run)  # and again, all at once
    assert run.learned.lesson(run.learned.current()).documents == 6


def test_learning_again_changes_nothing_until_there_is_something_new(run):
    learn(run)
    lesson, _ = learn(run)
    assert (lesson.labels, run.learned.current()) == (0, 1)
    store = FeedbackStore(run.path)
    for entry in store.history():
        store.undo(entry.number)
    learn(run)  # what was undone is unlearnt
    fitted, model = Run(run.path), Classifier.load(run.path)
    assert np.array_equal(model.train_counts, fitted.train_counts()[0])
    assert model.features.idf_[: len(fitted.features().idf_)] == pytest.approx(
        fitted.features().idf_, abs=1e-6
    )
    assert not np.isfinite(model.svm.bias_[11])
    run.learned.undo(), run.learned.undo()
    with pytest.raises(RunError, match="nothing to learn"):
        learn(run)


def test_portions_are_learnt_as_all_of_it_at_once_is(run):
    store, whole = FeedbackStore(run.path), run.path.with_name("whole")
    learn(run)
    store.add(PLANES, [Decision("4512", "accepted"), Decision("77", "rejected")])
    shutil.copytree(run.path, whole)
    shutil.rmtree(whole / "learned")
    learn(run)
    learn(Run(whole))
    one, other = Classifier.load(run.path), Classifier.load(whole)
    assert set(one.features.terms_) == set(other.features.terms_)
    place = {term: j for j, term in enumerate(other.features.terms_)}
    columns = [place[term] for term in one.features.terms_]
    assert one.features.idf_ == pytest.approx(other.features.idf_[columns], abs=1e-6)
    assert np.array_equal(one.train_counts, other.train_counts)
    documents = [FeedbackStore(x).documents()[-1].text for x in (run.path, whole)]
    ranked = [x.predict(documents, k=3).scores for x in (one, other)]
    assert ranked[0] == pytest.approx(ranked[1], abs=0.05)


def go_through(path, texts, by="Ada"):
    """Judge all suggestions for some texts: only those of the label 4512 are right."""
    model = Classifier.load(path)
    store = FeedbackStore(path, model.version)
    store.add("The bottling of wine", [Decision("17", "added")], id="train-1", by=by)
    for text, shown in zip(texts, model.predict(texts, 12).rows(model.labels), strict=True):
        right = [x.id == "4512" for x, _ in shown]
        decisions = [
            Decision(x.id, "accepted" if yes else "rejected", float(p))
            for (x, p), yes in zip(shown, right, strict=True)
        ]
        store.add(text, decisions, by=by)


def test_the_fusion_learns_from_what_was_suggested_before(own_run):
    texts = [[f"{PLANES} {i} {word}" for i in range(3)] for word in ("wine", "olive zeppelins")]
    run, fitted = Run(own_run), Fusion.load(own_run / "fusion")
    expected = []
    for number, some in enumerate(texts, 1):
        model = Classifier.load(own_run)
        parts = model.state.rank(some, model.fusion.depth_)
        known = model.train_counts, None, model.state.facts
        rows, labels, X = candidate_pairs(parts, fitted.candidates, *known)
        log_odds = model.fusion.log_odds(X)
        expected += [
            dict(zip(labels[rows == i], log_odds[rows == i], strict=True)) for i in (0, 1, 2)
        ]
        go_through(own_run, some)
        learn(run)
        studied = run.learned.documents(number)
        foreseen = studied.foreseen
        assert len(foreseen.ids) == 3 * number
        for i, by_label in enumerate(expected):
            mine = slice(*foreseen.ends[i : i + 2])
            own = [by_label[j] for j in foreseen.labels[mine]]
            assert foreseen.log_odds[mine] == pytest.approx(own, abs=1e-5)
        judged = dict.fromkeys(foreseen.ids, range(12))
        carried = {id: said.carried for id, said in studied.verdicts.items()}
        assert {carried[id] for id in foreseen.ids} == {(model.labels.index("4512"),)}
        n_fitted, n_train = len(run.slice.held_out), run.train_counts()[1]
        new = updated(fitted, n_fitted, n_train, foreseen, judged, foreseen.ids, carried)
        assert run.fusion().line == pytest.approx(new.line)
        assert run.fusion().log_odds(X) == pytest.approx(new.log_odds(X))
        assert not np.allclose(new.log_odds(X), fitted.log_odds(X))
    assert new.line != fitted.line
    run.learned.undo(), run.learned.undo()
    assert run.fusion().line == fitted.line


def test_whoever_only_accepts_or_rejects_teaches_the_fusion_nothing(own_run):
    fitted = Fusion.load(own_run / "fusion")
    for i, verdict in enumerate(["accepted", "rejected"]):
        said = [Decision(x, verdict, 0.9) for x in ("4512", "17", "2560", "1590", "77")]
        FeedbackStore(own_run).add(f"{PLANES} {i}", said, by=verdict)
    learn(Run(own_run))
    assert Run(own_run).fusion().line == fitted.line
    store = FeedbackStore(own_run)
    store.add(f"{PLANES} 2", [Decision("17", "rejected", 0.9)], by="accepted")  # not any more
    learn(Run(own_run))
    assert Run(own_run).fusion().line != fitted.line
    store.undo(store.last().number)
    learn(Run(own_run))
    assert Run(own_run).fusion().line == fitted.line


def test_a_state_of_another_layout_is_not_used_and_learnt_again(run):
    learn(run)
    facts = run.path / "learned" / "1" / "learned.json"
    facts.write_text(facts.read_text().replace('"layout": 5', '"layout": 4'))
    pointer = {"current": 1, "facts": hashlib.sha256(facts.read_bytes()).hexdigest()}
    (run.path / "learned" / "current.json").write_text(json.dumps(pointer))
    assert Classifier.load(run.path).n_train == 48
    learn(run)
    assert (run.learned.current(), Classifier.load(run.path).n_train) == (2, 51)


def test_a_state_that_is_not_pointed_to_is_not_used(run):
    learn(run)
    version = run.version()
    shutil.copytree(run.path / "learned" / "1", run.path / "learned" / "2")  # a kill before the end
    assert run.version() == version
    FeedbackStore(run.path).add(PLANES, [Decision("4512", "accepted")])
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
    assert "alpine" in card.description
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


@pytest.mark.parametrize(
    ("name", "how", "remedy"),
    [
        ("current.json", "deleted", "again"),
        ("current.json", "another type", "undo"),
        ("current.json", "changed", "undo"),
        ("1/learned.json", "changed", "again"),
        ("1/learned.json", "another type", "undo"),
        ("1/svm.safetensors", "emptied", "again"),
    ],
)
def test_whatever_is_damaged_can_be_learnt_again_or_undone(run, name, how, remedy):
    learn(run)
    before = Classifier.load(run.path).train_counts
    path = run.path / "learned" / name
    if how == "deleted":
        path.unlink()
    else:
        changed = path.read_bytes().replace(b'"current": 1', b'"current": 7')
        raw = {"emptied": b"", "another type": b"[1]", "changed": changed.replace(b"5", b"6")}
        path.write_bytes(raw[how])
    with pytest.raises(RunError, match=r"\.(json|safetensors) .* depl learn"):
        Classifier.load(run.path)
    if remedy == "undo":
        assert depl("learn", run.path, "--undo").startswith("Undone:")
        assert Classifier.load(run.path).n_train == 48
    assert depl("learn", run.path).startswith("Learnt")
    assert Classifier.load(run.path).train_counts.tolist() == before.tolist()


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
    assert depl("learn", run.path).startswith("There is nothing new")
    FeedbackStore(run.path).add(PLANES, [Decision("4512", "accepted")])
    facts = json.loads(depl("learn", run.path, "--json"))
    assert (facts["state"], facts["documents"], facts["unknown_labels"]) == (2, 6, ["new-1"])
    assert json.loads(depl("learn", run.path, "--undo", "--json"))["state"] == 1
    assert "as it was fitted" in depl("learn", run.path, "--undo")
