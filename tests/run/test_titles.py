"""Titles are ranked on their own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from depl.core.corpus import Corpus, Label
from depl.core.ranking import Ranking
from depl.core.texts import title_of
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.titles import Titles

TITLED = ["title svm", "title names", "title name coverage", "title whole names"]
BODY = "\n\nHaving regard to the Treaty, and to the proposal from the Commission."


def with_bodies(corpus: Corpus) -> Corpus:
    return replace(corpus, texts=[text + BODY for text in corpus.texts])


@pytest.fixture(scope="module")
def titled_run(dataset, tmp_path_factory) -> Path:
    return fit(with_bodies(dataset.train), tmp_path_factory.mktemp("titles") / "run").path


def test_the_title_is_the_first_line_of_several():
    assert title_of("The wine market\nA survey.\nIts parts.") == "The wine market"
    assert title_of("\n  The wine market \r\n\r\nA survey.") == "The wine market"
    for text in ("", "A survey.", "A survey.\n\n  ", "\n A survey."):
        assert title_of(text) == ""


def test_documents_without_a_title_get_no_labels_by_it():
    titles = Titles.of(["no title", "a title\nof two lines", "", "another\none"])
    assert titles.texts == ["a title", "another"]
    assert titles.rows.tolist() == [1, 3]
    ranking = Ranking(np.array([[4, 2], [7, -1]]), np.array([[0.9, 0.1], [0.5, -np.inf]]))
    whole = titles.parts({"svm": ranking})["title svm"]
    assert whole.indices.tolist() == [[-1, -1], [4, 2], [-1, -1], [7, -1]]
    np.testing.assert_array_equal(whole.scores[[1, 3]], ranking.scores.astype(np.float32))
    assert np.all(np.isneginf(whole.scores[[0, 2]]))


@pytest.mark.parametrize(("n", "usual"), [(1, False), (2, True), (4, True), (0, False)])
def test_titles_are_usual_where_half_of_the_documents_have_one(n, usual):
    assert Titles.of(["a\nb"] * n + ["c"] * (4 - n)).usual == usual
    assert not Titles.of([]).usual


def test_titles_have_vectors_in_the_order_of_the_documents(titled_run):
    features = Classifier.load(titled_run).features
    titles = Titles.of(["no title", "wine market\nof two lines", "", "customs duty\none"])
    found = titles.vectors(features).toarray()
    np.testing.assert_array_equal(found[[1, 3]], features.transform(titles.texts).toarray())
    assert not found[[0, 2]].any()
    assert Titles.of([]).vectors(features).shape == (0, len(features.terms_))


def test_titles_of_training_documents_are_ranked_where_they_are_usual_or_wanted():
    many, few = ["a\nb", "c\nd", "e"], ["a\nb", "c", "d"]
    assert Titles.ranked(many, "auto").texts == Titles.ranked(many, "yes").texts == ["a", "c"]
    assert Titles.ranked(few, "yes").texts == ["a"]
    for texts, setting in ((few, "auto"), (many, "no")):
        none = Titles.ranked(texts, setting)
        assert (none.texts, none.rows.tolist(), none.n) == ([], [], 3)


def test_a_title_speaks_for_an_added_label(titled_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(titled_run, run)
    model = Classifier.load(run)
    body = "A text about wine and customs."
    model.add_labels([Label("m", "Monopile")], examples={"m": [f"The monopile at sea\n\n{body}"]})
    of_title, of_text = f"The monopile\n\n{body}", f"A report\n\nThe monopile. {body}"
    odds = [model.explain(text, "m").probability for text in (of_title, of_text)]
    assert odds[0] > odds[1]
    parts = {part.name: part for part in model.explain(of_title, "m").parts}
    assert parts["title names"].score > 0 < parts["title examples"].score
    assert parts["title names"].contribution + parts["title examples"].contribution > 0
    untitled = model.explain("The monopile", "m")
    assert not [part for part in untitled.parts if part.name.startswith("title")]


def test_a_run_ranks_titles_by_words_and_names(titled_run, dataset):
    model = Classifier.load(titled_run)
    assert [x for x in model.fusion.parts_ if x.startswith("title")] == TITLED
    corpus = with_bodies(dataset.dev)
    parts, state = model.parts(corpus.texts, k=5), model.state
    titles, features = dataset.dev.texts, state.features
    X = features.transform(titles)
    by_names = state.names.parts(titles, X, features, 5)
    expected = {"svm": state.svm.rank(X, 5), **by_names}
    for name, ranking in expected.items():
        np.testing.assert_array_equal(parts[f"title {name}"].indices, ranking.indices)
        np.testing.assert_array_equal(parts[f"title {name}"].scores, ranking.scores)
    wine = corpus.texts[0]
    assert model.labels[int(model.predict([wine], k=1).indices[0, 0])].id == "2560"
    assert {x.name for x in model.explain(wine, label="2560").parts} >= set(TITLED)


def test_texts_of_one_line_are_suggested_for_all_the_same(titled_run, dataset):
    model = Classifier.load(titled_run)
    texts = [dataset.dev.texts[0], dataset.dev.texts[1] + BODY, ""]
    together = model.predict(texts, k=3)
    assert np.all(model.parts(texts)["title svm"].indices[[0, 2]] == -1)
    for i, text in enumerate(texts):
        np.testing.assert_array_equal(model.predict([text], k=3).indices[0], together.indices[i])


def test_titles_are_left_alone_where_there_are_none_or_nobody_wants_them(
    titled_run, fitted_run, dataset, tmp_path
):
    assert not any(x.startswith("title") for x in Classifier.load(fitted_run).fusion.parts_)
    for corpus, titles in ((with_bodies(dataset.train), "no"), (dataset.train, "yes")):
        run = fit(corpus, tmp_path / titles, Config.load(None, [f"fusion.titles={titles}"])).path
        model = Classifier.load(run)
        assert not any(x.startswith("title") for x in model.fusion.parts_)
    # What this run has not learnt the worth of is no evidence for added labels, either.
    model.add_labels([Label("m", "monopile")], examples={"m": ["A monopile at sea\n" + BODY]})
    found = model.explain("Monopile\n" + BODY, "m")
    assert not [part for part in found.parts if part.name.startswith("title")]
    newcomers = model.state.newcomers
    assert not newcomers.titles(["Monopile\n" + BODY]).nnz


def test_an_encoder_compares_titles_with_names(two_words_a_label, tiny_folder, tmp_path):

    corpus = two_words_a_label(60, 8, slice(0, None))
    corpus = replace(corpus, texts=[f"{text}\nmore of it" for text in corpus.texts])
    quick = ["retrieval.epochs=1", "classifier.epochs=0", "encoder.training=frozen"]
    config = Config.load(None, [*quick, f"encoder.name='{tiny_folder}'"])
    model = Classifier.load(fit(corpus, tmp_path / "run", config).path)
    assert "title name retrieval" in model.fusion.parts_
    found = model.parts(corpus.texts[:5], k=3)["title name retrieval"]
    retriever = model.state.retriever
    own = retriever.encode([title_of(text) for text in corpus.texts[:5]])
    expected = retriever.retriever.rank(own, 3)["name retrieval"]
    np.testing.assert_array_equal(found.indices, expected.indices)
