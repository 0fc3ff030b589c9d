"""Pseudo descriptions: the name whole, keywords in order, and a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.core.corpus import Label, LabelSet
from depl.sparse.keywords import count_words, describe

word = st.text("abcdefghij-é", min_size=1, max_size=5)
phrase = st.lists(word, min_size=1, max_size=4).map(" ".join)


def one(name: str, keywords: list[str], alt: tuple[str, ...] = (), **settings: object) -> str:
    [text] = describe(LabelSet([Label("1", name, alt)]), [keywords], **settings)
    return text


@given(phrase, st.lists(word, max_size=12), st.integers(1, 10))
def test_description_is_the_name_and_the_longest_run_of_keywords_that_fits(name, keywords, budget):
    text = one(name, keywords, max_tokens=budget)
    # All descriptions there could be, by brute force: the name and the first i keywords.
    possible = [" ".join([name, *keywords[:i]]) for i in range(len(keywords) + 1)]
    fitting = [p for p in possible if len(p.split()) <= budget]
    assert text == (fitting[-1] if fitting else name)


@given(phrase, st.lists(phrase, max_size=6), st.integers(1, 12))
def test_budget_is_exceeded_by_a_long_name_alone(name, keywords, budget):
    text = one(name, keywords, max_tokens=budget)
    assert text.startswith(name)
    assert count_words(text) <= max(budget, count_words(name))


@given(phrase, st.lists(phrase, max_size=8), st.integers(1, 12))
def test_smaller_budget_gives_a_beginning_of_the_larger_ones_text(name, keywords, budget):
    assert one(name, keywords, max_tokens=budget + 3).startswith(
        one(name, keywords, max_tokens=budget)
    )


def test_nothing_follows_a_keyword_that_does_not_fit():
    keywords = ["grape", "sweet red grapes", "cellar"]
    assert one("wine", keywords, max_tokens=3) == "wine grape"


def test_other_names_stand_in_for_keywords_only_where_there_are_none():
    assert one("mead", [], ("honey wine", "metheglin")) == "mead honey wine metheglin"
    assert one("mead", ["honey"], ("honey wine",)) == "mead honey"
    assert one("mead", [], ("honey wine",), max_tokens=2) == "mead"
    assert one("mead", []) == "mead"


def test_sixteen_tokens_are_the_default():
    assert len(one("wine", [f"w{i}" for i in range(30)]).split()) == 16


def test_tokens_are_counted_as_the_caller_says():
    assert one("wine", ["red", "grape"], max_tokens=8, count_tokens=len) == "wine red"


def test_every_label_needs_its_list_of_keywords():
    with pytest.raises(ValueError, match="shorter"):
        describe(LabelSet([Label("1", "wine"), Label("2", "beer")]), [["grape"]])
