"""Labels edited in a neural run: encoded, searched, voted for, and forgotten."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it

from depl.core.corpus import Label
from depl.model.classifier import Classifier
from depl.neural.encoder import encode
from depl.neural.index import LabelIndex
from depl.neural.overlaid_index import OverlaidIndex, with_vectors
from depl.neural.tokens import tokenize
from depl.pipeline import fit as pipeline
from depl.run.config import Config

pytestmark = pytest.mark.usefixtures("one_thread")

N_LABELS = 8
QUICK = (
    "features.analyzer=words",
    "encoder.max_tokens=24",
    "classifier.epochs=6",
    "classifier.batch_size=16",
    "classifier.encoder_lr=0.003",
    "classifier.head_lr=0.03",
    "retrieval.epochs=4",
    "retrieval.batch_size=16",
    "retrieval.encoder_lr=0.002",
    "validation=0.25",
    "features.pairs=no",
    "device=cpu",
)
KINDS = {
    "full": ("encoder.training=full",),
    "frozen": ("encoder.training=frozen",),
    "dot": ("encoder.training=full", "encoder.similarity=dot", "retrieval.objective=dual"),
}


@pytest.fixture(scope="module")
def corpus(two_words_a_label):
    return two_words_a_label(80, N_LABELS, slice(40, 80))


@pytest.fixture(scope="module", params=list(KINDS))
def fitted(request, corpus, tiny_folder, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("live") / request.param
    settings = (*QUICK, f"encoder.name='{tiny_folder}'", *KINDS[request.param])
    pipeline.fit(corpus, out, Config.load(None, list(settings)))
    return out


@pytest.fixture
def run(fitted, tmp_path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "run"))


@pytest.fixture
def model(run) -> Classifier:
    return Classifier.load(run)


def vectors(model: Classifier) -> np.ndarray:
    return model.retriever.retriever.labels.vectors


def name_vectors(model: Classifier) -> np.ndarray:
    return model.retriever.retriever.names.vectors


def by_name_alone(model: Classifier, texts: list[str]) -> np.ndarray:
    """What every label's name alone scores; nothing that any index keeps is used."""
    encoder = model.retriever.retriever.encoder
    tokens = tokenize(model.labels.names, model.retriever.folder, 24)
    scores = encoder.similarity(model.encode(texts), encode(encoder, tokens, "label"))
    return scores.detach().numpy()


def assert_ranked_by_name(model: Classifier, texts: list[str], gone: tuple[int, ...] = ()) -> None:
    scores = by_name_alone(model, texts)
    scores[:, list(gone)] = -np.inf
    n = len(model.labels)
    found = model.parts(texts, k=n)["name retrieval"]
    for row, listed, values in zip(scores, found.indices, found.scores, strict=True):
        there = listed >= 0
        assert sorted(listed[there].tolist()) == [i for i in range(n) if i not in gone]
        np.testing.assert_allclose(values[there], row[listed[there]], atol=0.02)  # halves


def assert_same(one: Classifier, other: Classifier, texts: list[str]) -> None:
    assert one.labels == other.labels
    np.testing.assert_array_equal(vectors(one), vectors(other))
    np.testing.assert_array_equal(name_vectors(one), name_vectors(other))
    rankings = other.all_rankings(texts, k=6)
    for name, ranking in one.all_rankings(texts, k=6).items():
        assert ranking.indices.tolist() == rankings[name].indices.tolist(), name


def test_a_label_is_encoded_as_the_runs_own_labels_were(model):
    """Its own description, written by a person, must give a label the vector it has."""
    before = vectors(model)[3]
    model.describe_label("l3", model.descriptions[3])
    np.testing.assert_allclose(vectors(model)[3], before, atol=2e-3)  # states are kept as halves


def test_an_added_label_is_retrieved_at_once(model, run, corpus, vocabulary):
    text = " ".join(vocabulary[60:64])
    twin = Label("twin", model.descriptions[2])
    model.add_labels([twin, Label("new", text)])
    parts = model.parts([*corpus.texts[:10], text], k=10)
    # The twin scores what the label scores whose description it bears.
    for row, scores in zip(parts["retrieval"].indices, parts["retrieval"].scores, strict=True):
        score = dict(zip(row.tolist(), scores.tolist(), strict=True))
        assert score[8] == pytest.approx(score[2], abs=5e-3)
    if "classifier" in parts:
        assert parts["classifier"].indices.max() < N_LABELS
    assert model.predict([text], k=10).indices.max() == 9
    assert_same(model, Classifier.load(run), corpus.texts[:10])


