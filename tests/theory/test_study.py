"""The theorem on documents: what is measured, summarised, printed and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.theory.cases import interval, random_case, weights_of
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.errors import CorpusError
from depl.core.indicator import indicator
from depl.theory.setting import Setting
from depl.theory.study import DIMENSIONS, measure
from depl.theory.summary import rate, summary
from depl.theory.theorem import bound, misordering


@pytest.fixture(scope="module")
def case():
    X, W, bias, keywords = random_case(3, n_documents=30, n_labels=12)
    best = np.argsort(-(X @ W.T).toarray() - bias, axis=1)
    return X, indicator([row[[0, 3]] for row in best], 12), W, bias, keywords


def test_a_study_measures_what_the_definitions_say(case):
    X, Y, W, bias, keywords = case
    found = measure(*case, dimensions=(16,), draws=40)
    plain = (X @ W.T).toarray() + bias
    setting = Setting.of(X, W, bias, keywords, shifted=True)
    full = setting.X.toarray() @ weights_of(setting).T
    dropped = full - setting.X.toarray() @ setting.V.toarray().T
    expected = []
    for i in range(len(plain)):
        for p in Y[[i]].indices:
            below = [n for n in range(12) if not Y[i, n] and plain[i, n] < plain[i, p]]
            if below:
                least = min(full[i, p] - full[i, n] for n in below)
                expected.append((len(below), least, max(dropped[i, [p, *below]])))
    sizes, epsilon, delta = zip(*expected, strict=True)
    assert found.sizes.tolist() == list(sizes)
    assert found.theorem.set_epsilon == pytest.approx(epsilon)
    assert found.theorem.set_delta == pytest.approx(delta)
    # Pairs are drawn from the sets, so no margin is smaller and no drop larger than the set's.
    assert np.all(found.theorem.epsilon.min(axis=1) >= found.theorem.set_epsilon - 1e-12)
    assert np.all(found.theorem.delta.max(axis=1) <= found.theorem.set_delta + 1e-12)
    assert not found.keyword.delta.any()


def test_the_rates_of_a_study_lie_around_the_exact_ones_and_under_the_bounds(case):
    found = measure(*case, draws=60)
    for margins in (found.theorem, found.keyword):
        for d, errors, sets in zip(
            found.dimensions, margins.pair_errors, margins.set_errors, strict=True
        ):
            low, high = interval(int(errors), found.pairs)
            assert low <= misordering(margins.cosine, d).mean() <= high
            assert low <= bound(margins.gap, d).mean()
            assert errors <= sets


def test_the_same_seed_gives_the_same_study(case):
    one, same, other = (measure(*case, draws=3, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.theorem.epsilon, same.theorem.epsilon)
    assert np.array_equal(one.keyword.pair_errors, same.keyword.pair_errors)
    assert not np.array_equal(one.theorem.epsilon, other.theorem.epsilon)


def test_labels_that_the_svm_cannot_rank_are_left_out(case):
    X, Y, W, bias, keywords = case
    blind = bias.copy()
    blind[[2, 5]] = -np.inf
    assert measure(X, Y, W, blind, keywords, draws=2).labels == 10


def test_documents_without_labels_are_refused(case):
    X, Y, W, bias, keywords = case
    with pytest.raises(CorpusError, match="no margin to measure"):
        measure(X, csr_array(Y.shape), W, bias, keywords)


def test_the_summary_repeats_the_study_in_plain_numbers(case):
    study = measure(*case, dimensions=(16, 10**6), draws=40)
    found = summary(study)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["documents"], found["labels"], found["pairs"]) == (30, 12, study.pairs)
    assert found["sets"] == len(study.sizes)
    assert found["keyword"]["cosine"]["median"] == np.median(study.keyword.cosine)
    for i, d in enumerate(study.dimensions):
        at = found["dimensions"][str(d)]["keyword"]
        assert at["simulated"]["rate"] == study.keyword.pair_errors[i] / study.pairs
        assert at["exact"] == pytest.approx(misordering(study.keyword.cosine, d).mean())
        bounds = bound(study.keyword.gap, d)
        assert at["pairs_bounded"] == np.mean(bounds < 1)
        if at["pairs_bounded"]:
            assert at["bound_there"] == pytest.approx(bounds[bounds < 1].mean())
    assert found["dimensions"][str(10**6)]["keyword"]["pairs_bounded"] > 0


@pytest.mark.parametrize(
    ("errors", "trials", "low", "high"),
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (5, 50, 0.0333, 0.2181)],  # Clopper and Pearson's
)
def test_a_simulated_rate_has_an_exact_interval(errors, trials, low, high):
    found = rate(errors, trials)
    assert found["rate"] == errors / trials
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-4)


# ---- the command


def test_the_command_prints_tables_and_draws(own_run: Path, corpus_folder: Path):
    result = CliRunner().invoke(app, ["theory", str(own_run), str(corpus_folder)])
    assert result.exit_code == 0, result.exception
    assert "11 labels" in result.output
    assert "4/M" in result.output
    assert (own_run / "report" / "theory-dev.svg").read_text().lstrip().startswith("<?xml")


def test_the_command_prints_json(own_run: Path, corpus_folder: Path):
    arguments = ["theory", str(own_run), str(corpus_folder), "--json", "--documents", "5"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.exception
    found = json.loads(result.stdout)
    assert found["documents"] == 5
    assert set(found["dimensions"]) == {str(d) for d in DIMENSIONS}
    slip = found["printed_condition"]
    assert slip["bound_there"] == pytest.approx(min(1, 4 * slip["bound_printed"]))
    for at in found["dimensions"].values():
        for setting in ("theorem", "keyword"):
            simulated = at[setting]["simulated"]
            assert 0 <= simulated["low"] <= simulated["rate"] <= simulated["high"] <= 1
