"""Run folders: resumed, changed half-way, killed at any moment, and on a disk that says no."""

import errno
import hashlib
import json
import multiprocessing
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from depl.core import storage
from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.errors import ConfigError, RunError
from depl.model.classifier import Classifier
from depl.pipeline import fit as pipeline
from depl.pipeline import sparse
from depl.pipeline.stages import stage_names
from depl.run.config import Config
from depl.run.folder import Run
from depl.sparse import label_tree
from depl.sparse.label_tree import LabelTreeSVM
from depl.sparse.svm import OneVsAllSVM

STAGE_NAMES = stage_names(Config())
WORDS = np.array([f"word{i:03d}" for i in range(300)])


def make_corpus(seed=0, n=100, n_labels=30):
    """Random documents whose labels are decided by the words in them."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(WORDS), (n, 25))
    labels = LabelSet(Label(f"l{j}", f"topic {WORDS[j]}") for j in range(n_labels))
    carried = [sorted({int(w) for w in row if w < n_labels - 1}) or [0] for row in rows]
    texts = [" ".join(WORDS[row]) for row in rows]
    return Corpus.from_rows([f"d{i}" for i in range(n)], texts, carried, labels)


def contents(folder):
    """Hash of every file a stage left; the manifest without clock, memory and versions."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.name not in ("manifest.json", ".manifest.copy.json", ".lock"):
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    stages = Run(folder).manifest()["stages"]
    return found, {name: stage["fingerprint"] for name, stage in stages.items()}


def events_of(corpus, out, *overrides, **options):
    events = []
    config = Config.load(overrides=overrides)
    pipeline.fit(corpus, out, config, observe=events.append, **options)
    return {e.stage: (e.kind, e.detail) for e in events}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus()


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    pipeline.fit(corpus, out)
    return contents(out)


def test_a_second_fit_keeps_everything(corpus, tmp_path, undisturbed):
    pipeline.fit(corpus, tmp_path / "run")
    kinds = {stage: kind for stage, (kind, _) in events_of(corpus, tmp_path / "run").items()}
    assert kinds == dict.fromkeys(STAGE_NAMES, "kept")
    assert contents(tmp_path / "run") == undisturbed


def test_threads_change_nothing(corpus, tmp_path, undisturbed):
    pipeline.fit(corpus, tmp_path / "run", Config(threads=3))
    assert contents(tmp_path / "run") == undisturbed