def test_an_added_label_is_found_by_its_name_alone_at_the_place_that_its_scores_give(
    model, run, corpus, vocabulary
):
    first, second, third = vocabulary[70:73]
    model.add_labels(
        [Label("a", first), Label("b", second)],
        descriptions={"a": third},
        examples={"b": corpus.texts[:3]},
    )
    assert_ranked_by_name(model, corpus.texts[:10])
    scores = by_name_alone(model, corpus.texts[:10])
    found = model.parts(corpus.texts[:10], k=10)["name retrieval"]
    for row, listed in zip(scores, found.indices.tolist(), strict=True):
        for position in (8, 9):
            better, as_good = (row > row[position] + 0.03).sum(), (row > row[position] - 0.03).sum()
            assert better <= listed.index(position) < as_good
    # A description and keywords change what the label is, and not what its name is.
    assert not np.allclose(name_vectors(model)[8], vectors(model)[8], atol=1e-3)
    assert not np.allclose(name_vectors(model)[9], vectors(model)[9], atol=1e-3)
    before = name_vectors(model)[8]
    model.describe_label("a", second)
    np.testing.assert_allclose(name_vectors(model)[8], before, atol=1e-5)
    assert_same(model, Classifier.load(run), corpus.texts[:10])


def test_a_new_name_alone_moves_a_label(model, run, corpus, vocabulary):
    own = name_vectors(model).copy()
    model.rename_label("l1", model.labels[4].name)
    np.testing.assert_allclose(name_vectors(model)[1], own[4], atol=2e-3)
    assert not np.allclose(own[1], own[4], atol=1e-2)
    rest = [i for i in range(N_LABELS) if i != 1]
    np.testing.assert_array_equal(name_vectors(model)[rest], own[rest])
    assert_ranked_by_name(model, corpus.texts[:10])
    model.describe_label("l2", vocabulary[90])
    model.rename_label("l2", vocabulary[91])  # a description that a person wrote stays
    assert_ranked_by_name(model, corpus.texts[:10])
    model.remove_label("l3")
    assert_ranked_by_name(model, corpus.texts[:10], gone=(3,))
    assert_same(model, Classifier.load(run), corpus.texts[:10])
    for _ in range(4):
        model.undo()
    np.testing.assert_array_equal(name_vectors(model), own)


def test_a_long_name_is_cut_where_the_runs_own_are(model, vocabulary):
    words = vocabulary[30:60]
    model.add_labels([Label("a", " ".join(words[:16])), Label("b", " ".join(words))])
    np.testing.assert_allclose(name_vectors(model)[8], name_vectors(model)[9], atol=1e-5)
    assert not np.allclose(vectors(model)[8], vectors(model)[9], atol=1e-3)


def test_what_an_older_version_computed_is_computed_anew(model, run, corpus, monkeypatch):
    kept = run / "labels" / "computed.log"
    monkeypatch.setattr("depl.labels.replay.LAYOUT", ["names"])
    older = Classifier.load(run)
    older.add_labels([Label("a", "nobody")])
    monkeypatch.undo()
    before = kept.read_text()
    (run / "labels" / "000001").mkdir()  # where earlier versions kept it
    again = Classifier.load(run)
    assert kept.read_text() != before
    assert not (run / "labels" / "000001").exists()
    assert_same(older, again, corpus.texts[:10])
    model.refresh()
    assert_same(model, again, corpus.texts[:10])


def test_examples_vote_and_training_documents_are_not_counted_twice(model, run, corpus):
    unseen = "visitors from nowhere"
    n_documents = len(model.retriever.retriever.documents)
    model.add_labels([Label("x", "nobody")], examples={"x": [corpus.texts[0], unseen]})
    retriever = model.retriever.retriever
    assert len(retriever.documents) == n_documents + 1
    assert retriever.Y.shape == (n_documents + 1, N_LABELS + 1)
    assert np.flatnonzero(retriever.Y.toarray()[:, 8]).tolist() == [0, n_documents]
    assert model.train_counts[8] == 2
    shares = model.parts([unseen], k=9)["neighbours"]
    assert 8 in shares.indices[0]
    assert_same(model, Classifier.load(run), corpus.texts[:10])


def test_a_new_name_is_encoded(model, corpus, vocabulary):
    model.add_labels([Label("a", vocabulary[70]), Label("b", vocabulary[71])])
    model.rename_label("a", vocabulary[71])
    assert model.descriptions[8] == model.descriptions[9]
    np.testing.assert_allclose(vectors(model)[8], vectors(model)[9], atol=1e-5)


def test_a_removed_label_is_in_no_ranking(model, run, corpus):
    model.add_labels([Label("a", "nobody")])
    model.remove_label("l2")
    model.remove_label("a")
    for name, ranking in model.all_rankings(corpus.texts, k=7).items():
        assert not {2, 8} & set(ranking.indices.ravel().tolist()), name
        if name in ("classifier", "retrieval", "name retrieval", "depl+c"):
            assert (ranking.indices >= 0).all(), name  # others have taken its places
    assert_same(model, Classifier.load(run), corpus.texts[:10])


