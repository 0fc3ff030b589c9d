"""The runner of the paper's experiments, from a corpus folder to a result file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("one_thread")

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
N_LABELS = 12
QUICK = (
    "features.analyzer=words",
    "encoder.max_tokens=24",
    "classifier.epochs=4",
    "classifier.batch_size=16",
    "retrieval.epochs=3",
    "retrieval.batch_size=16",
    "validation=0.25",
    "device=cpu",
)


@pytest.fixture
def runner(import_script):
    return import_script("run")


@pytest.fixture
def folder(vocabulary, tmp_path):
    """Two words decide a label; the last label occurs in no training document."""
    rng = np.random.default_rng(0)
    words = np.array(vocabulary[5:-1])
    path = tmp_path / "toy"
    path.mkdir()
    labels = [{"id": f"l{j}", "name": str(words[2 * j])} for j in range(N_LABELS)]
    _write_lines(path / "labels.jsonl", labels)
    for split, n, among in (("train", 90, N_LABELS - 1), ("dev", 30, N_LABELS)):
        documents = []
        for i in range(n):
            carried = sorted(rng.choice(among, rng.integers(1, 3), replace=False).tolist())
            signs = [words[2 * j + rng.integers(2)] for j in carried for _ in range(2)]
            text = " ".join(rng.permutation([*signs, *rng.choice(words[2 * N_LABELS :], 6)]))
            documents.append(
                {"id": f"{split}{i}", "text": text, "labels": [f"l{j}" for j in carried]}
            )
        _write_lines(path / f"{split}.jsonl", documents)
    return path


def _write_lines(path, objects):
    path.write_text("".join(json.dumps(x) + "\n" for x in objects), encoding="utf-8")


def _run(runner, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["run.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        runner.main()
    return stopped.value.code


def test_every_experiment_measures_what_it_names_and_nothing_twice(
    runner, monkeypatch, folder, tiny_folder, tmp_path, capsys
):
    places = ["--out", tmp_path / "runs", "--results", tmp_path / "results"]
    quick = [x for s in (*QUICK, f"encoder.name='{tiny_folder}'") for x in ("--set", s)]
    for experiment in ("systems", "ablations", "lengths", "laptop"):
        assert _run(runner, monkeypatch, experiment, folder, *places, *quick) == 0
    result = json.loads((tmp_path / "results" / "toy-seed0.json").read_text())
    assert (result["corpus"], result["split"], result["seed"]) == ("toy", "dev", 0)
    import tomllib

    experiments = tomllib.loads((EXPERIMENTS / "experiments.toml").read_text())
    frozen = json.loads((tmp_path / "results" / "toy-seed0-cpu-frozen.json").read_text())
    assert set(frozen["systems"]) == set(experiments.pop("laptop")["systems"])
    wanted = {s for e in experiments.values() for s in e["systems"]}
    assert set(result["systems"]) == wanted
    scores = {name: x["report"] for name, x in result["systems"].items()}
    assert scores["svm"]["documents"] == 30
    assert scores["svm"]["bands"]["0"]["R@10"] == 0
    assert scores["fusion, seen labels only"]["bands"]["0"]["R@10"] == 0
    assert len({json.dumps(scores[s]) for s in wanted if s.startswith("de")}) > 3  # they do differ
    from measured import kept_ranking

    import depl

    dev = depl.read(folder, splits=["dev"]).dev
    kept = kept_ranking(tmp_path / "runs" / "recipes" / "toy", "depl", 0)  # for significance.py
    right = [row[0] in dev.Y[[i]].indices for i, row in enumerate(kept.indices)]
    assert 100 * np.mean(right) == pytest.approx(scores["depl"]["P@1"], abs=1e-3)
    capsys.readouterr()
    assert _run(runner, monkeypatch, "lengths", folder, *places, *quick) == 0
    assert "has all of it" in capsys.readouterr().out


def test_a_score_far_from_the_expected_one_fails_the_command(runner, capsys):
    report = {"documents": 1, "labels": 1, "P@1": 90.0, "P@5": 70.0}
    report["bands"] = {"1-9": {"macroF1@5_in_test": 30.0}}
    expected = {"depl": {"P@1": 90.4, "tail": 32.0, "tolerance": 0.5}}
    assert runner.compare(expected, {"depl": {"report": report}}) == 1
    assert "tail is 30.00, expected 32.0" in capsys.readouterr().out
    expected["depl"]["tail"] = 30.2
    assert runner.compare(expected, {"depl": {"report": report}}) == 0
