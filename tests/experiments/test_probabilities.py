"""The check of probabilities and thresholds, by hand and on a small run."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.fusion.thresholds import Curve, Thresholds


@pytest.fixture(scope="module")
def script(import_script):
    return import_script("probabilities")


def curve(*points):
    """Thresholds with the precision from each on, found on so many that it is certain."""
    thresholds, precision = (np.array(x, np.float64) for x in zip(*points, strict=True))
    return Curve(thresholds, 1_000_000 * np.arange(1, len(points) + 1), precision, 4)


def test_what_was_asked_stands_beside_what_came(script):
    # Labels 0 and 1 are common, label 2 is rare; two documents carry 0, one of them 2 as well.
    ranking = Ranking(
        np.array([[0, 2, 1], [1, 0, -1]], np.int32),
        np.array([[0.875, 0.625, 0.25], [0.75, 0.5, -np.inf]], np.float32),
    )
    Y = csr_array(np.array([[1, 0, 1], [1, 0, 0]], np.float32))
    never = curve((0.9, 0.1))
    thresholds = Thresholds(
        {
            "all": curve((0.875, 1.0), (0.5, 0.75), (0.25, 0.6)),
            "0": never,
            "1-9": curve((0.625, 0.9)),
            "10-99": never,
            "100+": curve((0.875, 1.0), (0.8125, 0.9)),
        }
    )
    rows = {
        (asked, labels): cells
        for asked, labels, *cells in script.asked_and_got(
            thresholds, ranking, Y, np.array([500, 200, 3])
        )
    }
    # From 0.5 on four are suggested, three of them right, and these are all there are to find.
    assert rows["0.7", "all"] == ["0.500", "0.750", "4", "1.000"]
    assert rows["0.9", "all"] == ["0.875", "1.000", "1", "0.333"]
    assert rows["0.8", "1-9"] == ["0.625", "1.000", "1", "1.000"]
    assert rows["0.8", "100+"] == ["0.812", "1.000", "1", "0.500"]
    assert rows["0.8", "0"] == ["out of reach", "–", "–", "–"]
    assert rows["0.8", "all, `--per-band`"] == ["", "1.000", "2", "0.667"]


def test_tables_of_a_run_agree_with_its_predictions(
    script, fitted_run, corpus_folder, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["probabilities.py", str(fitted_run), str(corpus_folder)])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ECE@5: ")
    start = next(i for i, x in enumerate(lines) if x.startswith("| training documents"))
    bands = [x.strip("| ").split(" | ") for x in lines[start + 2 : lines.index("", start)]]

    import depl

    dev = depl.read(corpus_folder, splits=["dev"]).dev
    suggested = depl.Classifier.load(fitted_run).predict(dev.texts, 5).indices
    counted = sum(int(n.replace(",", "")) for _, n, _, _ in bands)
    assert counted == np.count_nonzero(suggested >= 0) > 0


def test_how_far_runs_are_off_is_counted_together_and_one_by_one(script):
    # Two runs: probabilities or what was asked, right or not, and the document.
    one = np.array([0.5, 0.5, 0.5, 0.5]), np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1])
    other = np.array([0.75, 0.25]), np.array([0.0, 0.0]), np.array([3, 4])
    n, mean, single = script.together([one, other])
    assert n == 3
    # -25 points of four and +50 of two; the sums of two documents are -0.5 and 0.5, of two +-0.25.
    errors = [100 * np.sqrt(2 * 0.5**2) / 4, 100 * np.sqrt(2 * 0.25**2) / 2]
    chance = np.hypot(2 / 3 * errors[0], errors[1] / 3)
    assert mean == f"+0.0 ± {chance:.1f}"
    of_single = np.sqrt(np.mean(np.square(errors)))
    assert single == f"{np.sqrt((25**2 + 50**2) / 2):.1f} (±{of_single:.1f})"


def test_small_runs_are_fitted_once_and_judged_on_other_documents(
    script, corpus_folder, tmp_path, monkeypatch, capsys
):
    runs = tmp_path / "runs"
    asked = ["probabilities.py", str(runs), str(corpus_folder), "--documents", "36"]
    asked += ["--samples", "1", "2", "--others", "10", "--set", "threads=1"]
    monkeypatch.setattr(sys, "argv", asked)
    script.main()
    shown = capsys.readouterr().out
    folders = sorted(x.name for x in runs.iterdir())
    assert folders == [f"{corpus_folder.name}-36-{i}" for i in (1, 2)]
    rows = [x.strip("| ").split(" | ") for x in shown.splitlines() if x.startswith("|")]
    first = rows[2 : next(i for i, row in enumerate(rows) if row[0] == "asked")]
    counted = {row[0]: int(row[1].replace(",", "")) for row in first}
    assert 0 < counted["all"] <= 5 * 10
    monkeypatch.setattr(script, "fit", None)  # it is there already
    script.main()
    assert capsys.readouterr().out == shown
