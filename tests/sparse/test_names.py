"""Names in texts, against a plain look at every name."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.sparse.names import NameMatch, names_and_owners

values = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])


@st.composite
def cases(draw):
    n_terms = draw(st.integers(1, 5))
    row = st.lists(values, min_size=n_terms, max_size=n_terms)
    documents = np.array(draw(st.lists(row, min_size=1, max_size=5)), np.float32)
    names = np.array(draw(st.lists(row, min_size=1, max_size=8)), np.float32)
    owner = np.sort(np.array(draw(st.lists(st.integers(0, 4), min_size=len(names)))[: len(names)]))
    return documents, names, owner, draw(st.integers(1, 6))


@given(cases())
def test_a_label_scores_by_its_best_name_and_ties_go_by_position(case):
    documents, names, owner, k = case
    found = NameMatch(csr_array(names), owner).rank(csr_array(documents), k)
    for i, x in enumerate(documents):
        best = {}
        for label, name in zip(owner.tolist(), names, strict=True):
            score = float(x @ name)
            if score > 0:
                best[label] = max(best.get(label, 0.0), score)
        expected = sorted(best, key=lambda label: (-best[label], label))[:k]
        real = found.indices[i] >= 0
        assert found.indices[i][real].tolist() == expected
        np.testing.assert_allclose(found.scores[i][real], [best[j] for j in expected], rtol=1e-6)


@given(cases(), st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=5, max_size=5))
def test_coverage_is_the_share_of_a_names_weight_that_is_in_the_text(case, weights):
    documents, names, owner, k = case
    weight = np.array(weights[: names.shape[1]], np.float32)
    match = NameMatch(csr_array(names), owner, weight)
    found = match.both(csr_array(documents), k)["name coverage"]
    for i, x in enumerate(documents):
        best = {}
        for label, name in zip(owner.tolist(), names, strict=True):
            total = sum(w for w, there in zip(weight, name, strict=True) if there)
            covered = sum(w for w, a, b in zip(weight, name, x, strict=True) if a and b)
            if covered:
                score = float(covered / total * (1 + 0.02 * total))
                best[label] = max(best.get(label, 0.0), score)
        real = found.indices[i] >= 0
        assert real.sum() == min(k, len(best))
        expected = sorted(best.values(), reverse=True)[:k]
        np.testing.assert_allclose(found.scores[i][real], expected, rtol=1e-5)
        mine = [best[label] for label in found.indices[i][real].tolist()]
        np.testing.assert_allclose(mine, expected, rtol=1e-5)


def test_of_two_names_in_the_text_the_one_with_more_words_is_covered_better(tmp_path):
    names = csr_array(np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], np.float32))
    NameMatch(names, np.arange(3), np.ones(3, np.float32)).save(tmp_path)
    text = csr_array(np.array([[0.1, 0.9, 0]], np.float32))
    found = NameMatch.load(tmp_path).rank_covered(text, 3)
    assert found.indices.tolist() == [[1, 0, 2]]


def test_without_weights_there_is_no_coverage():
    match = NameMatch(csr_array(np.eye(2, dtype=np.float32)), np.arange(2))
    assert list(match.both(csr_array((1, 2)), 1)) == ["names"]


def test_no_document_and_a_text_without_any_name_give_nothing():
    match = NameMatch(csr_array(np.eye(3, dtype=np.float32)), np.arange(3))
    assert match.rank(csr_array((0, 3)), 2).indices.shape == (0, 2)
    assert match.rank(csr_array((1, 3)), 2).indices.tolist() == [[-1, -1]]


def test_many_documents_are_ranked_as_one_by_one():
    rng = np.random.default_rng(0)
    X = csr_array((rng.random((1_100, 6)) * (rng.random((1_100, 6)) < 0.3)).astype(np.float32))
    match = NameMatch(csr_array(np.eye(6, dtype=np.float32)), np.array([0, 0, 1, 2, 3, 3]))
    together = match.rank(X, 3)
    for i in (0, 511, 512, 1_099):
        assert (match.rank(X[[i]], 3).indices[0] == together.indices[i]).all()


def test_every_name_knows_its_label():
    names, owner = names_and_owners(["a", "b", "c"], [["x"], [], ["y", "z"]])
    assert names == ["a", "x", "b", "c", "y", "z"]
    assert owner.tolist() == [0, 0, 1, 2, 2, 2]
