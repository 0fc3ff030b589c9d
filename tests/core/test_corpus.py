"""Label sets and corpora: order, alignment, parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.core.aside import held_out_folds
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import CorpusError
from depl.core.indicator import carried as is_carried
from depl.core.indicator import indicator, true_pairs

LABELS = LabelSet([Label("b", "beer"), Label("a", "apples"), Label("z", "zinc")])

rows_of_positions = st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=12)


def numbered(n: int) -> LabelSet:
    return LabelSet(Label(str(i), f"label {i}") for i in range(n))


def corpus_of(rows: list[list[int]], labels: LabelSet) -> Corpus:
    ids = [f"d{i}" for i in range(len(rows))]
    return Corpus.from_rows(ids, [f"text {i}" for i in ids], rows, labels)


def carried(corpus: Corpus) -> list[set[str]]:
    """The label ids of each document, read off the dense matrix."""
    return [{corpus.labels[j].id for j in np.flatnonzero(y)} for y in corpus.Y.toarray()]


# LabelSet


def test_labels_keep_their_order_and_are_found_by_id():
    assert LABELS.ids == ["b", "a", "z"]
    assert LABELS.names == ["beer", "apples", "zinc"]
    assert [LABELS.index(i) for i in ("b", "a", "z")] == [0, 1, 2]
    assert LABELS[1] == Label("a", "apples")
    assert LABELS[-1].id == "z"
    assert [x.id for x in LABELS[:2]] == ["b", "a"]
    assert list(LABELS) == list(LABELS[:])
    assert len(LABELS) == 3
    assert repr(LABELS) == "LabelSet(3 labels)"


def test_unknown_ids_have_no_position():
    assert LABELS.get("q") == -1
    assert LABELS.get("q", 7) == 7
    assert LABELS.get("a") == 1
    assert "q" not in LABELS
    assert "a" in LABELS
    assert "apples" not in LABELS  # a name is not an id
    with pytest.raises(CorpusError, match=r"no label with the id 'q' in this set of 3 labels"):
        LABELS.index("q")


def test_repeated_label_ids_are_refused_and_named():
    with pytest.raises(CorpusError, match=r"2 occur more than once, for example 'x', 'y'\. Remove"):
        LabelSet([Label(i, i) for i in "xyzxyx"])


def test_label_sets_are_equal_when_ids_names_and_order_are():
    same = LabelSet(LABELS)
    assert same == LABELS
    assert hash(same) == hash(LABELS)
    assert LabelSet(reversed(LABELS)) != LABELS
    assert LabelSet([Label("b", "ale"), *LABELS[1:]]) != LABELS
    assert LABELS != ["b", "a", "z"]


# Corpus


@given(rows_of_positions)
def test_indicator_has_ones_exactly_at_the_given_columns(rows: list[list[int]]):
    got = indicator(rows, 5)
    expected = np.zeros((len(rows), 5), np.float32)
    for i, row in enumerate(rows):
        for j in row:
            expected[i, j] = 1
    assert got.shape == expected.shape
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.toarray(), expected)
    assert got.has_canonical_format


@pytest.mark.parametrize("position", [3, -1])
def test_positions_outside_of_the_label_set_are_refused(position: int):
    with pytest.raises((CorpusError, ValueError)):
        Corpus.from_rows(["d"], ["text"], [[position]], LABELS)


@pytest.mark.parametrize(
    ("ids", "texts", "shape"),
    [(["1"], ["x"], (1, 2)), (["1"], ["x"], (2, 3)), (["1", "2"], ["x"], (1, 3))],
)
def test_parts_that_do_not_fit_together_are_refused(ids, texts, shape):
    with pytest.raises(CorpusError, match=r"needs a Y of shape \(1, 3\); got"):
        Corpus(ids, texts, csr_array(shape, dtype=np.float32), LABELS)


def test_label_counts_include_labels_that_no_document_carries(dataset: Dataset):
    train = dataset.train
    assert train.label_counts.tolist() == train.Y.toarray().sum(axis=0).tolist()
    assert train.label_counts[-1] == 0
    assert train.label_counts.dtype == np.int64


def test_subset_takes_documents_in_the_order_asked(dataset: Dataset):
    train = dataset.train
    part = train.subset([5, 0, 12])
    assert part.ids == [train.ids[i] for i in (5, 0, 12)]
    assert part.texts == [train.texts[i] for i in (5, 0, 12)]
    np.testing.assert_array_equal(part.Y.toarray(), train.Y.toarray()[[5, 0, 12]])
    assert part.labels is train.labels
    assert len(train.subset([])) == 0


@given(st.integers(2, 60), st.floats(0.01, 0.5), st.integers(1, 4), st.integers(0, 1000))
def test_folds_keep_groups_together_and_leave_documents_to_train_on(n, share, n_folds, seed):
    rng = np.random.default_rng(seed)
    groups = np.unique(rng.integers(0, n, n), return_inverse=True)[1]
    fold = held_out_folds(groups, share * n, n_folds, np.random.default_rng(seed))
    assert np.array_equal(
        fold, held_out_folds(groups, share * n, n_folds, np.random.default_rng(seed))
    )
    used = np.unique(fold[fold >= 0])
    assert used.tolist() == list(range(len(used)))
    assert 1 <= len(used) <= n_folds
    assert all(0 < np.count_nonzero(fold == f) < n for f in used)
    if len(np.unique(groups)) > 1:
        assert all(len(np.unique(fold[groups == g])) == 1 for g in groups)
        # A fold has the size that was asked for; its last group may exceed it.
        largest = np.bincount(groups).max()
        assert all(np.count_nonzero(fold == f) <= max(1, share * n) + largest for f in used)


def test_folds_are_drawn_at_random():
    alone = np.arange(50)
    drawn = [held_out_folds(alone, 10, 2, np.random.default_rng(seed)) for seed in range(5)]
    assert len({tuple(fold) for fold in drawn}) == 5
    assert all(np.bincount(fold + 1).tolist() == [30, 10, 10] for fold in drawn)


@given(rows_of_positions, st.integers(0, 99))
def test_carried_says_what_the_matrix_says(rows: list[list[int]], seed: int):
    corpus = corpus_of(rows, numbered(5))
    rng = np.random.default_rng(seed)
    documents = rng.integers(0, len(corpus), (7, 3)) if len(corpus) else np.empty((0, 3), int)
    labels = rng.integers(-1, 5, documents.shape)
    dense = corpus.Y.toarray() != 0
    pairs = zip(documents.ravel(), labels.ravel(), strict=True)
    expected = [bool(j >= 0 and dense[i, j]) for i, j in pairs]
    found = is_carried(corpus.Y, documents, labels)
    assert found.ravel().tolist() == expected
    assert np.divmod(true_pairs(corpus.Y), 5)[0].tolist() == np.nonzero(dense)[0].tolist()


# aligned


@given(rows_of_positions, st.permutations(range(5)), st.integers(0, 5))
def test_alignment_keeps_who_carries_what(rows: list[list[int]], order: list[int], kept: int):
    corpus = corpus_of(rows, numbered(5))
    other = LabelSet([Label(str(i), "another name") for i in order[:kept]] + [Label("new", "new")])
    moved = corpus.aligned(other)
    assert carried(moved) == carried(corpus)
    assert moved.labels[: len(other)] == other[:]
    unknown = {i for row in carried(corpus) for i in row} - set(other.ids)
    assert set(moved.labels.ids[len(other) :]) == unknown
    assert moved.Y.has_sorted_indices
    assert (moved.ids, moved.texts) == (corpus.ids, corpus.texts)


def test_alignment_to_the_same_labels_is_the_same_corpus(dataset: Dataset):
    assert dataset.dev.aligned(LabelSet(dataset.labels)) is dataset.dev


def test_alignment_leaves_out_unknown_labels_that_no_document_carries():
    corpus = corpus_of([[1], [1]], LABELS)
    assert corpus.aligned(LabelSet([Label("a", "apples")])).labels.ids == ["a"]


def test_alignment_leaves_the_corpus_as_it_was():
    corpus = corpus_of([[0, 1, 2], [2]], LABELS)
    before = corpus.Y.toarray().copy()
    corpus.aligned(LabelSet(reversed(LABELS)))
    np.testing.assert_array_equal(corpus.Y.toarray(), before)


# Dataset


def test_a_split_that_is_not_there_is_said_with_those_that_are(dataset: Dataset):
    assert dataset.dev is dataset["dev"]
    with pytest.raises(CorpusError, match=r"laws has no 'test' split; .* found are: dev, train\."):
        _ = dataset.test
    with pytest.raises(CorpusError, match=r"found are: none"):
        _ = Dataset(LABELS, {}).train