def test_until_then_continue_gives_the_same_bytes(corpus, tmp_path, undisturbed):
    for stage in STAGE_NAMES[:-1]:
        pipeline.fit(corpus, tmp_path / "run", until=stage)
        assert list(Run(tmp_path / "run").manifest()["stages"])[-1] == stage
    pipeline.fit(corpus, tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed


def test_a_changed_setting_redoes_its_stage_and_those_behind_it(corpus, tmp_path, undisturbed):
    pipeline.fit(corpus, tmp_path / "run")
    events = events_of(corpus, tmp_path / "run", "linear.C=2.0")
    assert [kind for kind, _ in events.values()] == [
        "kept",
        "kept",
        "done",
        "kept",
        "done",
        "done",
        "done",
        "done",
    ]
    assert contents(tmp_path / "run") != undisturbed
    events_of(corpus, tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed


def test_the_reason_for_redoing_is_told(corpus, tmp_path):
    pipeline.fit(corpus, tmp_path / "run")
    told = []
    config = Config.load(overrides=["linear.C=2.0"])
    pipeline.fit(corpus, tmp_path / "run", config, observe=told.append)
    started = {e.stage: e.detail for e in told if e.kind == "started"}
    why = "made again: a stage that it needs has changed"
    behind = dict.fromkeys(["held_out", "characters", "descriptions", "fusion"], why)
    assert started == {"linear": "made again: C 0.7 -> 2.0", **behind}


def test_from_redoes_what_is_valid(corpus, tmp_path, undisturbed):
    pipeline.fit(corpus, tmp_path / "run")
    events = events_of(corpus, tmp_path / "run", redo_from="linear")
    assert [kind for kind, _ in events.values()] == [
        "kept",
        "kept",
        "done",
        "kept",
        "done",
        "done",
        "done",
        "done",
    ]
    assert contents(tmp_path / "run") == undisturbed


def test_what_the_settings_do_without_is_no_part_and_comes_back(corpus, tmp_path, undisturbed):
    out = tmp_path / "run"
    pipeline.fit(corpus, out)
    assert "characters" in Run(out).fusion().parts_
    assert "characters" not in events_of(corpus, out, "characters.documents=0")
    assert not Run(out).has("characters")
    assert "characters" not in Run(out).fusion().parts_
    assert Classifier.load(out).predict(corpus.texts[:2]).k == 5
    again = events_of(corpus, out)
    assert again["characters"][0] == "kept"
    assert contents(out) == undisturbed


def test_what_was_made_with_a_stage_that_is_set_aside_is_not_used_until_it_is_made_again(
    corpus, tmp_path
):
    out = tmp_path / "run"
    pipeline.fit(corpus, out)
    events_of(corpus, out, "characters.documents=0", until="descriptions")
    assert not Run(out).has("fusion")
    assert Run(out).has("descriptions")


def test_a_setting_for_what_was_set_aside_makes_it_again(corpus, tmp_path):
    out = tmp_path / "run"
    pipeline.fit(corpus, out)
    pipeline.fit(corpus, out, Config.load(overrides=["characters.documents=0"]))
    again = events_of(corpus, out, "linear.C=2")
    assert again["characters"][0] == "done"


def test_C_is_chosen_on_a_slice_and_the_choice_is_kept(corpus, tmp_path):  # noqa: N802
    config = Config.load(overrides=["linear.C_grid=[0.0001, 1.0]"])
    run = pipeline.fit(corpus, tmp_path / "run", config)
    tried = json.loads((run.path / "linear" / "choice.json").read_text())
    assert [row["C"] for row in tried] == [0.0001, 1.0]
    best = max(tried, key=lambda row: row["P@5"] + row["PSP@5"])
    assert best["C"] == run.svm().C


def test_a_tree_of_labels_is_fitted_and_found_again(corpus, tmp_path, monkeypatch):
    config = Config.load(overrides=["linear.C_grid=[0.1, 1.0]"])
    X = pipeline.fit(corpus, tmp_path / "run", config, until="features").train_vectors()
    # Just too much for one-vs-all; without the held-out documents it would not be.
    cost = X.nnz * np.count_nonzero(corpus.label_counts)
    monkeypatch.setattr("depl.sparse.label_tree._COSTLY", cost - 1)
    monkeypatch.setattr("depl.sparse.label_tree._MANY", 1)
    run = pipeline.fit(corpus, tmp_path / "run", config)
    assert {type(run.svm()), type(run.held_out_svm(0))} == {LabelTreeSVM}
    model = Classifier.load(run.path)
    best = model.predict(corpus.texts[:50], 1).indices[:, 0]
    assert np.mean([corpus.Y[i, label] > 0 for i, label in enumerate(best)]) > 0.9
    model.add_labels([Label("new", "topic word299")])
    assert "new" in model.predict(["word299 " * 5], 5).rows()[0][0][0].id


def test_another_corpus_is_refused_and_nothing_is_lost(corpus, tmp_path, undisturbed):
    pipeline.fit(corpus, tmp_path / "run")
    other = make_corpus(seed=1)
    with pytest.raises(RunError, match=r"another corpus.*--overwrite"):
        pipeline.fit(other, tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed
    pipeline.fit(other, tmp_path / "run", overwrite=True)
    assert contents(tmp_path / "run") != undisturbed


def test_a_folder_with_other_things_in_it_is_left_alone(corpus, tmp_path):
    (tmp_path / "thesis.docx").write_text("years of work")
    with pytest.raises(RunError, match=r"thesis\.docx"):
        pipeline.fit(corpus, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.docx"]
    with pytest.raises(RunError, match="is a file"):
        pipeline.fit(corpus, tmp_path / "thesis.docx")


def test_unknown_stages_and_empty_corpora_are_refused(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"no stage 'svm'.*linear"):
        pipeline.fit(corpus, tmp_path / "run", until="svm")
    with pytest.raises(ConfigError, match="nothing to learn"):
        pipeline.fit(corpus.subset([]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stage", ["features", "linear", "held_out", "descriptions"])
def test_a_full_disk_says_so_and_the_finished_stages_stay(
    corpus, tmp_path, monkeypatch, undisturbed, stage
):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    fitted = {"features": sparse.TfidfFeatures, "descriptions": sparse.Descriptions}
    with monkeypatch.context() as patch:
        if stage in ("linear", "held_out"):
            patch.setattr(
                label_tree, "OneVsAllSVM", SavesOnce if stage == "held_out" else NeverSaves
            )
        else:
            patch.setattr(fitted[stage], "save", full)
        with pytest.raises(RunError, match=r"No space left on device.*same command again"):
            pipeline.fit(corpus, tmp_path / "run")
    done = list(Run(tmp_path / "run").manifest()["stages"])
    assert done == list(STAGE_NAMES[: STAGE_NAMES.index(stage)])
    assert not list((tmp_path / "run").glob(".*.tmp"))
    pipeline.fit(corpus, tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed


def test_a_read_only_folder_says_so(corpus, tmp_path, monkeypatch):
    def read_only(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(RunError, match=r"Permission denied.*fix the permissions"):
        pipeline.fit(corpus, tmp_path / "run")


def test_two_processes_cannot_fit_one_folder(corpus, tmp_path):
    with Run(tmp_path / "run").locked(), pytest.raises(RunError, match="Another process"):
        pipeline.fit(corpus, tmp_path / "run")


class NeverSaves(OneVsAllSVM):
    """An SVM that finds the disk full."""

    def save(self, folder):
        raise OSError(errno.ENOSPC, "No space left on device")


class SavesOnce(OneVsAllSVM):
    """An SVM that finds the disk full when it is fitted without the held-out documents."""

    def save(self, folder):
        if "held_out" in folder.parent.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save(folder)


def fit_and_print(corpus, out, pipe):
    pipeline.fit(corpus, out, observe=lambda event: pipe.send((event.stage, event.kind)))


@pytest.mark.parametrize("stage", STAGE_NAMES)
@pytest.mark.parametrize("delay", [0.0, 0.02])
def test_killed_in_a_stage_and_continued_gives_the_same_bytes(
    corpus, tmp_path, undisturbed, stage, delay
):
    # A fork has all libraries loaded; a new interpreter would take seconds to load them.
    processes = multiprocessing.get_context("fork")
    here, there = processes.Pipe(duplex=False)
    child = processes.Process(target=fit_and_print, args=(corpus, tmp_path / "run", there))
    child.start()
    there.close()
    while here.recv() != (stage, "started"):
        pass
    time.sleep(delay)
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    here.close()
    pipeline.fit(corpus, tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed
    assert not list((tmp_path / "run").glob(".*.tmp"))


@pytest.mark.parametrize("moment", range(9))
def test_killed_at_any_write_and_continued_gives_the_same_bytes(
    corpus, tmp_path, monkeypatch, undisturbed, moment
):
    """A kill is a process that writes no more: stop dead at the n-th rename or removal."""

    class Killed(BaseException):
        pass

    steps = iter(range(1000))
    flush = storage.flush

    def counted(path):
        if next(steps) == moment * 3:
            raise Killed
        flush(path)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "flush", counted)
        patch.setattr(storage.shutil, "rmtree", lambda *a, **k: None)  # the dead clean up nothing
        with pytest.raises(Killed):
            pipeline.fit(corpus, tmp_path / "run")
    pipeline.fit(corpus, tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed
