"""The neural half of a run: every recipe from documents to suggestions, killed and continued."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from depl import api
from depl.core import storage
from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.errors import ConfigError, RunError
from depl.labels.decisions import Decision
from depl.labels.encoded import EncodedTexts
from depl.labels.feedback import FeedbackStore
from depl.model.classifier import Classifier
from depl.pipeline import fit as pipeline
from depl.pipeline.learn import learn
from depl.pipeline.learn_vectors import settled
from depl.pipeline.stages import STAGE_NAMES, STAGES, dependents, stage_names
from depl.run.config import Config
from depl.run.folder import Run
from depl.run.manifest import fingerprint

pytestmark = pytest.mark.usefixtures("one_thread")

N_LABELS = 12
QUICK = (
    "features.analyzer=words",
    "encoder.max_tokens=24",
    "classifier.epochs=30",
    "classifier.batch_size=16",
    "classifier.encoder_lr=0.003",
    "classifier.head_lr=0.03",
    "classifier.patience=8",
    "retrieval.patience=8",
    "retrieval.epochs=15",
    "retrieval.batch_size=16",
    "retrieval.encoder_lr=0.002",
    "validation=0.25",
    "device=cpu",
)


@pytest.fixture(scope="module")
def corpus(two_words_a_label):
    return two_words_a_label(160, N_LABELS, slice(2 * N_LABELS, None))


def settings(tiny_folder, *more, training="full"):
    return Config.load(
        None, [*QUICK, f"encoder.name='{tiny_folder}'", f"encoder.training={training}", *more]
    )


@pytest.fixture(scope="module")
def full_run(corpus, tiny_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("neural") / "run"
    reranker = ("reranker.candidates=6", "reranker.max_tokens=32", "reranker.epochs=4")
    reranker += ("reranker.batch_size=64", "reranker.encoder_lr=0.002", "reranker.head_lr=0.01")
    attention = ("attention.epochs=6", "attention.encoder_lr=0.002", "attention.head_lr=0.01")
    config = settings(tiny_folder, *reranker, *attention)
    pipeline.fit(corpus.subset(np.arange(120)), out, config)
    return out


@pytest.fixture(scope="module")
def frozen_run(corpus, tiny_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("neural") / "frozen"
    pipeline.fit(corpus, out, settings(tiny_folder, training="frozen"))
    return out


def weights_of(run):
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for stage in ("classifier", "encoder")
        for path in sorted((run / stage).rglob("*.safetensors"))
    }


def test_a_full_run_learns_and_has_all_parts(full_run, corpus):
    model = Classifier.load(full_run)
    test = corpus.subset(np.arange(120, 160))
    assert model.fusion.parts_ == (
        *(
            "svm",
            "names",
            "name coverage",
            "whole names",
            "word neighbours",
            "classifier",
            "retrieval",
            "name retrieval",
            "neighbours",
            "attention",
            "reranker",
        ),
    )
    reports = {r.name: r.to_json() for r in api.evaluate_parts(model, test)}
    assert set(reports) == {*model.fusion.parts_, "depl+c", "fusion"}
    assert all(reports[name]["P@1"] > 60 for name in ("svm", "classifier", "attention", "depl+c"))
    assert reports["fusion"]["P@1"] >= 90


def test_suggestions_are_probabilities_and_the_same_for_one_text_as_for_many(full_run, corpus):
    model = Classifier.load(full_run)
    texts = corpus.texts[120:130]
    together = model.predict(texts, k=3)
    assert (together.scores[together.indices >= 0] > 0).all()
    assert (together.scores <= 1).all()
    for i, text in enumerate(texts):
        alone = model.predict([text], k=3)
        assert alone.indices[0].tolist() == together.indices[i].tolist()
        np.testing.assert_allclose(alone.scores[0], together.scores[i], atol=1e-4)


def test_training_leaves_its_curve_and_how_long_it_was_best(full_run):
    lines = (full_run / "logs" / "encoder-held_out.jsonl").read_text().splitlines()
    curve = [json.loads(line) for line in lines]
    ends = [c for c in curve if c["epoch_ends"]]
    assert [c["epoch"] for c in ends] == list(range(1, len(ends) + 1))
    assert set(ends[-1]["validation"]["branches"]) == {"retrieval", "classifier", "joint"}
    best = max(ends, key=lambda c: c["validation"]["score"])
    told = json.loads((full_run / "encoder" / "held_out" / "training.json").read_text())
    assert told["epochs"] == best["epoch"]
    assert (
        json.loads((full_run / "encoder" / "training.json").read_text())["epochs"] == best["epoch"]
    )


@pytest.mark.parametrize("training", ["full", "frozen"])
def test_the_held_out_encoder_goes_on_with_all_documents(corpus, request, tmp_path, training):
    before = request.getfixturevalue(f"{training}_run")
    run = shutil.copytree(before, tmp_path / "run")
    config = Run(run).config().changed(["retrieval.last_epochs=3"])
    pipeline.fit(None, run, config)
    trained = weights_of(run)
    # The held-out encoders are those of a run that is trained twice; the classifier is not.
    held_out = {name for name in weights_of(before) if "held_out" in name}
    assert {name for name in trained if name.startswith("classifier/")} == {
        name for name in held_out if name.startswith("classifier/")
    }
    assert all(trained[name] == weights_of(before)[name] for name in held_out)
    poolers = "depl.safetensors"
    assert trained[f"encoder/{poolers}"] != trained[f"encoder/held_out/{poolers}"]
    assert json.loads((run / "encoder" / "training.json").read_text())["epochs"] == 3
    lines = (run / "logs" / "encoder-final.jsonl").read_text().splitlines()
    slice_ = Run(run).slice
    shown = len(slice_.rest()) + 2 * len(slice_.held_out)
    assert json.loads(lines[-1])["step"] == 3 * -(-shown // 16)
    once, twice = (
        {r.name: r.to_json()["P@1"] for r in api.evaluate_parts(Classifier.load(path), corpus)}
        for path in (run, before)
    )
    assert once["fusion"] > 90
    if training == "full":  # the frozen one is too small to learn much
        assert once["depl+c"] > twice["depl+c"] - 5


def test_nothing_is_left_behind_and_a_second_fit_keeps_all(full_run):
    assert not list((full_run / ".scratch").iterdir())
    kinds = []
    pipeline.fit(None, full_run, observe=lambda event: kinds.append(event.kind))
    assert set(kinds) == {"kept"}


@pytest.mark.parametrize(
    "more",
    [
        (
            *("retrieval.objective=dual", "encoder.similarity=dot"),
            *("encoder.document_pooling=cls", "classifier.epochs=2", "retrieval.epochs=2"),
        ),
        (
            *("retrieval.label_text=name", "retrieval.hard_negatives=0"),
            *("classifier.epochs=0", "retrieval.epochs=2"),
        ),
    ],
)
def test_other_objectives_and_texts(corpus, tiny_folder, tmp_path, more):
    pipeline.fit(corpus, tmp_path / "run", settings(tiny_folder, *more))
    model = Classifier.load(tmp_path / "run")
    assert ("classifier" in model.fusion.parts_) == ("retrieval.objective=dual" not in more)
    by_name = "retrieval.label_text=name" in more
    assert ("name retrieval" in model.fusion.parts_) == (not by_name)
    assert (tmp_path / "run" / "index" / "names").exists() == (not by_name)
    assert model.predict(corpus.texts[:3], k=2).indices.shape == (3, 2)


def test_any_part_can_be_the_model_that_suggests(full_run, corpus):
    texts = corpus.texts[:8]
    every = Classifier.load(full_run).all_rankings(texts, 3)
    parts = {"depl": "retrieval"}
    for name in ("depl+c", "depl", "classifier", "svm", "names", "neighbours", "fusion"):
        found = Classifier.load(full_run, name).predict(texts, 3)
        assert (found.indices == every[parts.get(name, name)].indices).all(), name
        probable = name in ("depl+c", "depl", "classifier", "fusion")
        assert Classifier.load(full_run, name).gives_probabilities == probable
        if probable:
            assert ((found.scores >= 0) & (found.scores <= 1)).all()


def test_the_model_of_a_run_is_a_setting_that_makes_nothing_again(full_run, corpus):
    kinds = []
    for name in ("depl+c", "fusion"):
        config = Run.open(full_run).config().changed([f"model={name}"])
        pipeline.fit(None, full_run, config, observe=lambda event: kinds.append(event.kind))
        assert Classifier.load(full_run).model == name
    assert set(kinds) == {"kept"}


@pytest.mark.parametrize("training", ["full", "frozen"])
def test_names_alone_are_searched_for_as_the_encoder_would_encode_them(corpus, request, training):
    from depl.neural.encoder import encode
    from depl.neural.tokens import tokenize

    run = request.getfixturevalue(f"{training}_run")
    model = Classifier.load(run)
    encoder = model.retriever.retriever.encoder
    names = encode(encoder, tokenize(model.labels.names, run / "encoder", 24), "label")
    scores = encoder.similarity(model.encode(corpus.texts[:20]), names).detach().numpy()
    found = model.parts(corpus.texts[:20], k=N_LABELS)["name retrieval"]
    # States are kept as halves.
    of_found = np.take_along_axis(scores, found.indices.astype(np.int64), 1)
    np.testing.assert_allclose(found.scores, of_found, atol=0.02)
    assert (np.sort(found.indices, axis=1) == np.arange(N_LABELS)).all()
    other = model.parts(corpus.texts[:20], k=N_LABELS)["retrieval"]
    assert other.indices.tolist() != found.indices.tolist()


def test_a_frozen_encoder_is_not_changed(corpus, tiny_folder, frozen_run):
    from safetensors.numpy import load_file

    before = load_file(tiny_folder / "model.safetensors")
    after = load_file(frozen_run / "encoder" / "model.safetensors")
    for name, weights in after.items():
        assert (weights == before[name]).all(), name
    report = api.evaluate(Classifier.load(frozen_run), corpus)
    assert report.to_json()["P@1"] > 90


@pytest.mark.parametrize("training", ["full", "frozen"])
def test_feedback_is_learnt_by_the_indexes_too(corpus, request, tmp_path, training):
    from depl.neural.encoder import encode
    from depl.neural.retriever import label_vectors, unit_vectors
    from depl.neural.tokens import tokenize

    path = shutil.copytree(request.getfixturevalue(f"{training}_run"), tmp_path / "run")
    run, store = Run(path), FeedbackStore(path)
    fitted = Classifier.load(path)
    n, new = len(run.train()), " ".join(["hule"] * 3)  # a word that is noise elsewhere
    store.add(new, [Decision("l3", "added"), Decision("l4", "rejected")], id="new")
    store.add("kafi kafi", [Decision("l5", "added")], id="d7")  # a document of training
    learn(run)
    store.add("seno mira", [Decision("l3", "accepted")], id="newer")
    store.add(corpus.texts[9], [Decision("l6", "added")], id="d9")
    learn(run)
    model = Classifier.load(path)
    known = model.retriever.retriever
    folder, encoder, before = path / "encoder", known.encoder, fitted.retriever.retriever

    def encoded(texts):
        return unit_vectors(encode(encoder, tokenize(texts, folder, 24), "document"))

    others = np.setdiff1d(np.arange(n), [7])
    assert len(known.documents) == known.Y.shape[0] == n + 2
    assert (known.documents.vectors[others] == before.documents.vectors[others]).all()
    told = encoded(["kafi kafi", new, "seno mira"])
    np.testing.assert_allclose(known.documents.vectors[[7, n, n + 1]], told, atol=1e-5)
    expected = before.Y.toarray()
    expected[7, 5] = expected[9, 6] = 1
    assert (known.Y.toarray()[:n] == expected).all()
    assert [known.Y[[i]].indices.tolist() for i in (n, n + 1)] == [[3], [3]]

    changed = np.flatnonzero(np.array(model.state.descriptions) != fitted.state.descriptions)
    assert len(changed)
    rest = np.setdiff1d(np.arange(N_LABELS), changed)
    assert (known.labels.vectors[rest] == before.labels.vectors[rest]).all()
    texts = [model.state.descriptions[j] for j in changed]
    own = label_vectors(encoder, tokenize(texts, folder, 18))
    np.testing.assert_allclose(known.labels.vectors[changed], own, atol=1e-5)

    nearest = model.parts([new], k=3)["neighbours"]
    assert nearest.indices[0, 0] == 3
    model.add_labels([Label("x", "hulego")], examples={"x": [new + " go"]})
    assert len(model.retriever.retriever.documents) == n + 3
    model.undo()
    assert run.learned.undo() == 1
    assert run.learned.undo() == 0
    found, first = (x.predict(corpus.texts[:9], k=3) for x in (Classifier.load(path), fitted))
    assert (found.indices == first.indices).all()
    assert (found.scores == first.scores).all()


def test_what_was_suggested_for_is_not_encoded_again_to_learn_from_it(
    frozen_run, tmp_path, monkeypatch
):
    from depl.neural import encoder, retriever

    encoded = []
    pooled = encoder.pooled_states

    def watched(model, texts, side, *more, **options):
        encoded.append((side, len(texts)))
        return pooled(model, texts, side, *more, **options)

    for module in (encoder, retriever):
        monkeypatch.setattr(module, "pooled_states", watched)

    def learnt(name, suggested=False, damaged=False):
        """How many documents were encoded to learn from feedback, and the hashes of the state."""
        path = shutil.copytree(frozen_run, tmp_path / name)
        if suggested:
            Classifier.load(path).feedback.add("hule\nhule seno", added=["l3"], id="new")
        else:
            FeedbackStore(path).add("hule\nhule seno", [Decision("l3", "added")], id="new")
        kept = list((path / "feedback" / "encoded").glob("*"))
        assert bool(kept) == suggested
        for file in kept if damaged else ():
            file.write_bytes(file.read_bytes()[:-3] + b"abc")
        encoded.clear()
        learn(Run(path))
        facts = storage.read_json(path / "learned" / "1" / "learned.json")
        return sum(n for side, n in encoded if side == "document"), facts["files"]

    once, expected = learnt("once")
    assert once in (1, 2)  # with its title, where the fusion reads titles
    assert learnt("before", suggested=True) == (0, expected)
    assert learnt("damaged", suggested=True, damaged=True) == (once, expected)


def test_states_are_of_one_encoder(frozen_run, full_run, tmp_path):
    run, other = (Run(shutil.copytree(x, tmp_path / x.name)) for x in (frozen_run, full_run))
    kept, states = EncodedTexts(run), {"a": np.arange(3, dtype=np.float32)}
    kept.keep(states)
    assert np.array_equal(EncodedTexts(run).read(["a", "b"])["a"], states["a"])
    shutil.copytree(run.path / "feedback", other.path / "feedback")
    assert EncodedTexts(other).read(["a"]) == {}


def test_descriptions_that_hardly_change_stay():
    had = ["wine grape cellar", "wine grape cellar", "wine", ""]
    now = ["wine cellar grape", "wine grape bottle", "grape", "wine"]
    assert settled(had, now) == ["wine grape cellar", "wine grape bottle", "grape", "wine"]


def test_changing_the_second_stage_keeps_the_first(full_run, tmp_path):
    shutil.copytree(full_run, tmp_path / "run")
    events = {}
    config = Run(full_run).config().changed(["retrieval.epochs=1"])
    pipeline.fit(None, tmp_path / "run", config, observe=lambda e: events.update({e.stage: e.kind}))
    assert events["classifier"] == "kept"
    assert events["encoder"] == events["fusion"] == "done"


@pytest.mark.parametrize(
    ("training", "setting", "made"),
    [
        ("full", "fusion.depth=3", {"fusion"}),
        ("full", "neighbours.k=3", {"fusion"}),
        ("full", "attention.candidates=3", {"attention", "fusion"}),
        ("full", "reranker.epochs=3", {"reranker", "fusion"}),
        (
            "full",
            "linear.C=2.0",
            {
                *("linear", "held_out", "descriptions", "negatives", "label_texts"),
                *("encoder", "index", "fusion"),
            },
        ),
        ("full", "retrieval.label_text=name", {"label_texts", "encoder", "index", "fusion"}),
        ("full", "retrieval.hard_negatives=2", {"negatives", "encoder", "index", "fusion"}),
        (
            "full",
            "descriptions.max_tokens=4",
            {"descriptions", "label_texts", "encoder", "index", "fusion"},
        ),
        ("frozen", "retrieval.enough_steps=20", {"encoder", "index", "fusion"}),
        ("full", "retrieval.last_epochs=2", {"classifier", "encoder", "index", "fusion"}),
        ("full", "classifier.epochs=1", {"classifier", "encoder", "index", "fusion"}),
        (
            "full",
            "encoder.max_tokens=16",
            {"documents", "classifier", "encoder", "index", "fusion"},
        ),
        (
            "frozen",
            "descriptions.keywords=3",
            {"descriptions", "label_texts", "encoder", "index", "fusion"},
        ),
    ],
)
def test_a_setting_remakes_only_what_depends_on_it(training, setting, made):
    config = Config.load(None, [f"encoder.training={training}"])
    if setting.startswith("attention."):
        config = config.changed(["attention.epochs=2"])
    if setting.startswith("reranker."):
        config = config.changed(["reranker.candidates=10"])
    changed = config.changed([setting])
    wanted = stage_names(config)

    def prints(settings):
        found = {"corpus": "same"}
        for stage in STAGES:
            if stage.name in wanted:
                inputs = {name: found[name] for name in stage.needs if name in found}
                found[stage.name] = fingerprint(stage.name, stage.settings(settings), inputs)
        return found

    before, after = prints(config), prints(changed)
    assert {name for name in before if before[name] != after[name]} == made


def test_every_stage_comes_after_what_it_needs():
    for i, stage in enumerate(STAGES, start=1):
        assert set(stage.needs) <= set(STAGE_NAMES[:i])
    later = {"attention", "encoder", "index", "reranker", "fusion"}
    assert dependents("classifier") == {"classifier", *later}


def test_an_ablation_in_a_copy_of_a_run_trains_only_what_it_must(full_run, corpus, tmp_path):
    shutil.copytree(full_run, tmp_path / "run")
    events = {}
    config = Run(full_run).config().changed(["fusion.depth=3", "fusion.candidates=3"])
    pipeline.fit(None, tmp_path / "run", config, observe=lambda e: events.update({e.stage: e.kind}))
    assert [name for name, kind in events.items() if kind != "kept"] == ["fusion"]
    assert weights_of(tmp_path / "run") == weights_of(full_run)
    model = Classifier.load(tmp_path / "run")
    assert {x.k for x in model.parts(corpus.texts[:2]).values()} == {3}


def test_a_run_without_documents_cannot_be_continued(tmp_path):
    Run(tmp_path).write_manifest({"stages": {}})
    with pytest.raises(RunError, match="cannot be continued without its corpus"):
        pipeline.fit(None, tmp_path, Config())


@pytest.mark.parametrize(
    ("texts", "warned"),
    [
        (["Verordnung über den Wein", "Beihilfen für die Lagerung von Butter"], True),
        (["Council Regulation on wine", "Aid for the storage of butter"], False),
    ],
)
def test_who_gives_the_english_encoder_other_languages_is_warned(texts, warned, tmp_path, caplog):
    labels = LabelSet([Label("1", "a"), Label("2", "b")])
    ids = [str(i) for i in range(20)]
    corpus = Corpus.from_rows(ids, texts * 10, [[0], [1]] * 10, labels)
    config = Config.load("small-gpu", ["threads=1"])
    pipeline.fit(corpus, tmp_path / "run", config, until="documents")
    assert ("English only" in caplog.text) == warned


def test_an_encoder_that_is_not_there_is_told_before_any_work(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    told = []
    with pytest.raises(ConfigError, match="neither a folder here"):
        pipeline.fit(corpus, tmp_path / "run", settings("no-such-encoder"), observe=told.append)
    assert told == []
    assert not (tmp_path / "run").exists()
