"""The probability of added labels by the evidence for them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit

from depl.core.errors import RunError
from depl.fusion.newcomers import STEPS, NewcomerModel, Simulated
from depl.sparse import breadth, likely
from depl.sparse.evidence import COLUMNS, NEAREST

FIRST = len(COLUMNS) + len(breadth.COLUMNS)
N = FIRST + len(likely.COLUMNS)


def pairs(seed: int, share: float = 1.0, column: int = 0) -> Simulated:
    """Pairs whose log-odds are -3 + 4 times one column, others without meaning."""
    rng = np.random.default_rng(seed)
    evidence = rng.random((60_000, N)).astype(np.float32)
    carried = rng.random(len(evidence)) < expit(4 * evidence[:, column] - 3)
    kept = carried | (rng.random(len(evidence)) < share)
    return Simulated(evidence[kept], carried[kept], np.ones(kept.sum()), share)


@pytest.fixture(scope="module")
def model() -> NewcomerModel:
    played = [pairs(seed, 0.5) for seed in range(len(STEPS))]
    known = [x._replace(evidence=x.evidence[:, :FIRST]) for x in played]
    return NewcomerModel.fit(played, NewcomerModel.fit(known))


def test_it_finds_the_odds_that_pairs_were_drawn_with_also_from_a_sample(model):
    evidence = np.full((9, 1, N), 0.5, np.float32)
    evidence[:, 0, 0] = np.linspace(0.1, 0.9, 9)
    for count in (0, 1, 2, 10, 500):
        found = model.probabilities(evidence, np.array([count]))[:, 0]
        np.testing.assert_allclose(found, expit(4 * evidence[:, 0, 0] - 3), atol=0.03)


def test_a_pair_counts_as_often_as_it_says():
    once = pairs(3, 0.5)
    often = np.where(once.carried, 3, 1)
    twice = [np.repeat(x, often, axis=0) for x in once[:3]]
    weighted = NewcomerModel.fit([once._replace(times=often.astype(float))] * len(STEPS))
    repeated = NewcomerModel.fit([Simulated(*twice, 0.5)] * len(STEPS))
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-3)
    np.testing.assert_allclose(weighted.offsets, repeated.offsets, atol=1e-3)


def test_rounds_with_other_shares_give_the_odds_that_pairs_were_drawn_with():
    rounds = Simulated.together([pairs(4, 0.2), pairs(5, 0.8)])
    model = NewcomerModel.fit([rounds] * len(STEPS))
    evidence = np.full((9, 1, N), 0.5, np.float32)
    evidence[:, 0, 0] = np.linspace(0.1, 0.9, 9)
    found = model.probabilities(evidence, np.array([0]))[:, 0]
    np.testing.assert_allclose(found, expit(4 * evidence[:, 0, 0] - 3), atol=0.03)


def test_more_evidence_never_makes_a_label_less_probable(model):
    assert (model.weights >= 0).all()
    rng = np.random.default_rng(7)
    evidence = (0.9 * rng.random((50, 3, N))).astype(np.float32)
    more = evidence + 0.05 * (rng.random(evidence.shape) < 0.5).astype(np.float32)
    counts = np.array([0, 2, 7])
    assert (model.log_odds(more, counts) >= model.log_odds(evidence, counts)).all()


def test_weights_between_two_numbers_of_examples_lie_between_theirs():
    model = NewcomerModel(STEPS, np.zeros((len(STEPS), 2 * N)), np.array([0.0, 1.0, 2.0, 4.0]))
    nothing = np.zeros((1, 6, N), np.float32)
    counts = np.array([0, 1, 2, 3, 10, 99])
    between = 1 + (np.log(3) - np.log(2)) / (np.log(4) - np.log(2))
    np.testing.assert_allclose(model.log_odds(nothing, counts)[0], [0, 1, between, 2, 4, 4])


def test_contributions_and_offset_add_up_to_the_log_odds(model):
    evidence = np.random.default_rng(1).random((4, 2, N)).astype(np.float32)
    counts = np.array([0, 10])
    added = model.contributions(evidence, counts).sum(axis=-1) + model.offsets[[0, 2]]
    np.testing.assert_allclose(added, model.log_odds(evidence, counts))


def test_a_document_that_is_an_example_carries_the_label(model):
    evidence = np.zeros((1, 2, N), np.float32)
    evidence[0, 1, NEAREST] = 1 - 1e-6
    found = model.probabilities(evidence, np.array([1, 1]))
    assert found[0, 1] == 1 > found[0, 0]
    of_others = model.of_others(evidence, np.array([1, 1]))
    assert of_others[0, 1] == 0
    assert of_others[0, 0] == found[0, 0]


def test_no_pairs_at_all_give_a_model_that_goes_by_what_is_usual():
    nothing = Simulated(np.empty((0, N), np.float32), np.empty(0, bool), np.empty(0), 1.0)
    model = NewcomerModel.fit([nothing] * len(STEPS))
    np.testing.assert_allclose(model.weights, 1.0, atol=1e-3)
    assert np.isfinite(model.offsets).all()


def test_without_pairs_by_name_it_goes_by_the_first_model(model):
    nothing = Simulated(np.empty((0, N), np.float32), np.empty(0, bool), np.empty(0), 1.0)
    second = NewcomerModel.fit([nothing] * len(STEPS), model.first)
    found = second.weights[0].reshape(2, N)
    np.testing.assert_allclose(
        found[:, :FIRST], model.first.weights[0].reshape(2, FIRST), atol=1e-3
    )
    np.testing.assert_allclose(found[:, FIRST:], 1.0, atol=1e-3)


def test_a_number_of_examples_that_no_label_has_takes_the_weights_of_fewer():
    few = Simulated(np.full((3, N), 0.5, np.float32), np.ones(3, bool), np.ones(3), 1.0)
    evidence = pairs(5).evidence[:3, None]
    model = NewcomerModel.fit([pairs(1), pairs(2), few, few])
    at_one = model.log_odds(evidence, np.array([1]))
    np.testing.assert_array_equal(model.log_odds(evidence, np.array([10])), at_one)
    by_name = NewcomerModel.fit([pairs(1), few, few, few])
    at_none = by_name.log_odds(evidence, np.array([0]))
    np.testing.assert_array_equal(by_name.log_odds(evidence, np.array([3])), at_none)
    np.testing.assert_array_equal(model.log_odds(evidence, np.array([0])), at_none)


def test_what_three_examples_are_worth_lies_between_one_and_ten():
    """Odds that rise with the logarithm of the number are found, also for numbers not played."""
    worth = {n: 4 * (np.log1p(n) - np.log(2)) / (np.log(11) - np.log(2)) for n in STEPS[1:]}
    played = [pairs(0)]
    for seed, n in enumerate(STEPS[1:], start=1):
        rng = np.random.default_rng(seed)
        evidence = rng.random((60_000, N)).astype(np.float32)
        carried = rng.random(len(evidence)) < expit(worth[n] * evidence[:, 0] - 3)
        played.append(Simulated(evidence, carried, np.ones(len(evidence)), 1.0))
    model = NewcomerModel.fit(played)
    little, much = np.full((2, 1, 3, N), 0.5, np.float32)
    little[..., 0], much[..., 0] = 0.1, 0.9
    both = model.log_odds(np.concatenate([little, much]), np.array([1, 5, 10]))
    expected = 0.8 * 4 * np.array([0, (np.log(6) - np.log(2)) / (np.log(11) - np.log(2)), 1])
    np.testing.assert_allclose(np.diff(both, axis=0)[0], expected, atol=0.25)


def test_it_is_kept_and_what_is_damaged_is_told(model, tmp_path):
    assert NewcomerModel.load(tmp_path) is None
    model.save(tmp_path)
    again = NewcomerModel.load(tmp_path)
    np.testing.assert_array_equal(again.weights, model.weights)
    np.testing.assert_array_equal(again.offsets, model.offsets)
    np.testing.assert_array_equal(again.first.weights, model.first.weights)
    np.testing.assert_array_equal(again.first.offsets, model.first.offsets)
    assert again.first.first is None
    path = tmp_path / "newcomers.json"
    kept = json.loads(path.read_text())
    alone = {name: x for name, x in kept.items() if name != "first"}
    for damaged in ({"layout": 3, "weights": [1], "offsets": []}, alone, kept | {"first": alone}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(RunError, match=r"newcomers.json is damaged"):
            NewcomerModel.load(tmp_path)


def test_weights_of_an_earlier_version_are_not_used(model, tmp_path):
    """They are for evidence of another meaning."""
    model.save(tmp_path)
    path = tmp_path / "newcomers.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"layout": kept["layout"] - 1}))
    assert NewcomerModel.load(tmp_path) is None
    del kept["layout"]
    path.write_text(json.dumps(kept))
    assert NewcomerModel.load(tmp_path) is None


def test_evidence_that_only_more_examples_have_is_worth_what_it_is_with_them():
    """With one example it is never there; with three and ten the odds follow it."""
    with_it = pairs(7, column=N - 1)
    carried = np.random.default_rng(8).random(len(with_it.evidence)) < expit(-3)
    without = with_it._replace(evidence=with_it.evidence.copy(), carried=carried)
    without.evidence[:, -1] = 0.0
    model = NewcomerModel.fit([without, without, with_it, with_it])
    assert (model.weights[0, [N - 1, 2 * N - 1]] == 0).all()
    little, much = np.full((2, 1, 3, N), 0.5, np.float32)
    little[..., -1], much[..., -1] = 0.1, 0.9
    both = model.log_odds(np.concatenate([little, much]), np.array([0, 3, 10]))
    np.testing.assert_allclose(np.diff(both, axis=0)[0], [0, 3.2, 3.2], atol=0.3)
