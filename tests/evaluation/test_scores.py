"""Reports: bands, bins, the JSON object and the popularity baseline."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluation.problems import corpus_of, random_problem, ranking_of, report_of

from depl.core.errors import DeplError
from depl.evaluation.scores import BIN_SIZE, evaluate, popularity


def naive_f1(truth, ranked, label, k):
    tp = fp = fn = 0
    for y, p in zip(truth, ranked, strict=True):
        tp += label in y and label in p[:k]
        fp += label not in y and label in p[:k]
        fn += label in y and label not in p[:k]
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


@settings(deadline=None)
@given(st.integers(0, 20), st.sampled_from([(1, 3, 5), (2,), (5, 12)]))
def test_bands_agree_with_counting_label_by_label(seed, ks):
    truth, ranked, counts = problem = random_problem(seed, n=15, n_labels=30)
    report = report_of(problem, ks=ks)
    inside = {
        "0": lambda c: c == 0,
        "1-9": lambda c: 1 <= c <= 9,
        "10-99": lambda c: 10 <= c <= 99,
        "100+": lambda c: c >= 100,
    }
    assert list(report.bands) == list(inside)
    for name, holds in inside.items():
        labels = [j for j, c in enumerate(counts) if holds(c)]
        in_test = [j for j in labels if any(j in y for y in truth)]
        band = report.bands[name]
        assert band["labels"] == len(labels)
        assert band["labels_in_test"] == len(in_test)
        for k in ks:
            f1 = {j: 100 * naive_f1(truth, ranked, j, k) for j in labels}
            assert band[f"macroF1@{k}"] == pytest.approx(mean(f1.values()))
            assert band[f"macroF1@{k}_in_test"] == pytest.approx(mean(f1[j] for j in in_test))
        for k in {*ks, 10}:
            pairs = [(i, j) for i, y in enumerate(truth) for j in y if j in labels]
            found = [j in ranked[i][:k] for i, j in pairs]
            assert band[f"R@{k}"] == pytest.approx(100 * mean(found))


def test_bins_hold_a_hundred_labels_each_from_rare_to_common():
    truth, ranked, counts = problem = random_problem()
    report = report_of(problem)
    order = sorted(range(len(counts)), key=lambda label: (counts[label], label))
    chunks = [order[i : i + BIN_SIZE] for i in range(0, len(order), BIN_SIZE)]
    assert [(b.first, b.last) for b in report.bins] == [(1, 100), (101, 200), (201, 230)]
    for found, chunk in zip(report.bins, chunks, strict=True):
        assert found.mean_count == pytest.approx(mean(counts[j] for j in chunk))
        assert found.labels_in_test == sum(any(j in y for y in truth) for j in chunk)
        expected = mean(100 * naive_f1(truth, ranked, j, report.k) for j in chunk)
        assert found.macro_f1 == pytest.approx(expected)


def test_a_small_report_by_hand():
    # Three labels with 0, 5 and 200 training documents; P@1: 1 of 2; P@2: (2 + 0) / 4.
    truth, ranked, counts = [{1, 2}, {0}], [[2, 1], [1, 2]], np.array([0, 5, 200])
    report = report_of((truth, ranked, counts), width=2, ks=(1, 2), name="tiny")
    assert (report.name, report.documents, report.labels, report.k) == ("tiny", 2, 3, 2)
    assert report.scores["P@1"] == 50.0
    assert report.scores["P@2"] == 50.0
    assert report.scores["R@2"] == 50.0
    assert report.scores["macroF1@2"] == pytest.approx(100 * (0 + 2 / 3 + 2 / 3) / 3)
    assert report.bands["1-9"]["macroF1@2"] == pytest.approx(100 * 2 / 3)
    assert report.bands["0"]["R@2"] == 0.0
    assert report.bands["10-99"]["labels"] == 0


def test_the_json_object_has_exactly_the_agreed_keys():
    found = report_of(random_problem()).to_json()
    at_k = [f"{m}@{k}" for m in ("P", "PSP", "nDCG", "R", "RP", "macroF1") for k in (1, 3, 5)]
    assert set(found) == {"documents", "labels", "bands", "R@10", *at_k}
    band_keys = {"labels", "labels_in_test", "R@10"}
    for k in (1, 3, 5):
        band_keys |= {f"macroF1@{k}", f"macroF1@{k}_in_test", f"R@{k}"}
    assert list(found["bands"]) == ["0", "1-9", "10-99", "100+"]
    assert all(set(band) == band_keys for band in found["bands"].values())


def test_the_json_object_is_plain_json_in_percent():
    found = report_of(random_problem()).to_json()
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    assert "null" not in text
    assert 1 < found["P@1"] <= 100
    assert isinstance(found["bands"]["1-9"]["labels"], int)


def test_empty_bands_and_splits_give_zeros():
    problem = [set(), set()], [[0], [1]], np.array([0, 0])
    found = report_of(problem, width=5).to_json()
    assert found["P@5"] == found["PSP@5"] == found["macroF1@5"] == 0.0
    assert found["bands"]["100+"] == dict.fromkeys(found["bands"]["100+"], 0)
    json.dumps(found, allow_nan=False)
    nothing = report_of(([], [], np.array([3, 0])), width=5)
    assert nothing.documents == 0
    assert set(nothing.scores.values()) == {0.0}


@pytest.mark.parametrize(("width", "there"), [(9, False), (10, True)])
def test_recall_at_ten_is_there_only_when_ten_labels_are_ranked(width, there):
    report = report_of(random_problem(width=width), width=width)
    assert ("R@10" in report.scores) == there
    assert ("R@10" in report.bands["1-9"]) == there


def test_cut_offs_are_put_in_order_and_counted_once():
    assert report_of(random_problem(), ks=(5, 1, 5)).ks == (1, 5)


def test_propensity_parameters_change_psp_and_nothing_else():
    problem = random_problem()
    usual, other = report_of(problem), report_of(problem, A=0.6, B=2.6)
    assert usual.propensity == (0.55, 1.5)
    assert other.propensity == (0.6, 2.6)
    changed = {key for key in usual.scores if usual.scores[key] != other.scores[key]}
    assert changed
    assert changed <= {"PSP@1", "PSP@3", "PSP@5"}


def test_what_does_not_fit_together_is_refused():
    truth, ranked, counts = random_problem(width=12)
    corpus, ranking = corpus_of(truth, len(counts)), ranking_of(ranked, 12)
    with pytest.raises(DeplError, match="k = 13 needs k between 1 and 12"):
        evaluate(ranking, corpus, train_counts=counts, n_train=10, ks=(1, 13))
    with pytest.raises(DeplError, match="230 labels; got k = \\(1,\\) and 229 counts"):
        evaluate(ranking, corpus, train_counts=counts[1:], n_train=10, ks=(1,))
    with pytest.raises(DeplError, match="at least one k"):
        evaluate(ranking, corpus, train_counts=counts, n_train=10, ks=())
    with pytest.raises(DeplError, match="number of documents: 49"):
        evaluate(ranking, corpus.subset(range(49)), train_counts=counts, n_train=10)


def test_popularity_ranks_the_most_frequent_labels_for_every_document():
    ranking = popularity(np.array([3, 9, 3, 0]), n_documents=2, k=3)
    assert ranking.indices.tolist() == [[1, 0, 2]] * 2
    assert ranking.scores.tolist() == [[9, 3, 3]] * 2
    wide = popularity(np.array([1, 2]), n_documents=1, k=3)
    assert wide.indices.tolist() == [[1, 0, -1]]
