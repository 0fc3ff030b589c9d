"""What a review saves: shares of decisions, and their intervals, of curves that are known."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def curves(import_script):
    return import_script("review_curves")


@pytest.fixture
def followed(curves):
    def make(per_round: int, pace: float, noise: float = 0.0, labels: int = 200):
        """Three rounds of equal gains, with decisions of all kinds."""
        rounds = np.arange(4)
        drawn = np.random.default_rng(per_round).normal(size=(4, labels))
        f1 = 10 + pace * rounds[:, None] + noise * drawn * (rounds > 0)[:, None]
        said = rounds[:, None] * np.array([per_round // 2, per_round // 4, per_round // 4])
        return curves.Followed(100 * rounds, said, np.full(4, 20.0), f1)

    return make


def test_the_share_is_that_of_the_decisions_for_the_same_tail(curves, followed):
    review, at_random = followed(400, pace=2.0), followed(400, pace=1.0)
    found = curves.shares(curves.Curve.mean([review]), curves.Curve.mean([at_random]))
    np.testing.assert_allclose(found, 0.5)
    np.testing.assert_allclose(
        curves.shares(curves.Curve.mean([at_random]), curves.Curve.mean([review])), 2.0
    )
    cheaper = followed(200, pace=1.0)
    np.testing.assert_allclose(
        curves.shares(curves.Curve.mean([cheaper]), curves.Curve.mean([at_random])), 0.5
    )


def test_what_is_never_reached_takes_for_ever(curves, followed):
    flat, rising = followed(400, pace=0.0), followed(400, pace=1.0)
    assert np.all(np.isinf(curves.shares(curves.Curve.mean([flat]), curves.Curve.mean([rising]))))


def test_a_fall_does_not_undo_what_was_reached(curves):
    curve = curves.Curve(np.array([0.0, 100, 200, 300]), np.array([5.0, 7, 6, 8]))
    assert curve.needed(6.0) == pytest.approx(50)
    assert curve.needed(7.5) == pytest.approx(250)


def test_intervals_are_as_wide_as_the_noise_says(curves, followed):
    noise, labels, n = 3.0, 200, 4
    review = [followed(400 + 4 * i, 2.0, noise, labels) for i in range(n)]
    at_random = [followed(500 + 4 * i, 1.0, noise, labels) for i in range(n)]
    error = curves.error_of_gain(review)
    assert error[0] == 0
    assert error[3] == pytest.approx(noise / np.sqrt(labels * n), rel=0.15)
    drawn = curves.shares_drawn(review, at_random)[:, -1]
    # Of a ratio of two gains, 3 of the one order and 6 of the other, in each of the last rounds.
    wanted = np.median(drawn) * error[3] * np.sqrt(1 / 3**2 + 1 / 6**2)
    assert drawn.std() == pytest.approx(wanted, rel=0.5)
    certain = curves.shares_drawn([followed(400, 2.0)] * 2, [followed(400, 1.0)] * 2)
    np.testing.assert_allclose(certain, 0.5)


def test_the_figure_has_a_curve_for_every_order(curves, followed):
    orders = {"review": [followed(400, 2.0)], "random": [followed(400, 1.0)]}
    drawn = curves.review_figure(orders)
    assert all(name in drawn for name in (*orders, "decisions", "macro-F1@5"))
