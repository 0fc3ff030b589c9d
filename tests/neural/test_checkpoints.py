"""What a kill or a damaged disk leaves of a training: continued, or begun again, never mixed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from benchmarks.damage import DAMAGES

from depl.core.errors import ConfigError
from depl.neural.checkpoints import Checkpoint
from depl.neural.curves import Curves
from depl.neural.distributed import Processes
from depl.neural.training import Progress


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_checkpoint_is_none(tmp_path: Path, kind: str):
    model = torch.nn.Linear(30, 20)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(30)).sum().backward()
    optimizer.step()
    kept = Checkpoint(tmp_path)
    kept.save(model, optimizer, {"step": 3}, model.state_dict())
    assert kept.load(model, optimizer) == {"step": 3}
    rng = random.Random(kind)
    for path in (tmp_path / "checkpoint.safetensors", tmp_path / "best.safetensors"):
        whole = path.read_bytes()
        damaged = DAMAGES[kind](whole, rng)
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
    assert kept.load(model, optimizer) is None
    assert kept.load_best() is None


@pytest.mark.parametrize("torn", ['{"step": 7, "loss": 0', "}", '{"loss": 1}', "[" * 9_000, "\xff"])
def test_a_torn_line_of_a_curve_is_dropped(tmp_path: Path, torn: str):
    whole = [json.dumps({"step": step}) for step in (5, 6)]
    path = tmp_path / "training.jsonl"
    path.write_text("\n".join([*whole, torn]))
    with Curves(tmp_path, "training", False) as curves:
        curves.add(Progress(7, 1, 0.5, 10.0, False))
    lines = path.read_text().splitlines()
    assert lines[:2] == whole
    assert [json.loads(line)["step"] for line in lines] == [5, 6, 7]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told_with_the_setting():
    with pytest.raises(ConfigError, match=r"torch finds none here.*--set device=auto"):
        Processes.launched("cuda")
