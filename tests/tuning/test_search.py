"""The search for settings: its space, its scores, its end and its continuation."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from depl.cli.app import app, main
from depl.core.aside import set_aside
from depl.core.corpus import Corpus
from depl.core.errors import ConfigError, DeplError, RunError
from depl.run.config import Config
from depl.tuning.results import best_of
from depl.tuning.search import Search
from depl.tuning.space import USUAL, parse_space

SPACE = ["linear.C=0.01..10", "features.sublinear_tf=true,false"]


@pytest.fixture(scope="module")
def corpus(dataset) -> Corpus:
    """Four documents from each of the small corpus, so that some can judge."""
    train = dataset.train
    texts = [f"{text} number {i}" for i in range(4) for text in train.texts]
    rows = [row.indices.tolist() for _ in range(4) for row in train.Y]
    ids = [str(i) for i in range(len(texts))]
    return Corpus.from_rows(ids, texts, rows, train.labels)


def search(corpus: Corpus, out: Path, space=SPACE, **options) -> Search:
    base = Config.load("sparse", ["threads=1"])
    wanted = {"documents": 80, "measure": "P@1"} | options
    return Search(corpus, out, base=base, space=parse_space(space, base), **wanted)


def test_a_search_that_is_interrupted_goes_on_where_it_was(corpus, tmp_path, monkeypatch):
    class KilledError(Exception):
        pass

    ours = search(corpus, tmp_path / "s")
    assert ours.sizes == [20, 40, 80]
    fitted: list[int] = []
    score = Search._score

    def killing(self, config, size):
        if len(fitted) == 7:
            raise KilledError
        fitted.append(size)
        return score(self, config, size)

    monkeypatch.setattr(Search, "_score", killing)
    seen = []
    with pytest.raises(KilledError):
        ours.run(6, seen.append)
    monkeypatch.setattr(Search, "_score", score)
    assert seen
    trials = search(corpus, tmp_path / "s").run(6, seen.append)
    assert [x.number for x in trials] == [x.number for x in seen]
    assert len(trials) == 6
    assert trials[0].settings == {"linear.C": "0.7", "features.sublinear_tf": "true"}
    assert not trials[0].stopped
    assert all(0.01 <= float(x.settings["linear.C"]) <= 10 for x in trials)
    assert {x.documents for x in trials if not x.stopped} == {80}
    assert {x.documents for x in trials if x.stopped} <= {20, 40}
    assert any(x.stopped for x in trials)
    assert best_of(trials).score == max(x.score for x in trials if not x.stopped)
    assert search(corpus, tmp_path / "s").run(6) == trials  # nothing is left to do
    with pytest.raises(RunError, match="another --out"):
        search(corpus, tmp_path / "s", space=[SPACE[0]]).run(6)


def test_the_score_is_that_of_a_fit_on_the_slice(corpus, tmp_path):
    """Against precision counted by hand, on documents that were not trained on."""
    ours = search(corpus, tmp_path / "s")
    (trial,) = ours.run(1)
    pool, judged = set_aside(corpus)
    order = np.random.default_rng(0).permutation(len(pool))[:80]
    assert not set(pool.subset(order).texts) & set(judged.texts)
    from depl.pipeline.fit import fit

    run = fit(pool.subset(order), tmp_path / "run", ours.config(trial), until="linear")
    found = run.svm().rank(run.features().transform(judged.texts), 1).indices[:, 0]
    right = [first in row.indices for first, row in zip(found, judged.Y, strict=True)]
    assert trial.score == pytest.approx(100 * np.mean(right))


def test_settings_of_other_sections_take_whole_runs(corpus, tmp_path):
    ours = search(corpus, tmp_path / "s", space=["fusion.candidates=5..40"], documents=60)
    assert not ours.svm_alone
    (trial,) = ours.run(1)
    assert trial.settings == {"fusion.candidates": "40"}
    assert trial.score > 50


def test_the_command_writes_settings_a_table_and_a_picture(corpus, tmp_path, monkeypatch, capsys):
    table = tmp_path / "laws.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "labels"])
        for id, text, row in zip(corpus.ids, corpus.texts, corpus.Y, strict=True):
            writer.writerow([id, text, ";".join(corpus.labels[j].name for j in row.indices)])
    out = tmp_path / "search"
    wish = ["tune", str(table), "--out", str(out), "--documents", "60", "--set", "threads=1"]
    wish += ["--vary", SPACE[0], "--measure", "P@1+PSP@1", "--trials", "2"]
    result = CliRunner().invoke(app, wish, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "0, unchanged" in result.output
    rows = list(csv.DictReader((out / "trials.csv").read_text().splitlines()))
    assert [row["trial"] for row in rows] == ["0", "1"]
    whole = [row for row in rows if row["stopped"] == "0"]
    best = max(whole, key=lambda row: float(row["score"]))
    assert pytest.approx(float(best["linear.C"])) == Config.load(out / "best.toml").linear.C
    assert "P@1+PSP@1" in (out / "trials.svg").read_text()
    assert not (out / "work").exists()

    def refused(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", ["depl", "tune", str(table), "--out", str(out), *more])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    assert "another --out" in refused("--trials", "2")
    assert "nonsense" in refused("--vary", "linear.nonsense=1..2")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'depl[tune]'" in refused()


def test_what_cannot_be_searched_says_so(corpus, tmp_path):
    base = Config()
    assert [x.name for x in parse_space([], base)] == [x.partition("=")[0] for x in USUAL]
    assert parse_space(["linear.C=0.1..10"], base)[0].own(base) == 0.7
    assert parse_space(["linear.C=1..10"], base)[0].own(base) is None
    for wish, words in (
        ("linear.C", "a setting and its values"),
        ("linear.C=", "a setting and its values"),
        ("linear.C=2..1", "lower to the higher"),
        ("linear.C=0..1", "linear.C"),
        ("linear.C=1", "one value"),
        ("linear.loss=hinge,none", "must be one of"),
        ("features.min_df=0.5..3", "features.min_df"),
        ("seed=1..5", "does not make a run better"),
    ):
        with pytest.raises(ConfigError, match=words):
            parse_space([wish], base)
    with pytest.raises(ConfigError, match="twice"):
        parse_space(["linear.C=1..2", "linear.C=2..3"], base)
    with pytest.raises(ConfigError, match="at least 100"):
        search(corpus.subset(range(50)), tmp_path / "s")
    with pytest.raises(DeplError, match="--measure"):
        search(corpus, tmp_path / "s", measure="accuracy")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.doc").touch()
    with pytest.raises(RunError, match="other files"):
        search(corpus, tmp_path / "full").run(1)
