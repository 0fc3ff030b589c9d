"""Training that is killed, and training by several processes: the same result as without."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.clusters import two_nodes

from depl.core.cluster import RayExecutor
from depl.core.corpus import Corpus, Label, LabelSet
from depl.model.classifier import Classifier
from depl.neural.encoder import pooled_states
from depl.neural.encoder_files import load_encoder
from depl.neural.index import LabelIndex
from depl.neural.tokens import Tokens
from depl.pipeline import fit as pipeline
from depl.run.config import Config
from depl.run.folder import Run

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = (
    "features.analyzer=words",
    "encoder.training=full",
    "encoder.max_tokens=24",
    "classifier.epochs=6",
    "classifier.batch_size=16",
    "retrieval.epochs=6",
    "retrieval.batch_size=16",
    "validation=0.25",
    "device=cpu",
    "threads=1",
    "checkpoint_seconds=0",
)


@pytest.fixture(scope="module")
def encoder_folder(tiny_folder, tmp_path_factory):
    """The tiny encoder without dropout, which several processes could not draw alike."""
    folder = tmp_path_factory.mktemp("steady") / "encoder"
    shutil.copytree(tiny_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def prepared(encoder_folder, vocabulary, tmp_path_factory):
    """A run up to its tokens, to be copied and trained in different ways."""
    rng = np.random.default_rng(1)
    words = np.array(vocabulary[5:-1])
    labels = LabelSet(Label(f"l{j}", words[j]) for j in range(10))
    rows = [sorted(rng.choice(10, 2, replace=False).tolist()) for _ in range(128)]
    texts = [" ".join([*words[row], *rng.choice(words[10:], 5)]) for row in rows]
    corpus = Corpus.from_rows([f"d{i}" for i in range(128)], texts, rows, labels)
    out = tmp_path_factory.mktemp("prepared") / "run"
    config = Config.load(None, [*SETTINGS, f"encoder.name='{encoder_folder}'"])
    pipeline.fit(corpus, out, config, until="label_texts")
    return out


@pytest.fixture(scope="module")
def undisturbed(prepared, tmp_path_factory):
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    shutil.copytree(prepared, run)
    pipeline.fit(None, run)
    return run


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What processes that are started here are to know."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")


def new(run: Path, log: Path) -> int:
    """A new interpreter that continues a run; its process id."""
    command = [sys.executable, "-m", "depl", "fit", str(run)]
    with log.open("wb") as out:
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), standard) for standard in (1, 2)]
        return os.posix_spawn(sys.executable, command, os.environ, file_actions=actions)


def fork(log: Path, function: Callable[[], object]) -> int:
    """A process that has imported torch already, which takes a new one seconds; its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with log.open("wb") as out:
            for standard in (1, 2):
                os.dup2(out.fileno(), standard)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        function()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def weights(run):
    return {
        f"{stage}/{name}": tensor
        for stage in ("classifier", "classifier/held_out", "encoder", "encoder/held_out")
        for file in ("model.safetensors", "depl.safetensors", "2_Dense/model.safetensors")
        for name, tensor in load_file(run / stage / file).items()
    }


def steps(log: Path) -> int:
    lines = log.read_text().splitlines() if log.exists() else []
    return json.loads(lines[-1])["step"] if lines else 0


def test_killed_twice_in_training_and_continued_gives_the_same_weights(
    prepared, undisturbed, tmp_path
):
    run = tmp_path / "run"
    shutil.copytree(prepared, run)
    reached, said = {}, tmp_path / "said.txt"
    for stage in ("classifier-held_out", "encoder-final"):
        first = stage.startswith("classifier")
        child = new(run, said) if first else fork(said, lambda: pipeline.fit(None, run))
        log = run / "logs" / f"{stage}.jsonl"
        while steps(log) < 8 and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.005)
        assert steps(log) >= 8, said.read_text()
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        reached[log] = steps(log)
        name, fold = stage.split("-")
        assert list((run / ".scratch").glob(f"{name}-*/{fold}/checkpoint.safetensors"))
    pipeline.fit(None, run)
    for log, step in reached.items():
        curve = [json.loads(line) for line in log.read_text().splitlines()]
        assert [c["step"] for c in curve] == sorted({c["step"] for c in curve})
        assert curve[-1]["step"] > step
    expected, found = weights(undisturbed), weights(run)
    assert expected.keys() == found.keys()
    for key, tensor in expected.items():
        np.testing.assert_array_equal(found[key], tensor, err_msg=key)


