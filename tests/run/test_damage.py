"""Damaged run folders: refused by name and command, found by check, repaired by fit."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.damage import DAMAGES, SWAPPED, damaged_copy, files_of
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core import storage
from depl.core.corpus import Dataset
from depl.core.errors import RunError
from depl.core.tensors import write_tensors
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.folder import Run

# What suggesting labels reads of a sparse run.
READ = (
    "manifest.json",
    "corpus/labels.parquet",
    "corpus/Y.safetensors",
    "features/terms.parquet",
    "features/tfidf.json",
    "features/X.safetensors",
    "linear/svm.json",
    "linear/svm.safetensors",
    "characters/final/characters.safetensors",
    "characters/final/svm.json",
    "characters/final/svm.safetensors",
    "descriptions/names.safetensors",
    "descriptions/descriptions.parquet",
    "fusion/fusion.json",
    "fusion/label_facts.safetensors",
    "fusion/newcomers.json",
    "fusion/thresholds.json",
    "fusion/trees.safetensors",
)


@pytest.fixture(scope="module")
def other_run(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with other settings, to swap files with."""
    config = Config.load(overrides=["linear.C=2.0", "features.min_df=1", "seed=1"])
    return fit(dataset.train.subset(range(40)), tmp_path_factory.mktemp("other") / "r", config).path


def made_again(run: Path, dataset: Dataset | None = None) -> list[str]:
    events = {}
    corpus = None if dataset is None else dataset.train
    fit(corpus, run, observe=lambda e: events.update({e.stage: e.kind}))
    return [stage for stage, kind in events.items() if kind != "kept"]


def check(run: Path) -> tuple[int, dict[str, object]]:
    told = CliRunner().invoke(app, ["check", str(run), "--json"])
    return told.exit_code, json.loads(told.stdout)


@pytest.mark.parametrize("kind", [*DAMAGES, SWAPPED])
def test_every_damaged_file_is_named_with_the_command_that_repairs_it_or_was_not_needed(
    fitted_run: Path, other_run: Path, dataset: Dataset, tmp_path: Path, kind: str
):
    before = Classifier.load(fitted_run).predict(dataset.dev.texts)
    rng = random.Random(kind)
    for i, name in enumerate(files_of(fitted_run)):
        copy = tmp_path / str(i)
        damaged_copy(fitted_run, other_run, name, kind, copy, rng)
        if (copy / name).exists() and (copy / name).read_bytes() == (
            fitted_run / name
        ).read_bytes():
            continue  # a swapped file may be the same in both runs
        if name in READ:
            with pytest.raises(RunError) as refused:
                Classifier.load(copy)
            # By the manifest of another run, it is the other files that are not what it says.
            named = copy if (kind, name) == (SWAPPED, "manifest.json") else copy / name
            assert str(named) in str(refused.value)
            assert "depl fit" in str(refused.value)
            assert len(str(refused.value)) < 1_000
        else:
            after = Classifier.load(copy).predict(dataset.dev.texts)
            np.testing.assert_array_equal(after.scores, before.scores)


@pytest.mark.parametrize("deleted", [True, False])
def test_fit_makes_just_the_damaged_stage_again_and_all_is_as_before(
    own_run: Path, fitted_run: Path, deleted: bool
):
    for name in ("features/terms.parquet", "linear/svm.safetensors", "fusion/trees.safetensors"):
        path = own_run / name
        path.unlink() if deleted else path.write_bytes(b"\0" * path.stat().st_size)
        stage = name.partition("/")[0]
        assert made_again(own_run) == [stage]
        assert path.read_bytes() == (fitted_run / name).read_bytes()
        assert made_again(own_run) == []


def test_a_repair_that_gives_other_bytes_also_makes_what_rests_on_it(own_run: Path):
    manifest = Run(own_run).manifest()
    files = manifest["stages"]["linear"]["files"]
    files["svm.safetensors"]["sha256"] = "of another machine"
    Run(own_run).write_manifest(manifest)
    assert made_again(own_run) == ["linear", "held_out", "characters", "descriptions", "fusion"]


def test_a_stage_folder_that_is_gone_is_no_unfinished_run(own_run: Path):
    shutil.rmtree(own_run / "fusion")
    with pytest.raises(RunError, match=r"fusion\S+ is missing; make it again with: depl fit"):
        Classifier.load(own_run)
    assert made_again(own_run) == ["fusion"]


