"""Evidence for labels that no SVM was trained for, against loops over all pairs."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array

from depl.core.ranking import Ranking
from depl.sparse.evidence import (
    COLUMNS,
    Evidence,
    mean_profiles,
    profiles,
    rarity,
    unit_rows,
)

N_LABELS, N_TERMS, N_KNOWN = 4, 12, 7


def rows(n: int, width: int, seed: int) -> csr_array:
    matrix = random_array((n, width), density=0.4, rng=np.random.default_rng(seed))
    return unit_rows(csr_array(matrix.astype(np.float32)))


def test_every_column_is_what_it_says():
    names, owner = rows(6, N_TERMS, 1), np.array([0, 0, 1, 2, 2, 3])
    examples, of = rows(5, N_TERMS, 2), np.array([0, 2, 2, 2, 3])  # label 1 has none
    weights, seen = rows(N_LABELS, N_TERMS, 3), rows(N_LABELS, N_KNOWN, 4)
    evidence = Evidence(
        names, owner, examples, of, weights, seen, np.ones(seen.shape[0], np.float32)
    )
    X, of_documents, titles = rows(8, N_TERMS, 5), rows(8, N_KNOWN, 6), rows(8, N_TERMS, 7)
    found = evidence.of(X, of_documents, titles)
    assert evidence.counts.tolist() == [1, 0, 3, 1]
    assert found.shape == (8, N_LABELS, len(COLUMNS))
    for d, (x, title) in enumerate(zip(X.toarray(), titles.toarray(), strict=True)):
        for label in range(N_LABELS):
            own = names.toarray()[owner == label]
            given = examples.toarray()[of == label]
            expected = [max(own @ x), max((own**2) @ (x > 0))]
            if len(given):
                mean = given.mean(axis=0)
                expected += [mean @ x / np.linalg.norm(mean), weights.toarray()[label] @ x]
                expected += [max(given @ x), seen.toarray()[label] @ of_documents.toarray()[d]]
            else:
                expected += [0, weights.toarray()[label] @ x, 0]
                expected += [seen.toarray()[label] @ of_documents.toarray()[d]]
            expected += [max(own @ title)]
            expected += [mean @ title / np.linalg.norm(mean) if len(given) else 0]
            np.testing.assert_allclose(found[d, label], np.clip(expected, 0, 1), atol=1e-6)


def test_some_labels_have_the_evidence_that_they_have_among_all():
    names, owner = rows(6, N_TERMS, 1), np.array([0, 0, 1, 2, 2, 3])
    examples, of = rows(5, N_TERMS, 2), np.array([0, 2, 2, 2, 3])
    shares = np.linspace(0.1, 1, N_LABELS).astype(np.float32)
    have = csr_array(np.diag([1, 0, 1, 1]).astype(np.float32))  # label 1 has no examples
    weights, seen = have @ rows(N_LABELS, N_TERMS, 3), have @ rows(N_LABELS, N_KNOWN, 4)
    evidence = Evidence(names, owner, examples, of, weights, seen, shares)
    documents = rows(8, N_TERMS, 5), rows(8, N_KNOWN, 6), rows(8, N_TERMS, 7)
    for first, last in ((0, 4), (0, 1), (1, 2), (2, 4)):
        some = evidence.some(slice(first, last))
        expected = evidence.of(*documents)[:, first:last]
        np.testing.assert_allclose(some.of(*documents), expected, atol=1e-6)
        assert some.bounds.tolist() == shares[first:last].tolist()
        assert some.counts.tolist() == evidence.counts[first:last].tolist()


def test_no_labels_and_no_documents_are_no_evidence():
    none = Evidence(
        *(rows(0, N_TERMS, 1), np.empty(0, np.int64)),
        *(rows(0, N_TERMS, 1), np.empty(0, np.int64)),
        *(rows(0, N_TERMS, 1), rows(0, N_KNOWN, 1), np.empty(0, np.float32)),
    )
    assert none.of(rows(2, N_TERMS, 1), rows(2, N_KNOWN, 1), rows(2, N_TERMS, 2)).shape == (
        2,
        0,
        len(COLUMNS),
    )


def test_a_profile_is_made_of_the_labels_that_the_svm_does_not_rule_out():
    ranking = Ranking(np.array([[3, 0, 2], [1, -1, -1]]), np.array([[2.0, 1, -1.5], [-0.5, 0, 0]]))
    found = profiles(ranking, np.ones(4)).toarray()
    np.testing.assert_allclose(found[0], np.array([2, 0, 0, 3]) / np.sqrt(13), rtol=1e-6)
    assert found[1].tolist() == [0, 1, 0, 0]
    both = mean_profiles(ranking, np.array([1, 1]), 2, np.ones(4)).toarray()
    np.testing.assert_allclose(both[1], found.sum(0) / np.linalg.norm(found.sum(0)), rtol=1e-6)
    assert not both[0].any()


def test_a_rare_label_that_two_documents_share_says_more():
    counts = np.array([500, 10, 0, 1_000])
    rarities = rarity(counts, 1_000)
    np.testing.assert_allclose(rarities, np.log([2, 100, 2_000, 1]))
    ranking = Ranking(np.array([[0, 1], [0, 2], [1, 2], [3, -1]]), np.full((4, 2), 0.5))
    raised = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]) * rarities
    lengths = np.maximum(np.linalg.norm(raised, axis=1, keepdims=True), 1e-30)
    found = profiles(ranking, rarities).toarray()
    np.testing.assert_allclose(found, raised / lengths, atol=1e-6)
    cosines = found @ found.T
    assert cosines[0, 1] < cosines[0, 2] < cosines[1, 2]
