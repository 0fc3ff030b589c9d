"""One of two nodes is killed in every stage that shares work: the run has the same bytes."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clusters import Disturbed, Moment, assert_suggests_the_same, files, one_node
from tests.quick_python import Quick
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.cluster import RayExecutor
from depl.core.corpus import Corpus, Dataset
from depl.pipeline.fit import fit
from depl.run.config import Config

pytest.importorskip("ray")

pytestmark = pytest.mark.usefixtures("many_tasks")

SPARSE = {"features", "linear", "held_out"}  # what every run begins with


@pytest.fixture
def disturbed(
    cluster: Any, executor: RayExecutor, tmp_path: Path
) -> Callable[[set[Moment]], Disturbed]:
    """The cluster, whose second node is killed at some moments."""
    marks = tmp_path / "marks"
    marks.mkdir()
    return lambda moments: Disturbed(executor, moments, marks, cluster)


def stages(moments: set[Moment]) -> set[str]:
    return {stage for stage, _ in moments}


def test_of_a_sparse_run(dataset: Dataset, disturbed: Callable, tmp_path: Path):
    config = Config.load({"linear": {"C_grid": [0.1, 0.7]}}, ["threads=1"])
    expected = files(fit(dataset.train, tmp_path / "local", config).path)
    moments = {("features", "call"), ("linear", "_solve"), ("held_out", "_solve")}
    moments |= {("characters", "_solve"), ("fusion", "_rank")}
    there = disturbed(moments)
    run = fit(dataset.train, tmp_path / "run", config, executor=there, observe=there.observe)
    assert there.killed == moments
    assert stages(there.shared) == stages(moments)
    assert files(run.path) == expected


@pytest.fixture
def neural(
    tiny_folder: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Config]:
    """Settings of a tiny run with an encoder, of which several tasks are made."""
    pytest.importorskip("torch")
    from depl.neural.index import LabelIndex

    monkeypatch.setattr("depl.neural.encoder._TASK_TOKENS", 60)
    monkeypatch.setattr("depl.neural.encoder._CPU_TOKENS", 30)
    monkeypatch.setitem(LabelIndex.search.__kwdefaults__, "labels", 5)
    usual = ("features.analyzer=words", "encoder.max_tokens=24", "validation=0.25", "device=cpu")
    usual += ("threads=1", "classifier.epochs=1", "retrieval.epochs=1")
    return lambda *more: Config.load(None, [*usual, f"encoder.name='{tiny_folder}'", *more])


@pytest.fixture(scope="module")
def corpus(two_words_a_label: Callable[..., Corpus]) -> Corpus:
    return two_words_a_label(60, 12, slice(24, None))


def test_of_a_run_with_a_frozen_encoder_and_a_label_tree(
    corpus: Corpus, neural: Callable[..., Config], disturbed: Callable, tmp_path: Path
):
    config = neural("encoder.training=frozen", "linear.solver=tree")
    expected = files(fit(corpus, tmp_path / "local", config).path)
    moments = {("linear", "_halve"), ("held_out", "solve_node"), ("negatives", "_rank")}
    moments |= {("documents", "_pool"), ("label_texts", "_pool"), ("fusion", "_search_part")}
    there = disturbed(moments)
    run = fit(corpus, tmp_path / "run", config, executor=there, observe=there.observe)
    assert there.killed == moments
    assert stages(there.shared) == SPARSE | stages(moments)
    assert files(run.path) == expected


def test_of_a_run_with_a_trained_encoder(
    corpus: Corpus, neural: Callable[..., Config], disturbed: Callable, tmp_path: Path
):
    local = fit(corpus, tmp_path / "local", neural("encoder.training=full")).path
    shutil.copytree(local, tmp_path / "run")
    for stage in ("index", "fusion"):
        there = disturbed({(stage, "_pool")})
        run = fit(None, tmp_path / "run", redo_from=stage, executor=there, observe=there.observe)
        assert (stage, "_pool") in there.killed
        assert files(run.path) == files(local)


def test_while_labels_are_suggested(fitted_run: Path, dataset: Dataset, disturbed: Callable):
    there = disturbed({("predict", "_rank_there")})
    assert_suggests_the_same(fitted_run, dataset.dev, there)


# A command whose tasks, in *linear*, wait for ever once they have said that they are there.
WAITING = """
import sys
from depl.cli.app import app
from depl.core.cluster import RayExecutor

mark, whole = sys.argv[1], RayExecutor.map

def map(self, function, payload, tasks, **options):
    def wait(payload, task):
        import os, time
        os.close(os.open(mark, os.O_CREAT))
        time.sleep(3600)
    solving = function.__name__ == "_solve"
    return whole(self, wait if solving else function, payload, tasks, **options)

RayExecutor.map = map
app(sys.argv[2:])
"""


def test_after_the_head_is_gone_the_same_command_goes_on(
    corpus_folder: Path,
    cluster: Any,
    executor: RayExecutor,
    quick_python: Callable[..., Quick],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    command = ["fit", str(corpus_folder), "--out", str(tmp_path / "run")]
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "1")  # by default a minute
    with (
        one_node() as doomed,
        (tmp_path / "said.txt").open("w") as said,
        quick_python(
            *("-c", WAITING, tmp_path / "mark", *command, "--ray", doomed.address),
            stdout=said,
            stderr=said,
        ) as process,
    ):
        while not (tmp_path / "mark").exists():
            assert process.poll() is None, (tmp_path / "said.txt").read_text()
            time.sleep(0.05)
        for started in doomed.head_node.all_processes.values():
            for each in started:
                os.kill(each.process.pid, signal.SIGKILL)
        assert process.wait(60) not in (0, None)
    assert files(tmp_path / "run").keys() == {"corpus", "features"}
    result = CliRunner().invoke(app, [*command, "--ray", cluster.address])
    assert result.exit_code == 0, result.output
    here = CliRunner().invoke(app, [*command[:-1], str(tmp_path / "local")])
    assert here.exit_code == 0, here.output
    assert files(tmp_path / "run") == files(tmp_path / "local")
