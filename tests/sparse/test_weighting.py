"""Held-out documents as new ones, against texts without the words that nobody else has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.core.scratch import column_counts
from depl.sparse.characters import LEAST_DOCUMENTS, CharacterFeatures
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.weighting import as_new

words = st.lists(st.sampled_from([2 * x for x in "abcdefghij"]), min_size=1, max_size=8).map(
    " ".join
)


@settings(max_examples=40, deadline=None)
@given(st.lists(words, min_size=3, max_size=9), st.integers(1, 2), st.sampled_from(["yes", "no"]))
def test_a_held_out_text_is_one_without_words_that_the_others_lack(texts, min_df, pairs):
    settings = {"language": "none", "pairs": pairs, "max_df": 1.0, "title_weight": 0.0}
    features = TfidfFeatures(analyzer="words", min_df=1, n_jobs=1, **settings)
    X = features.fit_transform(texts)
    features.min_df = min_df
    kept = X.copy()
    fold = np.arange(len(texts)) % 2
    known = [features.known(column_counts(csr_array(X[fold != f]))) for f in (0, 1)]
    found = as_new(X, fold, np.stack(known), features.paired())
    for i in range(len(texts)):
        # Brute force: drop the terms, then scale words and pairs anew.
        others = [set(X[[j]].indices.tolist()) for j in np.flatnonzero(fold != fold[i])]
        row = X[[i]].toarray()[0]
        for j in np.flatnonzero(row):
            least = max(min_df, 2) if " " in features.terms_[j] else min_df
            if sum(j in x for x in others) < least:
                row[j] = 0
        paired = features.paired()
        for these, length in ((paired, 0.7), (~paired, 1.0)):
            norm = np.linalg.norm(row[these])
            row[these] *= length / norm if norm else 0
        norm = np.linalg.norm(row)
        expected = row / norm if norm else row
        np.testing.assert_allclose(found[[i]].toarray()[0], expected, atol=1e-5)
    np.testing.assert_array_equal(X.toarray(), kept.toarray())


def test_a_new_text_and_a_held_out_one_with_the_same_words_have_the_same_vector():
    others = ["red wine from grapes", "white wine and cheese", "olive oil", "oil and vinegar"]
    settings = {"language": "none", "pairs": "no", "max_df": 1.0, "title_weight": 0.0, "n_jobs": 1}
    features = TfidfFeatures(analyzer="words", **settings)
    X = features.fit_transform([*others, "wine and oil zymurgy"])
    known = features.known(column_counts(csr_array(X[:4])))
    held_out = as_new(X[[4]], np.array([0]), known[None], features.paired())
    new = features.transform(["wine and oil bottling"])
    np.testing.assert_allclose(held_out.toarray(), new.toarray(), atol=1e-6)
    assert abs(X[[4]] - new).max() > 0.1  # or the test could not fail


def test_sequences_of_characters_that_one_other_text_has_are_not_known():
    features = CharacterFeatures()
    X = features.fit_transform(["abcde", "abcd", "abcd", "bcde"])
    known = column_counts(csr_array(X[1:])) >= LEAST_DOCUMENTS
    found = as_new(X[[0]], np.array([0]), known[None])
    texts = CharacterFeatures()
    texts.fit_transform(["abcd", "abcd", "bcde"])
    assert set(features.sequences_[found.indices].tolist()) <= set(texts.sequences_.tolist())
    assert found.nnz < X[[0]].nnz
    assert np.linalg.norm(found.toarray()) == pytest.approx(1)


def test_what_nobody_else_knows_is_empty():
    X = csr_array(np.array([[1.0, 0.0]], np.float32))
    assert as_new(X, np.array([0]), np.zeros((1, 2), bool)).nnz == 0
