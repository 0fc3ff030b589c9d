"""Looking terms up: in a vocabulary and in longer ones that are made from it."""

from __future__ import annotations

import numpy as np
import pytest

from depl.sparse.term_index import TermIndex

TERMS = ["beer", "Fluß", "grape wine", "wine"]


@pytest.mark.parametrize("looked_up_before", [False, True])
def test_terms_are_added_behind_the_others(looked_up_before: bool):
    first = TermIndex(TERMS[:2], ["the"])
    if looked_up_before:
        assert first.columns == {"beer": 0, "fluss": 1}
    longer = first.with_terms(TERMS[2:3]).with_terms(TERMS[3:])
    whole = TermIndex(TERMS, ["the"])
    assert longer.terms == whole.terms
    assert longer.columns == whole.columns == {"beer": 0, "fluss": 1, "grape wine": 2, "wine": 3}
    np.testing.assert_array_equal(longer.paired, [False, False, True, False])
    np.testing.assert_array_equal(whole.paired, longer.paired)
    assert (first.terms, first.columns) == (TERMS[:2], {"beer": 0, "fluss": 1})


def test_unknown_are_words_that_are_neither_terms_nor_common():
    vocabulary = TermIndex(TERMS, ["The"])
    assert vocabulary.unknown(["WINE", "the", "milk", "fluss", "cider"]) == ["cider", "milk"]
    assert TermIndex(TERMS, None).unknown(["milk"]) == []
