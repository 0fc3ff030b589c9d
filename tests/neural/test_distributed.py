"""Threads that sleep while they wait, also where torch was there before depl."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from depl.core import threads
from depl.neural.distributed import Processes, let_threads_sleep


def holders() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "depl-openmp"]


@pytest.mark.parametrize("too_late", [False, True])
def test_a_second_team_is_held_just_where_the_policy_came_too_late(monkeypatch, too_late):
    before = len(holders())
    monkeypatch.setattr(threads, "TOO_LATE", too_late)
    let_threads_sleep.cache_clear()
    for _ in range(2):
        Processes.launched("cpu")
    assert len(holders()) - before == too_late
    assert all(t.daemon for t in holders())
    let_threads_sleep.cache_clear()


@pytest.mark.parametrize(
    ("first", "policy", "late"),
    [("torch", None, True), ("torch", "ACTIVE", False), ("json", None, False)],
)
def test_it_is_known_whether_torch_came_first(tmp_path, first, policy, late):
    (tmp_path / "torch.py").touch()  # what counts is that it was imported: the real one is slow
    code = f"import {first}; import depl, os; from depl.core import threads; " + (
        "print(threads.TOO_LATE, os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    environment |= {"PYTHONPATH": str(tmp_path)} | ({"OMP_WAIT_POLICY": policy} if policy else {})
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(late), policy or "PASSIVE"]
