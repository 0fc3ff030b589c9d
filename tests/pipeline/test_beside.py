"""A classifier that another process trains beside the SVMs is the one that this process trains."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from depl.pipeline import beside
from depl.pipeline import fit as pipeline
from depl.pipeline.stages import STAGES
from depl.run.config import Config

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = (
    *("features.analyzer=words", "encoder.training=full", "encoder.max_tokens=16"),
    *("classifier.epochs=2", "classifier.batch_size=16", "retrieval.epochs=1"),
    *("retrieval.last_epochs=1", "validation=0.25"),
)


@pytest.fixture(scope="module")
def corpus(two_words_a_label):
    return two_words_a_label(48, 6, slice(12, None))


@pytest.fixture
def config(tiny_folder):
    return Config.load(None, [*SETTINGS, f"encoder.name='{tiny_folder}'"])


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """As if there were one; what is to be trained there is trained by the processor."""
    monkeypatch.setattr(beside, "_DRIVER", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as here: sums in another order differ


def classifier_files(run: Path) -> dict[str, bytes]:
    folder = run / "classifier"
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def by_itself(corpus, tiny_folder, tmp_path_factory):
    config = Config.load(None, [*SETTINGS, f"encoder.name='{tiny_folder}'", "device=cpu"])
    out = tmp_path_factory.mktemp("beside") / "run"
    pipeline.fit(corpus, out, config, until="classifier")
    return classifier_files(out)


def test_the_same_classifier_is_made_while_svms_are(corpus, config, gpu, by_itself, tmp_path):
    events = []
    pipeline.fit(corpus, tmp_path / "run", config, observe=events.append)
    done = {event.stage: event for event in events if event.kind == "done"}
    assert "beside" in done["classifier"].detail
    order = list(done)
    assert order.index("documents") < order.index("linear") < order.index("classifier")
    assert classifier_files(tmp_path / "run") == by_itself
    assert not list((tmp_path / "run" / ".scratch").iterdir())
    kinds = []
    pipeline.fit(None, tmp_path / "run", observe=lambda event: kinds.append(event.kind))
    assert set(kinds) == {"kept"}


def test_what_the_other_process_could_not_make_is_made_here(
    corpus, config, gpu, by_itself, tmp_path, monkeypatch
):
    started = []
    begin = beside.Beside.__init__

    def killed(self, *arguments):
        begin(self, *arguments)
        os.kill(self._process.pid, signal.SIGKILL)
        started.append(self)

    monkeypatch.setattr(beside.Beside, "__init__", killed)
    events = []
    pipeline.fit(corpus, tmp_path / "run", config, until="classifier", observe=events.append)
    assert len(started) == 1
    assert events[-1].stage == "classifier"
    assert "beside" not in events[-1].detail
    assert classifier_files(tmp_path / "run") == by_itself


def test_a_fit_that_ends_leaves_nobody_at_work(corpus, config, gpu, tmp_path, monkeypatch):
    started = []
    begin = beside.Beside.__init__

    def noted(self, *arguments):
        begin(self, *arguments)
        started.append(self._process)

    def interrupted(event):
        if event.stage == "linear":
            raise KeyboardInterrupt

    monkeypatch.setattr(beside.Beside, "__init__", noted)
    with pytest.raises(KeyboardInterrupt):
        pipeline.fit(corpus, tmp_path / "run", config, observe=interrupted)
    (process,) = started
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("changes", "until", "there"),
    [
        ((), None, True),
        ((), "fusion", True),
        ((), "label_texts", False),
        (("device=cpu",), None, False),
        (("classifier.epochs=0",), None, False),
        (("encoder.training=frozen",), None, False),
        (("encoder.training=none",), None, False),
    ],
)
def test_it_is_done_where_there_is_something_to_train_on_a_gpu(config, gpu, changes, until, there):
    assert beside.pays(config.changed(changes), until) == there


def test_it_is_not_done_without_a_gpu(config, monkeypatch, tmp_path):
    monkeypatch.setattr(beside, "_DRIVER", tmp_path / "missing")
    assert not beside.pays(config, None)


def test_what_the_classifier_needs_comes_first_and_all_in_an_order_that_works():
    stages = beside.needs_first(STAGES)
    names = [stage.name for stage in stages]
    assert sorted(names) == sorted(stage.name for stage in STAGES)
    assert names[:3] == ["features", "slice", "documents"]
    for i, stage in enumerate(stages):
        assert set(stage.needs) <= {"corpus", *names[:i]}
