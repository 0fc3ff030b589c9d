"""The neural half of a run: every recipe from documents to suggestions, killed and continued."""

from __future__ import annotations

import json

import numpy as np
import pytest

from depl import api
from depl.core.errors import ConfigError, RunError
from depl.model.classifier import Classifier
from depl.pipeline import fit as pipeline
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
    pipeline.fit(corpus.subset(np.arange(120)), out, settings(tiny_folder))
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
            "classifier",
            "retrieval",
            "name retrieval",
            "neighbours",
        ),
    )
    reports = {r.name: r.to_json() for r in api.evaluate_parts(model, test)}
    assert set(reports) == {*model.fusion.parts_, "depl+c", "fusion"}
    assert all(reports[name]["P@1"] > 60 for name in ("svm", "classifier", "retrieval", "depl+c"))
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
def test_names_alone_are_searched_for_as_the_encoder_would_encode_them(
    full_run, corpus, tiny_folder, tmp_path, training
):
    from depl.neural.encoder import encode
    from depl.neural.tokens import tokenize

    run = full_run
    if training == "frozen":
        run = tmp_path / "run"
        pipeline.fit(corpus, run, settings(tiny_folder, "retrieval.epochs=2", training=training))
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


def test_a_frozen_encoder_is_not_changed(corpus, tiny_folder, tmp_path):
    from safetensors.numpy import load_file

    pipeline.fit(corpus, tmp_path / "run", settings(tiny_folder, training="frozen"))
    before = load_file(tiny_folder / "model.safetensors")
    after = load_file(tmp_path / "run" / "encoder" / "model.safetensors")
    for name, weights in after.items():
        assert (weights == before[name]).all(), name
    report = api.evaluate(Classifier.load(tmp_path / "run"), corpus)
    assert report.to_json()["P@1"] > 90


def test_changing_the_second_stage_keeps_the_first(full_run, tmp_path):
    import shutil

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
    assert dependents("classifier") == {"classifier", "encoder", "index", "fusion"}


def test_an_ablation_in_a_copy_of_a_run_trains_only_what_it_must(full_run, corpus, tmp_path):
    import shutil

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


def test_an_encoder_that_is_not_there_is_told_before_any_work(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    told = []
    with pytest.raises(ConfigError, match="neither a folder here"):
        pipeline.fit(corpus, tmp_path / "run", settings("no-such-encoder"), observe=told.append)
    assert told == []
    assert not (tmp_path / "run").exists()
