"""The losses against the formulas of the paper in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from depl.neural.losses import binary_cross_entropy, joint_cross_entropy

logits = arrays(np.float64, (3, 4), elements=st.floats(-60, 60, width=32))
answers = arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1.0]))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def naive(yes, no, targets):
    """Mean of -[t log p + (1 - t) log(1 - p)]; both given, as 1 - p alone would lose digits."""
    return -np.mean(targets * np.log(yes) + (1 - targets) * np.log(no))


def tensors(*arrays_):
    return [torch.tensor(a, dtype=torch.float64) for a in arrays_]


@given(logits, answers)
def test_binary_cross_entropy_is_the_formula(scores, targets):
    expected = naive(sigmoid(scores), sigmoid(-scores), targets)
    found = float(binary_cross_entropy(*tensors(scores, targets)))
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)


@given(logits, logits, answers, st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_joint_cross_entropy_is_the_formula(dual, dense, targets, alive):
    yes = (sigmoid(dual) + sigmoid(dense)) / 2
    no = (sigmoid(-dual) + sigmoid(-dense)) / 2
    own = [naive(sigmoid(x), sigmoid(-x), targets) for x in (dual, dense)]
    expected = (1 - alive) * naive(yes, no, targets) + alive * sum(own) / 2
    found = float(joint_cross_entropy(*tensors(dual, dense, targets), alive))
    assert found == pytest.approx(expected, rel=1e-5, abs=2e-7)


@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("size", [100.0, 1e4, 1e6])
def test_extreme_logits_give_finite_losses_and_gradients(size, target):
    right = torch.full((1, 1), size if target else -size, requires_grad=True)
    wrong = torch.full((1, 1), -size if target else size, requires_grad=True)
    targets = torch.full((1, 1), target)
    assert binary_cross_entropy(right, targets).item() < 1e-40
    assert binary_cross_entropy(wrong, targets).item() == pytest.approx(size)
    # One branch sure and right, the other sure and wrong: p = 1/2. Both wrong: p = sigmoid(-size).
    split = joint_cross_entropy(right, wrong, targets, 0.0)
    assert split.item() == pytest.approx(np.log(2))
    both = joint_cross_entropy(wrong, wrong, targets, 0.0)
    assert both.item() == pytest.approx(size)
    for loss in (split, both, joint_cross_entropy(right, wrong, targets, 0.5)):
        (gradient,) = torch.autograd.grad(loss, wrong)
        assert torch.isfinite(gradient).all()


def test_a_sure_negative_costs_nothing():
    # By the formula as printed, log s(1 - f), it would cost 19.
    assert float(binary_cross_entropy(torch.tensor([[-20.0]]), torch.zeros(1, 1))) < 1e-8


def test_two_equal_branches_are_one():
    scores, targets = torch.randn(4, 5), torch.randint(0, 2, (4, 5)).float()
    for alive in (0.0, 0.3, 1.0):
        joint = joint_cross_entropy(scores, scores, targets, alive)
        torch.testing.assert_close(joint, binary_cross_entropy(scores, targets))


def gradients(dual, dense, alive):
    branches = [torch.tensor([[x]], requires_grad=True) for x in (dual, dense)]
    loss = joint_cross_entropy(*branches, torch.ones(1, 1), alive)
    return [float(g) for g in torch.autograd.grad(loss, branches)]


def test_the_joint_gradient_flows_to_both_branches():
    assert all(g < -0.01 for g in gradients(0.3, -0.4, alive=0.0))
    assert all(g < -0.01 for g in gradients(0.3, -0.4, alive=0.5))


def test_a_sure_branch_starves_the_other_unless_it_is_kept_alive():
    starved = gradients(20.0, -4.0, alive=0.0)[1]
    fed = gradients(20.0, -4.0, alive=0.5)[1]
    assert abs(starved) < 0.02
    assert abs(fed) > 0.2
