"""The metrics against loops over sets, sums worked out by hand, and scikit-learn."""

from __future__ import annotations

from math import log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import f1_score, ndcg_score

from depl.core.errors import ConfigError, DeplError
from depl.core.indicator import indicator
from depl.evaluation import metrics
from depl.evaluation.metrics import Hits


@st.composite
def problems(draw):
    """True label sets, ranked lists (some short, some empty), training counts."""
    n_labels = draw(st.integers(1, 9))
    width = draw(st.integers(1, 6))
    label = st.integers(0, n_labels - 1)
    n = draw(st.integers(0, 6))
    truth = [draw(st.sets(label)) for _ in range(n)]
    ranked = [draw(st.lists(label, max_size=width, unique=True)) for _ in range(n)]
    counts = draw(st.lists(st.integers(0, 300), min_size=n_labels, max_size=n_labels))
    return truth, ranked, counts, width


def padded(ranked, width):
    out = np.full((len(ranked), width), -1, np.int32)
    for row, labels in zip(out, ranked, strict=True):
        row[: len(labels)] = labels
    return out


def hits_of(truth, ranked, n_labels, width=None):
    width = width or max(map(len, ranked))
    return Hits.of(padded(ranked, width), indicator([sorted(y) for y in truth], n_labels))


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


@settings(deadline=None)
@given(problems())
def test_precision_recall_and_r_precision_agree_with_loops_over_sets(problem):
    truth, ranked, counts, width = problem
    hits = hits_of(truth, ranked, len(counts), width)
    for k in range(1, width + 1):
        found = [len(y & set(p[:k])) for y, p in zip(truth, ranked, strict=True)]
        pairs = list(zip(found, truth, strict=True))
        assert metrics.precision_at_k(hits, k) == pytest.approx(mean(f / k for f in found))
        assert metrics.recall_at_k(hits, k) == pytest.approx(
            mean(f / len(y) if y else 0.0 for f, y in pairs)
        )
        assert metrics.r_precision_at_k(hits, k) == pytest.approx(
            mean(f / min(k, len(y)) if y else 0.0 for f, y in pairs)
        )


@settings(deadline=None)
@given(problems())
def test_ndcg_agrees_with_loops_over_places(problem):
    truth, ranked, counts, width = problem
    hits = hits_of(truth, ranked, len(counts), width)
    for k in range(1, width + 1):
        ratios = []
        for y, p in zip(truth, ranked, strict=True):
            gain = sum(1 / log2(place + 1) for place, j in enumerate(p[:k], 1) if j in y)
            best = sum(1 / log2(place + 1) for place in range(1, min(k, len(y)) + 1))
            ratios.append(gain / best if y else 0.0)
        assert metrics.ndcg_at_k(hits, k) == pytest.approx(mean(ratios))


@settings(deadline=None)
@given(problems(), st.integers(1, 1000))
def test_psp_agrees_with_sums_of_sorted_weights(problem, n_train):
    truth, ranked, counts, width = problem
    hits = hits_of(truth, ranked, len(counts), width)
    weights = metrics.inverse_propensities(np.array(counts), n_train)
    for k in range(1, width + 1):
        got = best = 0.0
        for y, p in zip(truth, ranked, strict=True):
            got += sum(weights[j] for j in p[:k] if j in y)
            best += sum(sorted((weights[j] for j in y), reverse=True)[:k])
        expected = got / best if best else 0.0
        assert metrics.psp_at_k(hits, k, weights) == pytest.approx(expected)


@settings(deadline=None)
@given(problems(), st.data())
def test_f1_and_pooled_recall_agree_with_counting_label_by_label(problem, data):
    truth, ranked, counts, width = problem
    n_labels = len(counts)
    hits = hits_of(truth, ranked, n_labels, width)
    among = np.array(data.draw(st.lists(st.booleans(), min_size=n_labels, max_size=n_labels)))
    for k in range(1, width + 1):
        f1 = {}
        found = there = 0
        for label in range(n_labels):
            tp = fp = fn = 0
            for y, p in zip(truth, ranked, strict=True):
                tp += label in y and label in p[:k]
                fp += label not in y and label in p[:k]
                fn += label in y and label not in p[:k]
            f1[label] = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0
            if among[label]:
                found, there = found + tp, there + tp + fn
        values = metrics.f1_at_k(hits, k)
        assert values.tolist() == pytest.approx(list(f1.values()))
        assert metrics.macro_average(values) == pytest.approx(mean(f1.values()))
        assert metrics.macro_average(values, among) == pytest.approx(
            mean(f1[label] for label in range(n_labels) if among[label])
        )
        assert metrics.pooled_recall_at_k(hits, k, among) == pytest.approx(
            found / there if there else 0.0
        )


