"""How broad labels are, against loops over documents and pairs of examples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, random_array

from depl.core.ranking import Ranking
from depl.sparse.breadth import bounds, breadth
from depl.sparse.evidence import Evidence, unit_rows
from depl.sparse.weighting import idf

N_TERMS = 12


def rows(n: int, seed: int) -> csr_array:
    matrix = random_array((n, N_TERMS), density=0.4, rng=np.random.default_rng(seed))
    return unit_rows(csr_array(matrix.astype(np.float32)))


def evidence_of(names: csr_array, owner: list[int], examples: csr_array, of: list[int]) -> Evidence:
    nothing = csr_array((4, N_TERMS), dtype=np.float32)
    at_most = np.array([1.0, 0.5, 0.01, 0.0], np.float32)
    owners = np.array(owner), np.array(of, np.int64)
    return Evidence(names, owners[0], examples, owners[1], nothing, nothing, at_most)


def test_it_follows_the_documents_with_the_name_and_the_cosines_of_examples():
    names, owner, examples, of = rows(6, 1), [0, 0, 1, 2, 2, 3], rows(6, 2), [0, 2, 2, 2, 3, 3]
    documents = rows(4_000, 3).toarray() > 0
    weights = idf(len(documents), documents.sum(axis=0))
    found = breadth(evidence_of(names, owner, examples, of), weights)
    for label in range(4):
        own = names.toarray()[np.array(owner) == label] ** 2
        share = max((documents @ name).mean() for name in own)
        expected = np.log(1 + share / 0.003) / np.log(1 + 1 / 0.003)
        np.testing.assert_allclose(found[label, 0], expected, atol=1e-3)
        given = examples.toarray()[np.array(of) == label]
        at_most = [1.0, 0.5, 0.01, 0.0][label] if len(given) else 0.0
        expected = np.log(1 + at_most / 0.003) / np.log(1 + 1 / 0.003)
        np.testing.assert_allclose(found[label, 2], expected, atol=1e-6)
        if len(given) < 2:
            assert found[label, 1] == 0
            continue
        cosine = np.mean([a @ b for a, b in combinations(given, 2)])
        expected = 1 - np.log(1 + cosine / 0.01) / np.log(1 + 1 / 0.01)
        np.testing.assert_allclose(found[label, 1], expected, atol=1e-5)


def test_the_same_document_twice_has_no_variety_and_strangers_have_all():
    examples = csr_array(np.eye(N_TERMS, dtype=np.float32)[[0, 0, 1, 2]])
    weights = np.ones(N_TERMS, np.float32)
    found = breadth(evidence_of(rows(4, 1), [0, 1, 2, 3], examples, [0, 0, 1, 1]), weights)
    np.testing.assert_allclose(found[:, 1], [0, 1, 0, 0], atol=1e-6)


def test_no_labels_have_no_breadth():
    nothing = csr_array((0, N_TERMS), dtype=np.float32)
    nobody = np.empty(0, np.int64)
    none = Evidence(nothing, nobody, nothing, nobody, nothing, nothing, np.empty(0, np.float32))
    assert breadth(none, np.ones(N_TERMS, np.float32)).shape == (0, 3)


def test_a_label_that_most_examples_share_bounds_the_new_one():
    """Against a loop over labels: n / N documents carry it, and it is in p of the examples."""
    rng = np.random.default_rng(4)
    scores = rng.uniform(-2, 1, (9, 6)).astype(np.float32)
    owner, shares = np.array([0, 1, 1, 2, 2, 2, 2, 2, 2]), rng.uniform(0.01, 0.2, 6)
    found = bounds(Ranking.from_scores(scores, 6), owner, 4, shares)
    for label in range(4):
        own = np.clip(scores[owner == label] + 1, 0, 1)
        times = own.sum(axis=0)
        expected = [s * len(own) / n for s, n in zip(shares, times, strict=True) if n >= 1.5]
        np.testing.assert_allclose(found[label], min(expected, default=1.0), rtol=1e-5)
    assert found[2] < 0.2 < found[0] == found[3] == 1
