"""Sequences of characters against scikit-learn, and the SVM on them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from depl.core.errors import RunError
from depl.core.tensors import write_tensors
from depl.sparse.characters import CharacterFeatures, CharacterSVM
from depl.sparse.svm import OneVsAllSVM

TEXTS = [
    "Wind farms and wind turbines",
    "The windmills' turbine; a windfall",
    "Straßenverkehr, Verkehrsrecht",
    "verkehrsreiche Straßen at 4 a.m.",
    "",
]


def plain_sequences(text):
    words = re.sub(r"[\W_]+", " ", text[:1500].lower()).split()
    return [f" {w} "[i : i + 4] for w in words for i in range(len(w) - 1)]


def as_number(sequence):
    return sum(ord(c) << 16 * i for i, c in enumerate(sequence))


def dense(X, order, width):
    out = np.zeros((X.shape[0], width))
    out[:, order] = X.toarray()
    return out


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abÄß .,_-x9", max_size=40), min_size=1, max_size=8))
def test_vectors_are_those_of_scikit_learn(texts):
    features = CharacterFeatures()
    X = features.fit_transform(texts)
    oracle = TfidfVectorizer(analyzer=plain_sequences, min_df=2, sublinear_tf=True)
    try:
        expected = oracle.fit_transform(texts)
    except ValueError:  # no sequence is in two texts
        assert X.shape == (len(texts), 0)
        return
    numbers = np.array([as_number(x) for x in oracle.get_feature_names_out()], np.uint64)
    order = np.argsort(numbers)
    np.testing.assert_array_equal(features.sequences_, numbers[order])
    np.testing.assert_allclose(dense(X, order, len(order)), expected.toarray(), atol=1e-6)
    new = [text[::-1] for text in texts]
    np.testing.assert_allclose(
        dense(features.transform(new), order, len(order)),
        oracle.transform(new).toarray(),
        atol=1e-6,
    )


def test_only_the_beginning_of_a_text_counts():
    features = CharacterFeatures()
    X = features.fit_transform(["wind " + "x" * 1500, "wind farms", "farms"]).toarray()
    farms = np.flatnonzero(features.sequences_ == as_number("farm"))
    assert X[1:, farms].all()
    more = features.transform(["wind " + " " * 1500 + "farms", "wind"]).toarray()
    np.testing.assert_array_equal(more[0], more[1])


def test_compounds_and_inflected_forms_find_their_label(tmp_path):
    features = CharacterFeatures()
    Y = csr_array(np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], np.float32))
    part = CharacterSVM(features, OneVsAllSVM().fit(features.fit_transform(TEXTS), Y))
    new = ["Windräder", "Verkehrsminister", "?"]
    ranked = part.rank(new, 2)
    assert ranked.indices[:2, 0].tolist() == [0, 1]
    assert features.transform(new)[[2]].nnz == 0
    part.save(tmp_path)
    again = CharacterSVM.load(tmp_path).rank(new, 2)
    np.testing.assert_array_equal(again.indices, ranked.indices)
    np.testing.assert_array_equal(again.scores, ranked.scores)

    write_tensors(
        tmp_path / "characters.safetensors",
        {"sequences": features.sequences_[1:], "idf": features.idf_[1:]},
    )
    with pytest.raises(RunError, match="do not go together"):
        CharacterSVM.load(tmp_path)
