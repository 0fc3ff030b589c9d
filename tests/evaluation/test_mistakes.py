"""What a ranking gets wrong, against plain loops; and the sentences that open a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from problems import corpus_of, random_problem, ranking_of, report_of

from depl.core.corpus import Label
from depl.evaluation.scores import Report, evaluate
from depl.evaluation.sentences import quality, summary

K = 5


@pytest.fixture(scope="module")
def problem():
    return random_problem(seed=4, n=60, n_labels=25)


@pytest.fixture(scope="module")
def report(problem):
    return report_of(problem, ks=(1, K))


def test_counts_and_order_of_weak_labels_are_those_of_plain_loops(problem, report):
    truth, ranked, training = problem
    first = [row[:K] for row in ranked]
    support = Counter(j for y in truth for j in y)
    suggested = Counter(j for row in first for j in row)
    found = Counter(j for y, row in zip(truth, first, strict=True) for j in row if j in y)

    def expected(n, total):
        bad = {j: n[j] ** 2 / total[j] for j in n if n[j]}
        order = sorted(bad, key=lambda j: (-bad[j], -n[j], j))[:15]
        return [(j, training[j], support[j], suggested[j], found[j]) for j in order]

    missed = Counter({j: support[j] - found[j] for j in support})
    wrong = Counter({j: suggested[j] - found[j] for j in suggested})
    for weak, n, total in (
        (report.mistakes.missed, missed, support),
        (report.mistakes.wrong, wrong, suggested),
    ):
        got = [(int(w.label.id[2:]), w.training, w.documents, w.suggested, w.found) for w in weak]
        assert got == expected(n, total)
    assert all(w.missed == missed[int(w.label.id[2:])] for w in report.mistakes.missed)
    assert all(w.wrong == wrong[int(w.label.id[2:])] for w in report.mistakes.wrong)


def test_confusions_are_the_wrong_suggestions_of_the_documents_that_miss_a_label(problem, report):
    truth, ranked, _ = problem
    everywhere = Counter()
    instead: dict[int, Counter] = {}
    for y, row in zip(truth, ranked, strict=True):
        wrong = [j for j in row[:K] if j not in y]
        everywhere.update(wrong)
        for j in y - set(row[:K]):
            instead.setdefault(j, Counter()).update(wrong)
    for weak in report.mistakes.missed:
        counts = instead[int(weak.label.id[2:])]
        order = sorted(counts, key=lambda j: (-counts[j], everywhere[j], j))[:3]
        got = [(int(c.label.id[2:]), c.documents) for c in weak.confusions]
        assert got == [(j, counts[j]) for j in order]


def test_examples_have_the_surest_wrong_suggestion_and_a_missed_label():
    truth = [{0, 1}, {2}, {3}, {0}]
    ranked = [[4, 0], [4, 2], [5, 4], [4, 1]]
    ranking = ranking_of(ranked, 2)
    ranking.scores[:] = [[0.9, 0.1], [0.8, 0.7], [0.5, 0.4], [0.95, 0.2]]
    corpus = corpus_of(truth, 6)
    counts = [1] * 6
    found = evaluate(ranking, corpus, train_counts=counts, n_train=9, ks=(2,)).mistakes
    # The second misses nothing; of the two whose surest wrong suggestion is 4, the surer stays.
    assert [x.id for x in found.examples] == ["text 3", "text 2"]
    example = found.examples[1]
    assert [(s.label.id, s.right) for s in example.suggested] == [("id5", False), ("id4", False)]
    assert example.missed == (Label("id3", "name 3"),)


def test_a_ranking_without_a_mistake_has_none():
    report = report_of(([{0}, {1}], [[0], [1]], [3, 3]), width=1, ks=(1,))
    assert report.mistakes.missed == report.mistakes.wrong == report.mistakes.examples == ()
    assert "none" in repr(report.mistakes)


def test_mistakes_show_themselves_in_a_notebook(report):
    shown = report.mistakes._repr_html_()
    assert report.mistakes.missed[0].label.name in shown
    assert report.mistakes.examples[0].text in shown
    assert len(repr(report.mistakes)) < 200


def test_sentences_have_the_figures_of_the_report(report):
    scores = {"P@1": 50.0, "P@5": 42.0, "R@5": 61.0}
    bands = {
        name: {**band, f"R@{K}": 10.0 * i, "labels_in_test": i}
        for i, (name, band) in enumerate(report.bands.items())
    }
    said = " ".join(summary(replace(report, scores=scores, bands=bands)))
    assert said.startswith(
        "On average 2.1 of 5 suggestions are right, and 61 % of a document's labels are"
    )
    assert "The first suggestion is right for 50 % of the documents." in said
    assert "are 10 % of labels with 1-9, 20 % of those with 10-99 and 30 % of those with" in said
    one = Report("", 1, 1, (1,), {"P@1": 50.0, "R@1": 20.0}, {}, (), (1, 1))
    assert quality(one) == "the first suggestion is right for 50 % of the documents"
