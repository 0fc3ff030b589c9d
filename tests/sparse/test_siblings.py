"""Groups of near-duplicates, against a comparison of all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from depl.sparse.siblings import sibling_groups


def vectors(seed: int, n: int) -> np.ndarray:
    """Documents of a few terms out of many, some of which repeat another with small changes."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 40)) < 0.1, rng.random((n, 40)) + 0.5, 0.0)
    for i in range(1, n):
        if rng.random() < 0.4:
            X[i] = X[rng.integers(i)] * rng.uniform(0.8, 1.2, 40)
            X[i, rng.integers(40)] += rng.choice([0.0, 0.3, 1.0])
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 18))
def test_groups_are_those_of_comparing_all_pairs(seed, n):
    X = vectors(seed, n)
    cosines = X @ X.T
    if np.any(np.abs(cosines - 0.8) < 1e-4):
        return  # too close to call
    _, expected = connected_components(csr_array(cosines >= 0.8), directed=False)
    found = sibling_groups(csr_array(X))
    assert found.min() == 0
    assert found.max() == len(np.unique(found)) - 1
    np.testing.assert_array_equal(found[:, None] == found, expected[:, None] == expected)


def test_a_long_series_is_no_group():
    few, many = np.tile([1.0, 0.0], (20, 1)), np.tile([0.0, 1.0], (21, 1))
    found = sibling_groups(csr_array(np.concatenate([few, many])))
    assert len(np.unique(found[:20])) == 1
    assert len(np.unique(found)) == 22


def test_documents_without_terms_are_alone():
    assert sibling_groups(csr_array(np.zeros((3, 2)))).tolist() == [0, 1, 2]
