"""Likely documents of labels, against loops over labels and documents."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, random_array

from depl.sparse.evidence import unit_rows
from depl.sparse.likely import COLUMNS, Likely, likely_documents

CHANCES = arrays(np.float32, (9, 3), elements=st.floats(0, 1, width=16))


def rows(n: int, width: int, seed: int) -> csr_array:
    matrix = random_array((n, width), density=0.4, rng=np.random.default_rng(seed))
    return unit_rows(csr_array(matrix.astype(np.float32)))


@given(CHANCES)
def test_as_many_of_the_most_probable_as_probably_carry_it(chances):
    found = likely_documents(chances).toarray()
    assert found.shape == (3, 9)
    for label in range(3):
        own = chances[:, label].astype(float)
        wanted = min(9, max(3, int(np.ceil(own.sum() - 1e-9))))
        best = sorted(range(9), key=lambda i: (-own[i], i))[:wanted]
        expected = [own[i] if i in best else 0.0 for i in range(9)]
        np.testing.assert_array_equal(found[label], np.array(expected, np.float32))


@given(CHANCES, st.integers(0, 8), st.floats(0, 1))
def test_a_document_that_becomes_more_probable_stays_likely(chances, document, share):
    before = likely_documents(chances).toarray()[0, document]
    more = chances.copy()
    more[document, 0] += (1 - more[document, 0]) * np.float32(share)
    assert likely_documents(more).toarray()[0, document] >= before


def test_the_columns_are_the_share_and_the_cosine():
    weights, X = rows(4, 12, 1), rows(6, 15, 2)  # three terms that the run does not know
    likely = Likely(np.array([0.0, 0.003, 0.5, 1.0], np.float32), weights)
    found = likely.of(X)
    assert found.shape == (6, 4, len(COLUMNS))
    shares = np.log1p(likely.shares / 0.003) / np.log1p(1 / 0.003)
    np.testing.assert_allclose(found[..., 0], np.tile(shares, (6, 1)), atol=1e-6)
    cosines = X.toarray()[:, :12] @ weights.toarray().T
    np.testing.assert_allclose(found[..., 1], np.clip(cosines, 0, 1), atol=1e-6)
    assert (found[..., 0] == np.sort(found[..., 0], axis=1)).all()


def test_groups_of_labels_follow_each_other():
    weights, shares = rows(4, 12, 1), np.arange(4, dtype=np.float32) / 4
    parts = [Likely(shares[x], csr_array(weights[x])) for x in (slice(0, 1), slice(1, 4))]
    together = Likely.concatenate(parts)
    np.testing.assert_array_equal(
        together.of(rows(6, 12, 2)), Likely(shares, weights).of(rows(6, 12, 2))
    )
    nothing = Likely.unknown(2, 12).of(rows(6, 12, 2))
    assert nothing.shape == (6, 2, 2)
    assert not nothing.any()
