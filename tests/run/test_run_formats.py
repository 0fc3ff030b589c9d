"""Runs of every format that can be read: a small one of each is kept in ``formats/``.

``formats/README.md`` says how the next one is made.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core import storage
from depl.core.corpus import Dataset
from depl.core.errors import RunError
from depl.core.tensors import read_tensors
from depl.core.version import __version__
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.folder import Run
from depl.run.manifest import FORMAT_VERSION

FORMATS = Path(__file__).parent / "formats"
KEPT = sorted(int(path.name) for path in FORMATS.iterdir() if path.name.isdecimal())


@pytest.fixture(params=KEPT)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a kept run and what it answered when it was made."""
    return Path(shutil.copytree(FORMATS / str(request.param), tmp_path / "kept"))


def assert_answers(kept: Path, near: float = 1e-4) -> None:
    answers = json.loads((kept / "answers.json").read_text())
    model = Classifier.load(kept / "run")
    rows = model.predict(answers["texts"], 3).rows(model.labels)
    assert [[label.id for label, _ in row] for row in rows] == answers["labels"]
    np.testing.assert_allclose(
        [[score for _, score in row] for row in rows], answers["scores"], atol=near
    )


def seal(run: Path, **changes: object) -> None:
    """Write a manifest as another version of depl would, and its copy."""
    manifest = json.loads((run / "manifest.json").read_text()) | changes
    del manifest["checksum"]
    sealed = manifest | {"checksum": storage.fingerprint(manifest)}
    for name in ("manifest.json", ".manifest.copy.json"):
        (run / name).write_text(json.dumps(sealed))


def test_this_format_has_a_kept_run():
    assert KEPT[-1] == FORMAT_VERSION


def test_a_run_of_every_format_answers_as_it_did(kept: Path):
    assert_answers(kept)


def test_a_fit_brings_it_to_this_format(kept: Path):
    events = {}
    before = json.loads((kept / "run" / "manifest.json").read_text())["format_version"]
    fit(None, kept / "run", observe=lambda e: events.update({e.stage: e.kind}))
    assert events["corpus"] == "kept"
    # What depends on settings that are new since then is made again.
    assert set(events.values()) == {"kept", "done"}
    manifest = json.loads((kept / "run" / "manifest.json").read_text())
    assert (manifest["format_version"], manifest["depl"]) == (FORMAT_VERSION, __version__)
    assert all(stage["files"] for stage in manifest["stages"].values())
    assert not (kept / "run" / "config.json").exists()
    if before == FORMAT_VERSION:
        # A fusion that is made again calibrates otherwise than the version that the run is from.
        assert_answers(kept, near=0.01)
    assert CliRunner().invoke(app, ["check", str(kept / "run")]).exit_code == 0


def test_check_says_that_format_3_has_nothing_to_check_by(tmp_path: Path):
    run = shutil.copytree(FORMATS / "3" / "run", tmp_path / "run")
    told = CliRunner().invoke(app, ["check", str(run)])
    assert told.exit_code == 0
    assert "run format 3" in told.stdout
    assert "keeps no hashes" in told.stdout


def test_a_newer_run_is_refused_with_what_to_install(own_run: Path):
    seal(own_run, format_version=99, depl="7.1.0")
    with pytest.raises(
        RunError, match=r"by depl 7\.1\.0 in run format 99.*pip install --upgrade depl"
    ):
        Classifier.load(own_run)


def test_a_run_that_is_too_old_is_refused_with_the_way_to_make_it_again(own_run: Path):
    (own_run / "manifest.json").write_text('{"format_version": 1, "stages": {}}')
    with pytest.raises(RunError, match=r"format 1,.*depl fit CORPUS --out \S+ --overwrite"):
        Classifier.load(own_run)


@pytest.mark.parametrize("with_corpus", [False, True])
def test_format_2_says_how_to_make_it_again_which_works(
    own_run: Path, dataset: Dataset, with_corpus: bool
):
    before = Classifier.load(own_run).predict(dataset.dev.texts)
    manifest = Run(own_run).manifest()
    for stage in manifest["stages"].values():
        stage["fingerprint"] = "of another format"
        del stage["files"]
    storage.write_json(own_run / "config.json", manifest.pop("config"))
    (own_run / "manifest.json").write_text(json.dumps(manifest | {"format_version": 2}))
    (own_run / ".manifest.copy.json").unlink()
    Y = read_tensors(own_run / "corpus" / "Y.safetensors")["matrix"]
    parts = ("data", "indices", "indptr")
    flat = {x: getattr(Y, x) for x in parts} | {"shape": np.array(Y.shape)}
    save_file(flat, own_run / "corpus" / "Y.safetensors")  # as format 2 has it
    with pytest.raises(RunError, match=r"format 2.* from its own documents with: depl fit \S+own"):
        Classifier.load(own_run)
    events = {}
    corpus = dataset.train if with_corpus else None
    fit(corpus, own_run, observe=lambda e: events.update({e.stage: e.kind}))
    assert events.pop("corpus") == "kept"
    assert set(events.values()) == {"done"}
    after = Classifier.load(own_run).predict(dataset.dev.texts)
    np.testing.assert_array_equal(after.scores, before.scores)
