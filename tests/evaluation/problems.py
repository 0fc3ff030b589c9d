"""Small corpora with rankings of their labels, and the reports on them."""

from __future__ import annotations

import numpy as np

from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.ranking import Ranking
from depl.evaluation.scores import evaluate


def label_set(n):
    return LabelSet(Label(f"id{i}", f"name {i}") for i in range(n))


def corpus_of(truth, n_labels):
    texts = [f"text {i}" for i in range(len(truth))]
    return Corpus.from_rows(texts, texts, [sorted(y) for y in truth], label_set(n_labels))


def ranking_of(ranked, width):
    out = Ranking.empty(len(ranked), width)
    for i, labels in enumerate(ranked):
        out.indices[i, : len(labels)] = labels
        out.scores[i, : len(labels)] = -np.arange(len(labels))
    return out


def random_problem(seed=0, n=50, n_labels=230, width=12):
    rng = np.random.default_rng(seed)
    truth = [
        set(rng.choice(n_labels, rng.integers(0, 7), replace=False).tolist()) for _ in range(n)
    ]
    ranked = [rng.permutation(n_labels)[:width].tolist() for _ in range(n)]
    for i, y in enumerate(truth):  # put some right ones on top
        ranked[i] = (list(y)[:3] + [x for x in ranked[i] if x not in y])[:width]
    counts = np.array([0, 1, 5, 9, 10, 50, 99, 100, 1000])[rng.integers(0, 9, n_labels)]
    return truth, ranked, counts


def report_of(problem, width=12, **settings):
    truth, ranked, counts = problem
    return evaluate(
        ranking_of(ranked, width),
        corpus_of(truth, len(counts)),
        train_counts=counts,
        n_train=2000,
        **settings,
    )
