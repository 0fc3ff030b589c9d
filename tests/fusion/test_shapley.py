"""Shapley values against the average over all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from depl.fusion.shapley import shapley, subsets


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_values_are_the_average_over_all_orders(n):
    values = np.random.default_rng(n).normal(size=2**n)
    added = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        before = 0
        for part in order:
            added[part] += values[before + 2**part] - values[before]
            before += 2**part
    found = shapley(values)
    np.testing.assert_allclose(found, added / len(orders), atol=1e-12)
    assert found.sum() == pytest.approx(values[-1] - values[0])


def test_subsets_are_the_bits_of_their_numbers():
    assert subsets(2).tolist() == [[False, False], [True, False], [False, True], [True, True]]
