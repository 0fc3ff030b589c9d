"""Documents of a run that probably carry labels, against dense loops."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit

from depl.core.corpus import Label
from depl.labels.background import Background
from depl.labels.moments import Moments
from depl.model.classifier import Classifier
from depl.run.folder import Run
from depl.sparse.breadth import breadth

TEXTS = ["Monopiles of wind farms at sea", "Noise of ramming at wind farms and porpoises"]


@pytest.fixture
def run(own_run) -> Run:
    return Run.open(own_run)


@pytest.fixture
def model(own_run) -> Classifier:
    model = Classifier.load(own_run)
    own = model.training.vectors  # the examples of one label are documents of the run
    texts = list(Run.open(own_run).train_texts().take(np.arange(own.shape[0])))
    model.add_labels(
        [Label("mono", "Monopile"), Label("w", "wine"), Label("v", "Kellerei")],
        examples={"mono": TEXTS, "v": [texts[4], texts[12], texts[40]]},
    )
    return model


@pytest.fixture
def background(run, model) -> Background:
    found = Background.of(run, np.random.default_rng(0))
    return found.over(model.state.newcomers.evidence.names.shape[1])


def chances_of(background, newcomers) -> np.ndarray:
    """The probabilities of all documents, 0 where one is an example."""
    everything = slice(0, len(background.documents))
    idf = newcomers.features.idf_
    broad = breadth(newcomers.evidence, idf)
    known = background.known(newcomers.evidence, None, broad, everything)
    first = newcomers.model.first
    found = expit(first.log_odds(known, newcomers.evidence.counts))
    X, examples = background.X.toarray(), newcomers.evidence.examples.toarray()
    for row, label in zip(examples, newcomers.evidence.example_owner, strict=True):
        found[X @ row > 0.9999, label] = 0.0
    return found


def test_the_documents_of_a_run_say_what_added_labels_have_in_common(run, model, background):
    newcomers = model.state.newcomers
    chances = chances_of(background, newcomers)
    dense = run.train_vectors().toarray()
    n_terms = dense.shape[1]
    X = background.X.toarray()[:, :n_terms]
    examples = newcomers.evidence.examples.toarray()[:, :n_terms]
    np.testing.assert_allclose(newcomers.likely.shares, chances.mean(axis=0), rtol=1e-4)
    for label in range(3):
        p = chances[:, label]
        best = np.argsort(-p, kind="stable")[: max(3, int(np.ceil(p.sum())))]
        own = examples[newcomers.evidence.example_owner == label]
        mean = (p[best] @ X[best] + own.sum(axis=0)) / (p[best].sum() + len(own))
        expected = (mean - dense.mean(axis=0)) / np.sqrt(dense.var(axis=0) + 1e-4)
        expected *= 2.25 / np.linalg.norm(expected)
        expected[np.abs(expected) < run.svm().cull] = 0.0
        expected /= np.linalg.norm(expected)
        found = newcomers.likely.weights.toarray()[label]
        assert found @ expected == pytest.approx(1, abs=1e-4)
    assert newcomers.likely.shares[1] > newcomers.likely.shares[0]


def test_a_word_of_likely_documents_alone_speaks_for_a_label(run, model, background):
    """Neither the name nor an example has it."""
    newcomers = model.state.newcomers
    weights = newcomers.likely.weights.toarray()[1]
    names = newcomers.evidence.names.toarray()[newcomers.evidence.name_owner == 1].any(axis=0)
    terms = newcomers.features.terms_
    words = [j for j in np.argsort(-weights).tolist() if not names[j] and " " not in terms[j]]
    text = terms[words[0]]
    columns = list(newcomers.columns)
    parts = model.state.rank([text], 12)
    X = newcomers.vectors([text], model.features.transform([text]))
    evidence = newcomers.evidence_for(X, newcomers.titles([text]), parts["svm"], None)[0, 1]
    assert evidence[columns.index("name")] == 0
    assert evidence[columns.index("likely documents")] > 0
    why = {part.name: part for part in model.explain(text, "w").parts}
    assert why["likely documents"].score == pytest.approx(
        evidence[columns.index("likely documents")], abs=1e-6
    )


def test_an_answer_without_some_documents_does_not_change_with_them(run, model, background):
    newcomers = model.state.newcomers
    evidence, moments = newcomers.evidence, Moments.of(run.train_vectors())
    broad = breadth(evidence, newcomers.features.idf_)
    settings = {"cull": 0.0, "parts": 2}
    known = partial(background.known, evidence, None, broad)
    first = newcomers.model.first
    one = background.likely(known, evidence, first, moments, **settings)
    dense = background.X.toarray()
    dense[0::2] = dense[0]
    other = Background(background.documents, csr_array(dense), background.seen, background.titles)
    two = other.likely(known, evidence, first, moments, **settings)
    np.testing.assert_array_equal(one[0].weights.toarray(), two[0].weights.toarray())
    assert abs(one[1].weights - two[1].weights).max() > 0.01
    np.testing.assert_array_equal(one[0].shares, one[1].shares)


def test_many_labels_are_the_same_as_each_alone(model, monkeypatch):
    newcomers = model.state.newcomers
    model.undo()
    monkeypatch.setattr("depl.labels.fewshot._LABELS", 1)
    examples = {"mono": TEXTS, "v": newcomers.examples[2:]}
    labels = [Label("mono", "Monopile"), Label("w", "wine"), Label("v", "Kellerei")]
    model.add_labels(labels, examples=examples)
    again = model.state.newcomers
    np.testing.assert_allclose(again.likely.shares, newcomers.likely.shares, rtol=1e-5)
    gap = abs(again.likely.weights - newcomers.likely.weights)
    assert gap.max() < 1e-5
