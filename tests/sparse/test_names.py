"""Names in texts, against a plain look at every name."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.sparse.name_use import NameUse
from depl.sparse.names import NameMatch, names_and_owners
from depl.sparse.sequences import Sequences
from depl.sparse.tfidf import TfidfFeatures

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
    found = match.rank_covered(csr_array(documents), k)
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


sequences = st.lists(st.lists(st.integers(-1, 3), max_size=7), min_size=1, max_size=5)


def in_order(rows):
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Sequences(ends, np.array([x for row in rows for x in row], np.int32))


@given(
    sequences,
    st.lists(st.lists(st.integers(-1, 3), max_size=3), min_size=1, max_size=8),
    st.lists(st.integers(0, 4), min_size=8, max_size=8),
    st.integers(0, 6),
)
def test_whole_names_are_those_whose_words_are_in_a_row(texts, names, owner, k):
    weight = np.array([1.0, 1.5, 2.5, 4.0], np.float32)
    owner = np.sort(owner[: len(names)])
    vectors = csr_array((len(names), 4), dtype=np.float32)
    found = NameMatch(vectors, owner, weight, in_order(names)).rank_whole(in_order(texts), k)
    for i, text in enumerate(texts):
        best = {}
        for label, name in zip(owner.tolist(), names, strict=True):
            places = [text[p : p + len(name)] for p in range(len(text))]
            if name and -1 not in name and name in places:
                best[label] = max(best.get(label, 0.0), float(weight[name].sum()))
        expected = sorted(best, key=lambda label: (-best[label], label))[:k]
        real = found.indices[i] >= 0
        assert found.indices[i][real].tolist() == expected
        np.testing.assert_allclose(found.scores[i][real], [best[j] for j in expected])


def test_which_parts_there_are_depends_on_what_is_known_of_the_names(tmp_path):
    texts = ["The protection of the animals", "Animals, of no protection"]
    names = ["protection of animals", "animal"]
    features = TfidfFeatures(language="en", pairs="no", max_df=1.0)
    X = features.fit_transform(texts, names)
    vectors, owner, weight = features.transform(names), np.arange(2), features.word_weights()
    order = features.words_in_order(names)
    NameMatch(vectors, owner, weight, order).save(tmp_path)
    parts = {}
    for match in (
        NameMatch(vectors, owner),
        NameMatch(vectors, owner, weight),
        NameMatch.load(tmp_path),
    ):
        parts = match.parts(texts, X, features, 2)
        assert len(parts) == 1 + (match.weight is not None) + (match.order is not None)
    assert parts["whole names"].indices.tolist() == [[0, 1], [1, -1]]
    assert parts["name coverage"].indices.tolist() == [[0, 1], [0, 1]]


@given(cases(), st.data())
def test_use_of_names_is_counted_as_a_plain_look_at_every_name_would(case, data):
    documents, names, owner, _ = case
    weight = np.arange(names.shape[1], dtype=np.float32)  # the first term does not count
    row = st.lists(st.booleans(), min_size=5, max_size=5)
    truth = np.array([data.draw(row) for _ in documents])
    match = NameMatch(csr_array(names), owner, weight)
    X, Y = csr_array(documents), csr_array(truth.astype(np.float32))
    found = NameUse.of(match, X, Y)
    for label in range(5):
        wanted = [set(np.flatnonzero(name)) - {0} for name in names[owner == label]]
        there = [any(w and w <= set(np.flatnonzero(x)) for w in wanted) for x in documents]
        assert found.said[label] == (sum(there) if any(wanted) else -1)
        assert found.carried[label] == np.sum(truth[:, label] & there)
    half = len(documents) // 2
    one, other = (NameUse.of(match, X[part], Y[part]) for part in (slice(half), slice(half, None)))
    rest = found.without(one)
    assert (rest.said.tolist(), rest.carried.tolist()) == (
        other.said.tolist(),
        other.carried.tolist(),
    )
    said = np.where(found.said < 0, np.nan, found.said)
    facts = np.stack([np.log1p(said), found.carried / (1 + said)], axis=1)
    np.testing.assert_allclose(found.facts(), facts, rtol=1e-6)


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
