"""``depl demo``, from start to end."""

import re

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.model.classifier import Classifier


@pytest.fixture(scope="module")
def demo(tiny_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "run"
    # A tiny encoder: the one that is installed takes a minute to read all pages.
    shorter = (
        "features.pairs=no",
        f"encoder.name='{tiny_folder}'",
        "encoder.max_tokens=24",
        "retrieval.epochs=2",
    )
    command = ["demo", "--out", str(out), *(x for s in shorter for x in ("--set", s))]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    return out, result.output


def test_it_prints_scores_far_above_the_popularity_baseline(demo):
    baseline, scored = re.search(r"PSP@5 +([\d.]+) +([\d.]+)", demo[1]).groups()
    assert float(scored) > 10 * float(baseline)
    assert float(scored) > 30


def test_it_shows_three_pages_with_hits_and_the_keywords_behind_them(demo):
    pages = re.findall(r"^(\S+)  .*…$", demo[1], flags=re.MULTILINE)
    assert len(pages) == 3
    assert re.search(r"✓ numpy\.\S+ +\w+ \w+", demo[1])


def test_it_leaves_a_run_and_a_report(demo):
    model = Classifier.load(demo[0])
    hint = re.search(r"show (\S+)", demo[1])
    assert model.card(model.find(hint.group(1))).keywords
    assert "<svg" in (demo[0] / "report" / "test.html").read_text()
