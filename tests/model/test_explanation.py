"""Explanations against dense arithmetic, and places of words against the analyzer itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simplemma import lemmatize
from typer.testing import CliRunner

from depl.cli.app import app
from depl.cli.console import out
from depl.core.corpus import Dataset
from depl.core.errors import CorpusError, RunError
from depl.core.ranking import Ranking
from depl.model.classifier import Classifier
from depl.model.explanation import Explanation
from depl.model.reasons import Match
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.sparse.languages import fold
from depl.sparse.tfidf import TfidfFeatures

TEXT = "Wines, WINE and grapes: customs duties on the wine of steep vineyards in İzmir"


@pytest.fixture(scope="module")
def model(fitted_run: Path) -> Classifier:
    return Classifier.load(fitted_run)


@pytest.fixture(scope="module")
def half(dataset: Dataset, tmp_path_factory) -> Classifier:
    """A run fitted no further than its descriptions."""
    path = tmp_path_factory.mktemp("half") / "run"
    return Classifier.load(fit(dataset.train, path, Config(), until="descriptions").path)


# Places


@given(st.text(alphabet="abİIßΣσ é7_-. \n😀winesWINESﬁu\u0308e\u0301", max_size=40))
def test_places_of_words_hold_what_is_counted(text):
    features = TfidfFeatures(analyzer="words", language="en", min_df=1, max_df=1.0)
    features.fit([text, "vineyard"])
    places = features.places(text, features.terms_)
    assert {*places, "vineyard"} == set(features.terms_)
    for term, spans in places.items():
        for start, end in spans:
            # Case-folded, because a sigma's lower case depends on what follows; inside, because a
            # ligature belongs to a word as a whole.
            assert term.casefold() in fold(text[start:end]).casefold()
    ends = [span for spans in places.values() for span in spans]
    assert len(ends) == len(set(ends))


def test_places_are_those_of_every_form_of_a_lemma():
    features = TfidfFeatures(language="en").fit([TEXT, TEXT, "other"])
    places = features.places(TEXT, {"wine", "duty", "vineyard", "absent"})
    assert set(places) == {"wine", "duty", "vineyard"}
    assert [TEXT[a:b] for a, b in places["wine"]] == ["Wines", "WINE", "wine"]
    for term, spans in places.items():
        for start, end in spans:
            assert lemmatize(TEXT[start:end].lower(), lang="en").lower() == term


def test_places_behind_a_letter_that_grows_in_lower_case_are_of_the_text_itself():
    text = "İİİ İstanbul wines İ wine"
    features = TfidfFeatures(language="en", min_df=1, max_df=1.0).fit([text])
    [spans] = features.places(text, {"wine"}).values()
    assert [text[a:b] for a, b in spans] == ["wines", "wine"]


# Sums


@pytest.mark.parametrize("label", ["2560", "17", "4347"])
@pytest.mark.parametrize("text", [TEXT, "xyzzy", ""])
def test_keywords_other_words_and_bias_add_up_to_the_score_of_the_svm(model, text, label):
    position = model.find(label)
    x = model.features.transform([text]).toarray()[0].astype(np.float64)
    adds = x * model.svm.weights_.toarray()[position]
    e = model.explain(text, label)
    assert e.svm.score == pytest.approx(adds.sum() + model.svm.bias_[position], abs=1e-5)
    assert e.svm.keywords + e.svm.other_words + e.svm.bias == pytest.approx(e.svm.score)
    assert e.svm.keywords == pytest.approx(sum(k.contribution for k in e.keywords))
    for match in e.keywords:
        column = model.features.terms_.index(match.term)
        assert match.contribution == pytest.approx(adds[column], abs=1e-6)
        assert match.contribution == pytest.approx(match.weight * x[column], abs=1e-6)
    assert e.keywords == model.matched_keywords(text, position)


def test_matched_words_stand_where_they_are_said_to(model):
    e = model.explain(TEXT, "wine")
    assert e.keywords[0].term == "wine"
    assert [TEXT[a:b] for a, b in e.keywords[0].spans] == ["Wines", "WINE", "wine"]
    for match in (*e.keywords, *e.name_words):
        assert match.spans
        for a, b in match.spans:
            assert lemmatize(TEXT[a:b].lower(), lang="en").lower() == match.term


def test_name_words_add_up_to_their_share_of_the_cosine_with_the_best_name(model):
    text = "Honey production: the production of honey by bees"
    e = model.explain(text, "77")
    x = model.features.transform([text]).toarray()[0]
    names = model.names.names.toarray()[model.names.owner == 11]
    best = names[np.argmax(names @ x)] * x
    words = [" " not in term for term in model.features.terms_]
    assert {m.term for m in e.name_words} == {"honey", "production"}
    assert sum(m.contribution for m in e.name_words) == pytest.approx(best[words].sum())
    assert best[words].sum() < best.sum()  # two words in a row count, too
    assert e.svm is None
    assert e.keywords == []


# Parts, probability, rank


def test_first_suggestions_are_explained_with_their_probabilities_and_ranks(model):
    found = model.explain_best(TEXT, 4)
    ranking = model.predict([TEXT], 4)
    assert [e.label for e in found] == [model.labels[i] for i in ranking.indices[0]]
    assert [e.rank for e in found] == [1, 2, 3, 4]
    assert [e.probability for e in found] == pytest.approx(ranking.scores[0].tolist())


@pytest.mark.parametrize("label", ["2560", "17", "77"])
def test_parts_say_score_rank_and_what_they_gave(model, label):
    position = model.find(label)
    parts = model.parts([TEXT])
    facts = model.state.facts
    given_ = model.fusion.contributions(parts, model.train_counts, 0, position, facts)
    for share in model.explain(TEXT, label).parts:
        row = parts[share.name].indices[0].tolist()
        if position in row:
            assert share.rank == row.index(position) + 1
            assert share.score == pytest.approx(parts[share.name].scores[0, share.rank - 1])
        else:
            assert (share.score, share.rank) == (None, None)
        assert share.contribution == given_[share.name]


def test_label_that_no_part_brings_up_is_explained_all_the_same(model):
    e = model.explain("xyzzy", "bee-keeping")
    assert (e.probability, e.rank, e.keywords, e.name_words, e.neighbours) == (None, None) + (
        [],
    ) * 3
    assert [(p.score, p.rank) for p in e.parts] == [(None, None)] * len(e.parts)
    assert e.description == "bee-keeping apiculture honey production"
    assert (e.training_documents, e.band) == (0, "0")


def test_run_without_a_fusion_explains_by_the_svm(half):
    e = half.explain(TEXT, "wine")
    assert e.probability is None
    assert e.rank == 1
    assert e.parts[0].name == "svm"
    assert e.parts[0].contribution == e.parts[0].score == pytest.approx(e.svm.score, abs=1e-5)
    assert e.parts[1].contribution == 0
    assert e.keywords
    assert e.neighbours
    assert half.explain("xyzzy", "77").rank is None


def test_label_is_given_by_id_or_name_and_a_list_of_texts_is_refused(model):
    assert model.explain(TEXT, "WINE") == model.explain(TEXT, "2560")
    with pytest.raises(CorpusError, match="No label has the id or name"):
        model.explain(TEXT, "no such label")
    with pytest.raises(CorpusError, match="takes one text; got list"):
        model.explain([TEXT], "wine")


# Neighbours


def test_neighbours_are_the_most_similar_documents_that_carry_the_label(model, dataset):
    train = dataset.train
    dense = model.features.transform(train.texts).toarray()
    cosine = dense @ model.features.transform([TEXT]).toarray()[0]
    for position in (0, 1, 6):
        carriers = np.flatnonzero(train.Y.toarray()[:, position])
        best = sorted(carriers, key=lambda i: (-cosine[i], i))[:3]
        found = model.explain(TEXT, model.labels[position].id, neighbours=3).neighbours
        expected = [i for i in best if cosine[i] > 0]
        assert [x.id for x in found] == [train.ids[i] for i in expected]
        assert [x.text for x in found] == [train.texts[i][:300] for i in expected]
        np.testing.assert_allclose([x.similarity for x in found], cosine[expected], atol=1e-5)
    assert model.explain(TEXT, "wine", neighbours=0).neighbours == []


def test_training_documents_are_read_once_and_only_when_asked_for(fitted_run):
    fresh = Classifier.load(fitted_run)
    fresh.predict([TEXT])
    assert not {"vectors", "_openings"} & set(vars(fresh.training))
    fresh.explain(TEXT, "wine")
    vectors = fresh.training.vectors
    fresh.explain(TEXT, "17")
    assert fresh.training.vectors is vectors


def test_lost_documents_of_a_run_are_said_by_name(own_run):
    (own_run / "corpus" / "train.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"train\.parquet is damaged"):
        Classifier.load(own_run).explain(TEXT, "wine")


class Encoder:
    """Stands in for the neural half: every text is the same vector."""

    def __init__(self, n_documents: int, n_labels: int) -> None:
        rng = np.random.default_rng(0)

        def unit(n: int):
            rows = rng.normal(size=(n, 4)).astype(np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        self.query = 3 * unit(1)
        self.retriever = SimpleNamespace(
            documents=SimpleNamespace(vectors=unit(n_documents)),
            labels=SimpleNamespace(vectors=2 * unit(n_labels)),
            rank=self._rank,
        )

    def encode(self, texts):
        torch = pytest.importorskip("torch")
        return torch.from_numpy(np.repeat(self.query, len(texts), axis=0))

    def _rank(self, vectors, k):
        return {
            name: Ranking(np.array([[6]], np.int32), np.array([[score]], np.float32))
            for name, score in (("retrieval", 1.5), ("name retrieval", 0.5))
        }


def test_neighbours_and_nearest_labels_of_a_neural_run_are_those_of_its_encoder(
    half, dataset, monkeypatch
):
    encoder = Encoder(len(dataset.train), len(dataset.labels))
    encoded = replace(half.state, retriever=encoder)
    monkeypatch.setattr(half._edits, "state", lambda: encoded)
    cosine = encoder.retriever.documents.vectors @ encoder.query[0] / 3
    carriers = np.flatnonzero(dataset.train.Y.toarray()[:, 0])
    best = [i for i in sorted(carriers, key=lambda i: -cosine[i]) if cosine[i] > 0][:2]
    e = half.explain(TEXT, half.labels[0].id, neighbours=2)
    assert [x.id for x in e.neighbours] == [dataset.train.ids[i] for i in best]
    np.testing.assert_allclose([x.similarity for x in e.neighbours], cosine[best], atol=1e-6)
    e = half.explain(TEXT, half.labels[6].id, neighbours=2)
    said = {x.name: (x.score, x.rank) for x in e.parts}
    assert (said["retrieval"], said["name retrieval"]) == ((1.5, 1), (0.5, 1))

    vectors = encoder.retriever.labels.vectors / 2
    expected = {j: float(vectors[3] @ vectors[j]) for j in range(12) if j != 3}
    order = sorted((j for j in expected if expected[j] > 0), key=lambda j: -expected[j])[:4]
    found = half.nearest_labels(3, 4)
    assert [j for j, _ in found] == order
    assert [s for _, s in found] == pytest.approx([expected[j] for j in order], abs=1e-6)


# Nearest labels of a sparse run


def test_nearest_labels_are_those_of_similar_weights(model):
    weights = model.svm.weights_.toarray().astype(np.float64)
    for position in range(11):
        lengths = np.linalg.norm(weights, axis=1)
        cosine = weights[:11] @ weights[position] / (lengths[:11] * lengths[position])
        cosine[position] = -1
        order = [j for j in np.argsort(-cosine, kind="stable")[:3] if cosine[j] > 0]
        found = model.nearest_labels(position, 3)
        assert [j for j, _ in found] == order
        assert [s for _, s in found] == pytest.approx(cosine[order].tolist(), abs=1e-5)


def test_label_without_weights_is_near_labels_of_similar_names(model):
    found = model.nearest_labels(11, 3)
    names = model.names.names.toarray()
    cosine = names[model.names.owner == 11] @ names.T
    best = {
        j: float(cosine[:, model.names.owner == j].max(initial=0))
        for j in range(11)
        if (model.names.owner == j).any()
    }
    assert dict(found) == pytest.approx(
        {j: best[j] for j in sorted(best, key=lambda j: (-best[j], j))[:3] if best[j] > 0}
    )


# JSON and the terminal


def test_json_is_what_was_agreed(model):
    e = model.explain(TEXT, "fishing quota")
    found = json.loads(json.dumps(e.to_json()))
    assert found["label"] == {
        "id": "3191",
        "name": "fishing quota",
        "training_documents": 6,
        "band": "1-9",
        "alt_names": ["catch quota", "TAC"],
        "definition": "",
        "broader": [],
        "narrower": [],
    }
    assert set(found) == {
        *("label", "probability", "rank", "description", "parts"),
        *("keywords", "name_words", "svm", "neighbours"),
    }
    wine = json.loads(json.dumps(model.explain(TEXT, "wine").to_json()))
    assert wine["keywords"][0]["spans"] == [[0, 5], [7, 11], [46, 50]]
    assert set(wine["keywords"][0]) == {"term", "weight", "contribution", "spans"}
    assert set(wine["parts"][0]) == {"name", "score", "rank", "contribution"}
    assert set(wine["neighbours"][0]) == {"id", "text", "similarity", "carries"}
    assert all(x["carries"] is True for x in wine["neighbours"])


def told(*arguments: object, stdin: str | None = None) -> str:
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)], input=stdin)
    assert result.exit_code == 0, (result.exception, result.output)
    return result.stdout


def test_command_explains_the_first_suggestions_of_a_text_a_file_or_a_pipe(
    fitted_run, tmp_path, model
):
    (tmp_path / "wine.txt").write_text(TEXT, encoding="utf-8")
    best = model.explain_best(TEXT, 2)
    said = told(fitted_run, TEXT, "-k", 2)
    assert said == told(fitted_run, tmp_path / "wine.txt", "-k", 2)
    assert said == told(fitted_run, "-", "-k", 2, stdin=TEXT)
    for e in best:
        assert f"{e.label.name} {e.label.id}  {e.probability:.1%}" in said
        assert e.description in said
    assert "«Wines», «WINE» and «grapes»: " in said
    assert told(fitted_run, TEXT).count("suggestion ") == 3


def test_command_gives_json_for_machines(fitted_run, model):
    one = json.loads(told(fitted_run, TEXT, "--label", "wine", "--json", "--neighbours", 5))
    assert one == json.loads(json.dumps(model.explain(TEXT, "wine").to_json()))
    several = json.loads(told(fitted_run, TEXT, "--json", "-k", 2))
    assert [x["rank"] for x in several] == [1, 2]


def test_command_says_which_parts_do_not_suggest_the_label(fitted_run):
    said = told(fitted_run, "xyzzy", "--label", "bee-keeping")
    assert "not among the suggestions" in said
    [line] = [line for line in said.splitlines() if "not suggested by" in line]
    assert line.split("not suggested by ")[1].split(", ") == [
        part["name"]
        for part in json.loads(told(fitted_run, "xyzzy", "--label", "bee-keeping", "--json"))[
            "parts"
        ]
        if part["rank"] is None
    ]


def test_command_says_what_its_numbers_are_and_only_of_those_that_are_there(fitted_run):
    legend = told(fitted_run, TEXT, "-k", 2).partition("What the numbers are:")[2]
    heads = [line.split()[0] for line in legend.strip().splitlines()]
    assert heads == ["parts", "keywords", "name", "neighbours"]
    bare = told(fitted_run, TEXT, "--neighbours", 0).partition("What the numbers are:")[2]
    assert "neighbours" not in bare


def test_long_texts_are_shown_around_their_matches(fitted_run):
    text = " ".join(["nothing"] * 500 + ["wine"] + ["at all"] * 500 + ["\x1b[2Jvineyards"])
    said = told(fitted_run, text, "--label", "wine")
    assert "… " in said
    assert "«wine»" in said
    assert len(said) < 3_000
    assert "\x1b" not in said


def test_words_are_highlighted_on_a_terminal(model, monkeypatch):
    from depl.cli.explain import _passages

    monkeypatch.setattr(out, "_force_terminal", True)
    [line] = _passages(TEXT, model.explain(TEXT, "wine").keywords)
    assert line.plain == TEXT
    marked = [TEXT[s.start : s.end] for s in line.spans if "yellow" in str(s.style)]
    assert marked[:2] == ["Wines", "WINE"]


def test_words_that_overlap_are_one_passage():
    from depl.cli.explain import _passages

    words = [("図書", (3, 5)), ("書館", (4, 6)), ("です", (6, 8))]
    found = [Match(term, 1.0, 1.0, [span]) for term, span in words]
    [line] = _passages("新しい図書館です", found)
    assert line.plain == "新しい«図書館»«です»"


@pytest.mark.parametrize("source", ["missing.txt", "folder/missing.md"])
def test_file_that_is_not_there_is_said(fitted_run, source):
    result = CliRunner().invoke(app, ["explain", str(fitted_run), source])
    assert isinstance(result.exception, CorpusError)
    assert source in str(result.exception)


@pytest.mark.parametrize("stdin", ["", " \n"])
def test_empty_text_is_refused(fitted_run, stdin):
    result = CliRunner().invoke(app, ["explain", str(fitted_run), "-"], input=stdin)
    assert "There is no text in" in str(result.exception)


def test_file_that_is_no_text_is_said(fitted_run, tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\xff\xfe\x00")
    result = CliRunner().invoke(app, ["explain", str(fitted_run), str(tmp_path / "x.bin")])
    assert "not a text" in str(result.exception)


def test_explanation_is_the_public_type(model):
    assert isinstance(model.explain(TEXT, "wine"), Explanation)
