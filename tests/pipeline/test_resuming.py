"""Training that is killed, and training by several processes: the same result as without."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from depl.core.corpus import Corpus, Label, LabelSet
from depl.model.classifier import Classifier
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


def environment():
    return os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


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
    reached = {}
    for stage in ("classifier-held_out", "encoder-final"):
        command = [sys.executable, "-m", "depl", "fit", run]
        child = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)
        log = run / "logs" / f"{stage}.jsonl"
        while steps(log) < 8 and child.poll() is None:
            time.sleep(0.005)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
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
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes=2"]
    launch += ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    launch += ["--num_cpu_threads_per_process=1", "--main_process_port=0"]
    result = subprocess.run(
        [*launch, "-m", "depl", "fit", str(run)], env=environment(), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    for log in ("classifier-held_out", "classifier-final", "encoder-held_out", "encoder-final"):
        one, two = (
            [json.loads(x)["loss"] for x in (r / "logs" / f"{log}.jsonl").read_text().splitlines()]
            for r in (undisturbed, run)
        )
        np.testing.assert_allclose(two, one, rtol=1e-3)
    texts = ["bade bafi", "gohu leka"]
    one, two = (Classifier.load(r).predict(texts, k=3) for r in (undisturbed, run))
    assert (one.indices[:, 0] == two.indices[:, 0]).all()


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