@settings(deadline=None)
@given(problems())
def test_every_metric_lies_between_zero_and_one(problem):
    truth, ranked, counts, width = problem
    hits = hits_of(truth, ranked, len(counts), width)
    weights = metrics.inverse_propensities(np.array(counts), 1000)
    values = [
        metrics.precision_at_k(hits, width),
        metrics.recall_at_k(hits, width),
        metrics.r_precision_at_k(hits, width),
        metrics.ndcg_at_k(hits, width),
        metrics.psp_at_k(hits, width, weights),
        *metrics.f1_at_k(hits, width),
    ]
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in values)


def test_macro_f1_equals_scikit_learns_on_the_binarised_top_k():
    rng = np.random.default_rng(5)
    n, n_labels = 60, 25
    truth = rng.random((n, n_labels)) < 0.15
    predicted = np.argsort(rng.random((n, n_labels)), axis=1)[:, :10].astype(np.int32)
    hits = Hits.of(predicted, csr_array(truth))
    for k in (1, 3, 5, 10):
        chosen = np.zeros((n, n_labels), int)
        np.put_along_axis(chosen, predicted[:, :k], 1, axis=1)
        expected = f1_score(truth, chosen, average=None, zero_division=0)
        assert metrics.f1_at_k(hits, k) == pytest.approx(expected)
        macro = f1_score(truth, chosen, average="macro", zero_division=0)
        assert metrics.macro_average(metrics.f1_at_k(hits, k)) == pytest.approx(macro)


def test_ndcg_equals_scikit_learns_where_scores_have_no_ties():
    rng = np.random.default_rng(6)
    truth = rng.random((40, 15)) < 0.2
    truth[3] = False  # both give such a document 0
    scores = rng.permuted(np.tile(np.arange(15.0), (40, 1)), axis=1)
    hits = Hits.of(np.argsort(-scores, axis=1).astype(np.int32), csr_array(truth))
    for k in (1, 3, 5, 15):
        expected = ndcg_score(truth.astype(float), scores, k=k)
        assert metrics.ndcg_at_k(hits, k) == pytest.approx(expected)


def test_psp_is_a_ratio_of_corpus_means_as_pyxclib_and_napkinxc_have_it():
    # Weights 1/p of labels 0..3. Document 1 carries {0, 1, 2}, document 2 carries {3}.
    weights = np.array([1.0, 2.0, 4.0, 3.0])
    hits = hits_of([{0, 1, 2}, {3}], [[0, 3, 2], [1, 2, 0]], 4)
    # k = 1: found 1 and nothing; best reachable 4 and 3.
    assert metrics.psp_at_k(hits, 1, weights) == pytest.approx((1 / 1 + 0) / (4 / 1 + 3 / 1))
    # k = 3: found 1 + 4 and nothing; best reachable 4 + 2 + 1 and 3. A mean of the documents' own
    # ratios would give (5/7 + 0/3) / 2 = 0.357 instead.
    assert metrics.psp_at_k(hits, 3, weights) == pytest.approx((5 / 3 + 0) / (7 / 3 + 3 / 3))


def test_ndcg_divides_by_the_discounts_of_as_many_labels_as_the_document_has():
    hits = hits_of([{0, 1}], [[0, 9, 1, 8, 7]], 10)
    got = 1 / log2(2) + 1 / log2(4)
    assert metrics.ndcg_at_k(hits, 5) == pytest.approx(got / (1 / log2(2) + 1 / log2(3)))
    assert metrics.ndcg_at_k(hits, 1) == 1.0


def test_propensities_follow_jain_and_others():
    counts = np.array([0, 1, 50])
    c = (log(100) - 1) * 2.5**0.55
    expected = [1 + c * (x + 1.5) ** -0.55 for x in counts]
    assert metrics.inverse_propensities(counts, 100).tolist() == pytest.approx(expected)
    c = (log(100) - 1) * 1.4**0.5
    expected = [1 + c * (x + 0.4) ** -0.5 for x in counts]
    assert metrics.inverse_propensities(counts, 100, 0.5, 0.4).tolist() == pytest.approx(expected)


def test_propensities_of_one_or_two_documents_weigh_all_labels_the_same():
    for n_train in (1, 2):
        weights = metrics.inverse_propensities(np.array([0, 1, 2]), n_train)
        assert weights.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("n_train", "b"), [(0, 1.5), (10, 0.0), (10, -1.0)])
