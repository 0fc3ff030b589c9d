"""A quick part of the journeys in ``walk.py``, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("xlsxwriter", reason="the files are written with depl[dev]")

import messy
from typer.testing import CliRunner
from walk import Answer, Walk, first_run, small_things, tables

from depl.cli.app import app
from depl.core.errors import DeplError


def called(arguments: Sequence[str]) -> Answer:
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, DeplError):  # which the script's entry point prints
        return Answer(2, done.stdout, str(done.exception))
    return Answer(done.exit_code, done.stdout, done.stderr)


def test_a_first_day(tmp_path: Path):
    walk = Walk(tmp_path, called, report=lambda line: None)
    run = first_run(walk, messy.records(90), "--set", "folds=1")
    tables(walk, every=5)
    small_things(walk, run)
    assert not walk.failures, "\n\n".join(walk.failures)
    assert walk.steps > 45


def test_a_step_that_goes_wrong_is_noted(tmp_path: Path):
    walk = Walk(tmp_path, called, report=lambda line: None)
    walk.depl("--version", says=["a word that it does not say"])
    walk.depl("--version", fails=True)
    assert ["does not say" in x for x in walk.failures] == [True, False]
    assert "ended with 0" in walk.failures[1]