def test_undo_gives_back_what_was(model, run, corpus):
    before = model.all_rankings(corpus.texts, k=6)
    own, names = vectors(model).copy(), name_vectors(model).copy()
    model.add_labels([Label("a", "nobody")], examples={"a": ["nobody at all", corpus.texts[3]]})
    model.rename_label("l1", "somebody")
    model.remove_label("l0")
    for _ in range(3):
        model.undo()
    np.testing.assert_array_equal(vectors(model)[:N_LABELS], own)
    np.testing.assert_array_equal(name_vectors(model)[:N_LABELS], names)
    assert len(name_vectors(model)) == len(model.labels) == N_LABELS + 1
    for name, ranking in model.all_rankings(corpus.texts, k=6).items():
        assert ranking.indices.tolist() == before[name].indices.tolist(), name
    assert_same(model, Classifier.load(run), corpus.texts[:10])


def test_many_labels_are_encoded_together_and_what_is_only_a_name_once(
    model, monkeypatch, vocabulary
):
    from depl.neural import retriever

    calls = []
    real = retriever.label_vectors
    monkeypatch.setattr(retriever, "label_vectors", lambda *a: calls.append(len(a[1])) or real(*a))
    pairs = [f"{one} {other}" for one in vocabulary[5:15] for other in vocabulary[20:120]]
    model.add_labels([Label(f"n{i}", name) for i, name in enumerate(pairs)])
    assert calls == [1000]
    assert len(model.labels) == N_LABELS + 1000
    np.testing.assert_array_equal(name_vectors(model)[N_LABELS:], vectors(model)[N_LABELS:])
    described = {"x": vocabulary[3], "y": vocabulary[60]}
    model.add_labels([Label(x, vocabulary[60]) for x in described], descriptions=described)
    assert calls == [1000, 2]


def test_an_unknown_word_and_every_example_count_with_all_reasons(model, run, corpus, vocabulary):
    own = [corpus.texts[0], corpus.texts[9], " ".join(vocabulary[80:90])]
    model.add_labels(
        [Label("a", "Monopile"), Label("b", vocabulary[75])],
        descriptions={"b": vocabulary[76]},
        examples={"a": own},
    )
    assert model.features.unknown_terms(["Monopile"]) == ["monopile"]
    first = [row[0][0].id for row in model.predict([*own, "a monopile"], 1).rows()]
    assert first == ["a"] * 4
    text = f"monopile {vocabulary[76]} {corpus.texts[1]}"
    why = [model.explain(text, label) for label in ("a", "b")]
    reasons = ["names", "examples", "labels alike", "name meaning", "example meaning"]
    reasons += ["likely documents", "how broad it is"]
    assert [[part.name for part in x.parts] for x in why] == [reasons] * 2
    # The best of the name and of what a person wrote; the mean and the nearest of the examples.
    encoder, folder = model.retriever.retriever.encoder, model.retriever.folder
    vector = F.normalize(model.encode([text]), dim=1)
    texts = {"a": ["Monopile"], "b": [vocabulary[75], vocabulary[76]]}
    for x in why:
        names = encode(encoder, tokenize(texts[x.label.id], folder, 24), "label")
        cosine = float((vector @ F.normalize(names, dim=1).T).max())
        assert (x.parts[3].score or 0.0) == pytest.approx(max(cosine, 0.0), abs=1e-4)
    examples = F.normalize(model.encode(own), dim=1)
    mean = F.normalize(examples.mean(dim=0, keepdim=True), dim=1)
    best = float((vector @ torch.cat([examples, mean]).T).max())
    assert why[0].parts[4].score == pytest.approx(best, abs=1e-4)
    assert why[1].parts[4].score is None
    assert_same(model, Classifier.load(run), corpus.texts[:10])


def test_only_a_single_part_that_knows_labels_by_their_documents_is_told_of(run, caplog):
    Classifier.load(run).add_labels([Label("a", "Monopile")])
    assert not caplog.records
    Classifier.load(run, "neighbours").add_labels([Label("b", "Jackup")])
    assert "(b) will not be suggested" in caplog.text


def test_a_graph_is_searched_together_with_what_came_later():
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(2_003, 16)).astype(np.float32)
    raw /= np.linalg.norm(raw, axis=1, keepdims=True)
    graph = LabelIndex.build(raw[:2_000], approximate=True)
    new = {5: raw[2_000], 2_000: raw[2_001], 2_001: raw[2_002]}
    rows = np.array(list(new.values()))
    overlaid = OverlaidIndex(graph, np.array(list(new)), rows, gone=np.array([5, 6]), n=2_002)
    assert overlaid.approximate
    for position, vector in new.items():
        assert overlaid.search(vector[None], 1).indices[0, 0] == position
    assert overlaid.search(raw[[5, 6]], 50).indices.tolist()[1].count(6) == 0
    places = np.array([2_001, 5, 2_000])
    found = [
        with_vectors(index, places, rows[[2, 0, 1]], 2_002).search(rows, 5)
        for index in (graph, LabelIndex.build(raw[:2_000]))
    ]
    assert found[0].indices[:, 0].tolist() == [5, 2_000, 2_001]
    assert (found[0].indices == found[1].indices).all()