def test_propensities_that_are_not_defined_are_refused(n_train, b):
    with pytest.raises(ConfigError, match="at least one training document"):
        metrics.inverse_propensities(np.array([0, 1]), n_train, B=b)


def test_f1_of_a_ranking_without_a_single_error_is_one():
    # No false positive and no false negative anywhere: the case in which napkinXC's macro-F1 stops.
    hits = hits_of([{0, 1}, {2, 0}], [[0, 1], [0, 2]], 4)
    assert metrics.f1_at_k(hits, 2).tolist() == [1, 1, 1, 0]
    assert metrics.macro_average(metrics.f1_at_k(hits, 2)) == 0.75


def test_f1_counts_by_hand():
    # Label 0: true in documents 1 and 2, predicted in 1 and 3, so tp 1, fp 1, fn 1.
    hits = hits_of([{0}, {0}, {1}], [[0, 1], [1, 2], [0, 2]], 3)
    assert metrics.f1_at_k(hits, 2).tolist() == pytest.approx([2 / (2 + 1 + 1), 0, 0])


def test_precision_divides_by_k_where_fewer_labels_are_true_or_ranked():
    hits = hits_of([{0}, {1, 2}], [[0], [1, 2]], 3, width=5)
    assert metrics.precision_at_k(hits, 5) == pytest.approx((1 / 5 + 2 / 5) / 2)
    assert metrics.r_precision_at_k(hits, 5) == 1.0


def test_a_document_without_labels_stays_in_the_mean_with_zero():
    hits = hits_of([{0}, set()], [[0, 1], [0, 1]], 2)
    assert metrics.precision_at_k(hits, 1) == 0.5
    assert metrics.recall_at_k(hits, 1) == 0.5
    assert metrics.r_precision_at_k(hits, 1) == 0.5
    assert metrics.ndcg_at_k(hits, 1) == 0.5
    assert metrics.psp_at_k(hits, 1, np.ones(2)) == 1.0  # a ratio of sums: nothing to add


def test_a_split_without_any_label_scores_zero_and_not_nan():
    hits = hits_of([set(), set()], [[0], [1]], 2)
    assert metrics.psp_at_k(hits, 1, np.ones(2)) == 0.0
    assert metrics.recall_at_k(hits, 1) == 0.0
    assert metrics.f1_at_k(hits, 1).tolist() == [0, 0]
    assert metrics.macro_average(np.array([0.5]), np.array([False])) == 0.0


def test_an_empty_label_set_is_allowed():
    hits = Hits.of(np.full((2, 3), -1, np.int32), csr_array((2, 0)))
    assert hits.correct.tolist() == [[False] * 3] * 2
    assert hits.n_labels == 0


def test_padding_is_no_hit_and_does_not_reach_into_the_row_before():
    # -1 in row 1 must not be read as the last label of row 0.
    hits = hits_of([{1}, {0}], [[0], []], 2, width=2)
    assert not hits.correct.any()
    assert metrics.f1_at_k(hits, 2).tolist() == [0, 0]


def test_stored_zeros_repeats_and_any_order_in_y_do_no_harm():
    data, columns, rows = [1, 0, 1, 1], [2, 1, 0, 2], [0, 4]
    hits = Hits.of(np.array([[2, 1, 0]]), csr_array((data, columns, rows), shape=(1, 3)))
    assert hits.correct.tolist() == [[True, False, True]]
    assert hits.sizes.tolist() == [2]
    assert hits.support.tolist() == [1, 0, 1]


@pytest.mark.parametrize("k", [0, -1, 4])
def test_a_k_that_the_ranking_does_not_hold_is_refused(k):
    hits = hits_of([{0}], [[0, 1, 2]], 3)
    for metric in (metrics.precision_at_k, metrics.ndcg_at_k, metrics.f1_at_k):
        with pytest.raises(DeplError, match=f"k = {k} needs k between 1 and 3"):
            metric(hits, k)


def test_a_ranking_of_other_documents_or_labels_is_refused():
    y = indicator([[0], [1]], 2)
    with pytest.raises(DeplError, match="number of documents: 2"):
        Hits.of(np.zeros((3, 1), np.int32), y)
    with pytest.raises(DeplError, match="label set has 2 labels"):
        Hits.of(np.array([[0], [2]]), y)


def test_a_label_listed_twice_is_refused_because_it_would_count_twice():
    with pytest.raises(DeplError, match="more than once in 1 of its rows, the first is row 1"):
        Hits.of(np.array([[0, 1, -1, -1], [1, 0, 1, -1]]), indicator([[0], [1]], 2))
