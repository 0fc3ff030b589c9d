"""A fitted run: suggestions against dense arithmetic, labels by id and name, damaged folders."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import ConfigError, CorpusError, DeplError, RunError
from depl.core.ranking import Ranking
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.folder import Run


@pytest.fixture(scope="module")
def model(fitted_run: Path) -> Classifier:
    return Classifier.load(fitted_run)


def renamed(model: Classifier, labels: list[Label]) -> Classifier:
    """The same classifier over labels of other names."""
    labels = LabelSet([*labels, *model.labels[len(labels) :]])
    return Classifier(replace(model.state, labels=labels), n_train=model.n_train)


# Suggestions


def test_the_svm_ranks_by_the_scores_of_the_linear_model(model: Classifier, dataset: Dataset):
    texts = dataset.dev.texts
    dense = model.features.transform(texts).toarray() @ model.svm.weights_.toarray().T
    dense += model.svm.bias_
    ranking = model.parts(texts, k=4)["svm"]
    assert ranking.indices.shape == ranking.scores.shape == (len(texts), 4)
    for i, row in enumerate(dense):
        best = sorted(range(len(row)), key=lambda j, row=row: (-row[j], j))[:4]
        assert ranking.indices[i].tolist() == best
        np.testing.assert_allclose(ranking.scores[i], row[best], atol=1e-5)


def test_suggestions_are_right_where_the_words_leave_no_doubt(model: Classifier):
    texts = [
        "virgin olive oil",
        "radioactive waste of a nuclear reactor",
        "herring and cod vessels",
    ]
    best = model.predict(texts, k=1).indices[:, 0]
    assert [model.labels[j].name for j in best] == ["olive oil", "nuclear safety", "fishing quota"]


def test_a_sparse_run_can_suggest_by_a_part_and_has_no_neural_ones(fitted_run: Path):
    texts = ["wine", "virgin olive oil"]
    by_svm = Classifier.load(fitted_run, "svm")
    expected = by_svm.all_rankings(texts, 3)["svm"]
    assert (by_svm.predict(texts, 3).indices == expected.indices).all()
    assert not by_svm.gives_probabilities
    with pytest.raises(ConfigError, match=r"no model 'depl\+c'.*It has fusion, svm, names\."):
        Classifier.load(fitted_run, "depl+c").predict(texts, 3)
    with pytest.raises(ConfigError, match=r"model must be one of 'fusion', .*; got 'magic'"):
        Classifier.load(fitted_run, "magic")


def test_five_labels_are_the_default(model: Classifier):
    assert model.predict(["wine"]).k == 5


def test_labels_without_training_documents_are_suggested_by_name_alone(model: Classifier):
    texts = ["bee-keeping: bees, honey, apiculture", "", "wine"]
    unseen = model.labels.index("77")
    ranking = model.predict(texts, k=20)
    assert [unseen in row for row in ranking.indices.tolist()] == [True, False, False]
    assert [len(row) for row in ranking.rows(model.labels)] == [12, 11, 11]
    by_svm = model.all_rankings(texts, k=20)["svm"]
    for row, scores in zip(by_svm.indices.tolist(), by_svm.scores.tolist(), strict=True):
        assert sorted(row[:11]) == list(range(11))  # all others are there, once
        assert row[11:] == [-1] * 9
        assert scores[11:] == [-np.inf] * 9


def test_text_without_a_known_word_is_ranked_by_the_biases(model: Classifier):
    ranking = model.all_rankings(["", "xyzzy"], k=3)["svm"]
    order = sorted(range(12), key=lambda j: -model.svm.bias_[j])[:3]
    assert ranking.indices.tolist() == [order, order]


def test_single_text_is_refused_with_the_remedy(model: Classifier):
    with pytest.raises(
        CorpusError, match=r"A list of texts is needed; got a single text\. Put it in"
    ):
        model.predict("sparkling wine")


def test_no_texts_give_a_ranking_without_rows(model: Classifier):
    assert model.predict([], k=3).indices.shape == (0, 3)


def test_no_labels_asked_for_are_none_or_an_error_but_nothing_worse(model: Classifier, monkeypatch):
    memory = np.full((4, 50, 2), 77, np.int32)  # there is room around the arrays without width

    def guarded(n: int, k: int) -> Ranking:
        assert (n, k) == (50, 0)
        return Ranking(memory[1, :, 1:1], memory[2, :, 1:1].view(np.float32))

    monkeypatch.setattr(Ranking, "empty", guarded)
    X = model.features.transform(["sparkling wine"] * 50)
    with suppress(DeplError):
        assert model.svm.rank(X, k=0).indices.shape == (50, 0)
    assert (memory == 77).all()


# Labels


def test_label_is_found_by_id_or_by_name_whatever_the_case(model: Classifier):
    assert model.find("2560") == 0
    assert model.find("wine") == model.find("WINE") == 0
    assert model.find("Bee-Keeping") == model.find("77") == 11


def test_id_goes_before_a_name(model: Classifier):
    assert renamed(model, [Label("1", "17"), Label("17", "1")]).find("17") == 1


def test_name_of_several_labels_is_refused_with_their_ids(model: Classifier):
    twins = renamed(model, [Label("a1", "Bank"), Label("a2", "other"), Label("a3", "bank")])
    with pytest.raises(CorpusError, match=r"2 labels are named 'bank'\. Give the id: a1, a3\."):
        twins.find("bank")


def test_unknown_label_is_refused_with_names_that_contain_it(model: Classifier):
    with pytest.raises(CorpusError, match=r"4512 \(air transport\); 4523 \(rail transport\)\."):
        model.find("transport")
    with pytest.raises(CorpusError, match=r"No label has the id or name 'zzz'.*labels RUN list"):
        model.find("zzz")


def test_card_tells_what_is_known_about_a_label(model: Classifier, dataset: Dataset):
    card = model.card(0)
    assert card.label == dataset.labels[0]
    assert card.training_documents == dataset.train.label_counts[0] == 6
    assert card.description.startswith("wine ")
    weights = model.svm.weights_.toarray()[0]
    terms = model.features.terms_
    grammar = {terms.index(word) for word in terms if word in model.features.stop_terms()}
    assert any(weights[t] > 0 for t in grammar)
    pairs = {t for t, term in enumerate(terms) if " " in term}
    X = model.features.transform(dataset.train.texts)
    once = {*np.flatnonzero(np.bincount(X.indices, minlength=len(terms)) == 1)}
    words = {*np.flatnonzero(weights > 0)} - grammar - pairs - once
    best = sorted(words, key=lambda t: (-weights[t], t))[:20]
    assert [term for term, _ in card.keywords] == [model.features.terms_[t] for t in best]
    np.testing.assert_allclose([w for _, w in card.keywords], weights[best])


def test_card_of_a_label_without_training_documents_has_its_other_names(model: Classifier):
    card = model.card(11)
    assert (card.training_documents, card.keywords) == (0, [])
    assert card.description == "bee-keeping apiculture honey production"


@pytest.mark.parametrize("text", ["Wines, WINE and grapes: customs duties on wine", "xyzzy", ""])
@pytest.mark.parametrize("position", [0, 1, 11])
def test_matched_keywords_are_what_each_word_adds_to_the_score(
    model: Classifier, text: str, position: int
):
    x = model.features.transform([text]).toarray()[0]
    adds = x * model.svm.weights_.toarray()[position]
    keywords = {term for term, _ in model.keywords[position]}
    expected = {
        term: value
        for term, value in zip(model.features.terms_, adds.tolist(), strict=True)
        if value > 0 and term in keywords
    }
    matched = model.matched_keywords(text, position)
    assert {x.term: x.contribution for x in matched} == pytest.approx(expected, abs=1e-6)
    values = [x.contribution for x in matched]
    assert values == sorted(values, reverse=True)


def test_matched_keywords_and_all_other_words_add_up_to_the_score(model: Classifier):
    text, wine = "Sparkling wines made from grapes of steep vineyards", 0
    keywords = {term for term, _ in model.keywords[wine]}
    x = model.features.transform([text]).toarray()[0]
    others = np.array([term not in keywords for term in model.features.terms_])
    rest = (x * model.svm.weights_.toarray()[wine])[others].sum() + model.svm.bias_[wine]
    ranking = model.parts([text], k=11)["svm"]
    score = ranking.scores[0, ranking.indices[0].tolist().index(wine)]
    total = sum(x.contribution for x in model.matched_keywords(text, wine))
    assert total + rest == pytest.approx(score, abs=1e-5)


# Loading


def test_loading_needs_no_more_than_the_folder(model: Classifier, own_run: Path, dataset: Dataset):
    moved = own_run.rename(own_run.with_name("elsewhere"))
    again = Classifier.load(str(moved))
    assert again.name == "elsewhere"
    assert again.labels == dataset.labels
    assert again.n_train == len(dataset.train)
    assert again.train_counts.tolist() == dataset.train.label_counts.tolist()
    expected = model.predict(dataset.dev.texts)
    got = again.predict(dataset.dev.texts)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.scores, expected.scores)


def test_missing_folder_is_said_with_the_way_to_make_it(tmp_path: Path):
    with pytest.raises(RunError, match=r"no run folder .*nowhere.*depl fit CORPUS --out .*nowhere"):
        Classifier.load(tmp_path / "nowhere")


def test_folder_that_is_no_run_is_said(corpus_folder: Path):
    with pytest.raises(RunError, match=r"laws is not a run folder: it has no manifest\.json"):
        Classifier.load(corpus_folder)


@pytest.mark.parametrize("until", ["corpus", "features", "linear"])
def test_unfinished_run_is_said_with_the_way_to_finish_it(
    dataset: Dataset, tmp_path: Path, until: str
):
    fit(dataset.train, tmp_path / "half", until=until)
    with pytest.raises(RunError, match=r"half has no finished '\w+' stage\. .* it continues where"):
        Classifier.load(tmp_path / "half")


def test_new_settings_of_a_fit_that_stopped_early_do_not_change_what_is_there(
    own_run: Path, dataset: Dataset
):
    texts = ["Bottled sparkling wines", "fisheries: catches of herrings"]
    before = Classifier.load(own_run).predict(texts)
    words = Config.load(overrides=["features.analyzer=words"])
    fit(dataset.train, own_run, words, until="corpus")  # the old features stage is still whole
    try:
        after = Classifier.load(own_run).predict(texts)
    except RunError:
        return  # a run that says it is unfinished misleads nobody
    np.testing.assert_array_equal(after.scores, before.scores)


def test_weights_are_kept_with_the_setting_they_were_solved_for(dataset: Dataset, tmp_path: Path):
    asked = {"loss": "hinge", "C": 0.125, "cull": 0.2, "rare_bonus": 0.0, "tol": 0.01}
    overrides = [f"linear.{name}={value}" for name, value in asked.items()]
    fit(dataset.train, tmp_path / "r", Config.load(overrides=overrides), until="linear")
    svm = Run(tmp_path / "r").svm()
    assert {name: getattr(svm, name) for name in asked} == asked


@pytest.mark.parametrize("depth", [2, 7])
def test_parts_rank_as_many_labels_as_the_fusion_was_fitted_on(
    dataset: Dataset, tmp_path: Path, depth: int
):
    config = Config.load(overrides=[f"fusion.depth={depth}", "fusion.candidates=2"])
    fit(dataset.train, tmp_path / "r", config)
    model = Classifier.load(tmp_path / "r")
    assert model.fusion.depth_ == depth
    assert {x.k for x in model.parts(dataset.dev.texts).values()} == {depth}
    parts, facts = model.parts(dataset.dev.texts, depth), model.state.facts
    fused = model.fusion.rank(parts, model.train_counts, 3, facts=facts)
    together = model.all_rankings(dataset.dev.texts, 3)["fusion"]
    for ranking in (model.predict(dataset.dev.texts, 3), together):
        np.testing.assert_array_equal(ranking.scores, fused.scores)


def test_training_documents_come_back(fitted_run: Path, dataset: Dataset):
    run = Run.open(fitted_run)
    train: Corpus = run.train()
    assert (train.ids, train.texts) == (dataset.train.ids, dataset.train.texts)
    np.testing.assert_array_equal(train.Y.toarray(), dataset.train.Y.toarray())
    np.testing.assert_allclose(
        run.train_vectors().toarray(), run.features().transform(train.texts).toarray(), atol=1e-6
    )
    assert run.config() == Config()