def test_damaged_documents_need_the_corpus_and_the_matrix_does_not(own_run: Path, dataset: Dataset):
    (own_run / "corpus" / "Y.safetensors").unlink()
    assert made_again(own_run) == ["corpus"]
    (own_run / "corpus" / "train.parquet").write_bytes(b"")
    with pytest.raises(RunError, match=r"train\.parquet .*: depl fit CORPUS --out \S+own"):
        made_again(own_run)
    assert made_again(own_run, dataset) == ["corpus"]


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "[" * 100_000, None])
def test_the_manifest_is_restored_from_its_copy(own_run: Path, content: str | None):
    path = own_run / "manifest.json"
    before = path.read_bytes()
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(RunError, match=r"manifest\.json .*copy with: depl fit \S+own") as refused:
        Classifier.load(own_run)
    assert len(str(refused.value)) < 1_000
    told = CliRunner().invoke(app, ["fit", str(own_run)])
    assert told.exit_code == 0
    assert "made again" not in told.output
    assert path.read_bytes() == before


def test_without_a_copy_the_run_is_made_again_from_its_corpus(own_run: Path, dataset: Dataset):
    for name in ("manifest.json", ".manifest.copy.json"):
        (own_run / name).write_text("{")
    with pytest.raises(RunError, match=r"manifest\.json .*depl fit CORPUS --out \S+ --overwrite"):
        Classifier.load(own_run)
    with pytest.raises(RunError, match=r"--overwrite"):
        fit(dataset.train, own_run)
    fit(dataset.train, own_run, overwrite=True)
    Classifier.load(own_run)


def test_a_manifest_that_cannot_be_read_says_so(own_run: Path, monkeypatch: pytest.MonkeyPatch):
    if os.geteuid() == 0:  # root may read everything
        (own_run / "manifest.json").unlink()
        (own_run / "manifest.json").mkdir()
        (own_run / ".manifest.copy.json").unlink()
        with pytest.raises(RunError, match=r"no manifest\.json"):
            Classifier.load(own_run)
    else:
        (own_run / "manifest.json").chmod(0)
        with pytest.raises(RunError, match=r"manifest\.json"):
            Classifier.load(own_run)


def test_a_link_that_leads_out_of_the_run_is_not_followed(own_run: Path, tmp_path: Path):
    path = own_run / "linear" / "svm.safetensors"
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"svm\.safetensors is a link that leads out of the run"):
        Classifier.load(own_run)
    shutil.copy(tmp_path / "elsewhere", own_run / "linear" / "here")
    path.unlink()
    path.symlink_to("here")
    Classifier.load(own_run)


def test_stages_of_different_runs_are_refused_without_hashes_too(
    own_run: Path, other_run: Path, dataset: Dataset
):
    manifest = Run(own_run).manifest()
    for stage in manifest["stages"].values():
        del stage["files"]
    Run(own_run).write_manifest(manifest)
    shutil.copy(other_run / "linear" / "svm.safetensors", own_run / "linear")
    with pytest.raises(RunError, match=r"do not fit each other.*depl fit \S+own --from features"):
        Classifier.load(own_run)


def test_check_finds_everything_and_says_what_to_make_again(own_run: Path):
    assert check(own_run)[0] == 0
    (own_run / "linear" / "svm.json").unlink()
    (own_run / "held_out" / "0" / "svm.safetensors").write_bytes(b"")
    code, found = check(own_run)
    assert (code, found["whole"]) == (1, False)
    damaged = {x["stage"]: x["damaged"] for x in found["stages"] if x["damaged"]}
    assert list(damaged) == ["linear", "held_out"]
    assert damaged["linear"] == {"svm.json": "is missing"}
    assert damaged["held_out"]["0/svm.safetensors"].startswith("is damaged (it has 0 bytes")
    told = CliRunner().invoke(app, ["check", str(own_run)])
    assert told.exit_code == 1
    assert f"To repair, make it again with: depl fit {own_run}" in told.stdout
    assert made_again(own_run) == ["linear", "held_out"]
    assert check(own_run)[0] == 0


def test_what_is_written_follows_no_link_and_has_the_permissions_of_the_umask(tmp_path: Path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    before = os.umask(0o027)
    try:
        for name, write in {
            "manifest.json": lambda path: storage.write_json(path, {}),
            "t.safetensors": lambda path: write_tensors(path, {"a": np.ones(2)}),
            "t.parquet": lambda path: storage.write_table(path, {"a": [1]}),
        }.items():
            (tmp_path / f".{name}.tmp").symlink_to(precious)
            write(tmp_path / name)
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
    assert precious.read_text() == "mine"
    (tmp_path / ".stage.tmp").symlink_to(tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with storage.whole_folder(tmp_path / "stage") as temporary:
        (temporary / "new").touch()
    assert os.listdir(tmp_path / "folder") == ["file"]
    (tmp_path / "journal").symlink_to(precious)
    with pytest.raises(RunError, match="Cannot write to"):
        storage.append(tmp_path / "journal", b"x", after=0)
    assert precious.read_text() == "mine"