def test_two_processes_train_what_one_does(prepared, undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(prepared, run)
    options = ["--cpu", "--num_processes=2", "--num_machines=1", "--mixed_precision=no"]
    options += ["--dynamo_backend=no", "--num_cpu_threads_per_process=1", "--main_process_port=0"]

    def launch() -> None:  # what `accelerate launch` does
        from accelerate.commands.launch import launch_command, launch_command_parser

        command = [*options, "-m", "depl", "fit", str(run)]
        launch_command(launch_command_parser().parse_args(command))

    said = tmp_path / "said.txt"
    assert os.waitpid(fork(said, launch), 0)[1] == 0, said.read_text()[-3000:]
    for log in ("classifier-held_out", "classifier-final", "encoder-held_out", "encoder-final"):
        np.testing.assert_allclose(losses(run, log), losses(undisturbed, log), rtol=1e-3)
    texts = ["bade bafi", "gohu leka"]
    one, two = (Classifier.load(r).predict(texts, k=3) for r in (undisturbed, run))
    assert (one.indices[:, 0] == two.indices[:, 0]).all()


def losses(run: Path, log: str) -> list[float]:
    lines = (run / "logs" / f"{log}.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    with two_nodes() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def executor(cluster):
    with RayExecutor(cluster.address) as executor:
        yield executor


def test_encoding_and_search_on_a_cluster_give_the_bytes_of_one_machine(
    encoder_folder, executor, monkeypatch
):
    monkeypatch.setattr("depl.neural.encoder._TASK_TOKENS", 300)
    rng = np.random.default_rng(0)
    encoder = load_encoder(encoder_folder, int8=True)
    rows = [rng.integers(5, 199, size).tolist() for size in rng.integers(1, 30, 100)]
    tokens = Tokens.from_rows([[2, *row, 3] for row in rows])
    for budget in (64, 1_000):
        here, there = (
            pooled_states(encoder, tokens, "document", budget=budget, executor=where)
            for where in (None, executor)
        )
        np.testing.assert_array_equal(here.numpy(), there.numpy())
    index = LabelIndex.build(np.repeat(here.numpy(), 2, axis=0))  # every label has its equal
    for k in (3, 300):
        one, two = (
            index.search(here.numpy(), k, scale=2.0, bias=-1.0, labels=7, executor=where)
            for where in (None, executor)
        )
        np.testing.assert_array_equal(one.indices, two.indices)
        np.testing.assert_array_equal(one.scores, two.scores)


class Killing:
    """A cluster on which a process dies at its 10th step of training, then with its node.

    Parameters
    ----------
    executor : RayExecutor
        What trains.
    node : str
        Whose process dies; the next one that is started there kills the node.
    marks : Path
        An empty folder; gets a file for each of both.
    """

    def __init__(self, executor: RayExecutor, node: str, marks: Path) -> None:
        self.executor, self.node, self.marks = executor, node, marks

    def __getattr__(self, name):
        return getattr(self.executor, name)

    def together(self, function, task, **options):
        # A function of a function travels by value: the workers need not find this file.
        def call(part: object) -> None:
            import os
            import signal

            import ray

            from depl.neural.distributed import Processes

            steps, sum_gradients = [], Processes.sum_gradients
            here = ray.get_runtime_context().get_node_id()

            def step(self: Processes, parameters: object) -> None:
                steps.append(1)
                if here == node and len(steps) == 10:
                    again = (marks / "process").exists()
                    (marks / ("node" if again else "process")).touch()
                    if again:
                        os.kill(os.getppid(), signal.SIGKILL)
                    os.kill(os.getpid(), signal.SIGKILL)
                sum_gradients(self, parameters)

            Processes.sum_gradients = step
            function(part)

        node, marks = self.node, self.marks
        return self.executor.together(call, task, **options)


def test_the_nodes_of_a_cluster_train_what_one_machine_does_though_one_of_them_is_lost(
    prepared, undisturbed, cluster, executor, tmp_path
):
    run, marks = tmp_path / "run", tmp_path / "killed"
    shutil.copytree(prepared, run)
    marks.mkdir()
    (node,) = cluster.worker_nodes
    pipeline.fit(None, run, until="classifier", executor=Killing(executor, node.node_id, marks))
    assert {mark.name for mark in marks.iterdir()} == {"process", "node"}
    for log in ("classifier-held_out", "classifier-final"):
        found, expected = losses(run, log), losses(undisturbed, log)
        assert len(found) == len(expected)
        assert found[-1] == pytest.approx(expected[-1], rel=1e-3)
    assert not list((run / ".scratch").iterdir())


def test_curves_for_tensorboard(prepared, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tmp_path / "run"
    shutil.copytree(prepared, run)
    config = Run(run).config().changed(["tensorboard=true", "classifier.epochs=1"])
    pipeline.fit(None, run, config, until="classifier")
    events = EventAccumulator(str(run / "logs" / "tensorboard" / "classifier-held_out"))
    events.Reload()
    told = [
        json.loads(x) for x in (run / "logs/classifier-held_out.jsonl").read_text().splitlines()
    ]
    assert [e.value for e in events.Scalars("loss")] == pytest.approx([t["loss"] for t in told])
    assert len(events.Scalars("classifier/P@1")) == 1
