"""Spellings of a label's name: what counts as the same, and which one names the label."""

from itertools import permutations

import pytest

from depl.readers.spellings import Spellings, sameness, tidy


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Wine", "wine"),
        ("  sparkling wine", "sparkling\u00a0 wine\n"),
        ("Bu\u0308cher", "B\u00fccher"),
        ("\ufb01sh", "fish"),
        ("STRASSE", "Straße"),
        ("\u1e9e", "ss"),
        ("Zeit\u00adschrift", "Zeitschrift"),
        ("\ufeffWine", "wine"),
        ("ΟΔΟΣ", "οδός".replace("ό", "ο")),
    ],
)
def test_same_label(one: str, other: str) -> None:
    assert sameness(one) == sameness(other) != ""


@pytest.mark.parametrize(("one", "other"), [("wine", "wines"), ("a-b", "a b"), ("é", "e")])
def test_different_labels(one: str, other: str) -> None:
    assert sameness(one) != sameness(other)


def test_sameness_is_stable() -> None:
    # Every character alone: what is the same as its form must have the same form again.
    for code in range(0x3000):
        once = sameness(chr(code))
        assert sameness(once) == once


def test_commonest_spelling_is_the_name_whatever_the_order() -> None:
    documents = [["wine"], ["Wine "], ["WINE"], ["Wine", "oil"], ["wine"], ["Wine"]]
    results = {
        (tuple(sorted(s.names)), tuple(s.variants["Wine"]))
        for order in permutations(documents)
        for s in [Spellings.learn(order)]
    }
    # "Wine" and "Wine " are one spelling with stray white space: three against two.
    assert results == {(("Wine", "oil"), ("Wine", "wine", "Wine ", "WINE"))}


def test_equally_common_spellings() -> None:
    assert Spellings({"WEIN": 1, "Wein": 1, "wein": 1}).names == ["Wein"]
    assert Spellings({"USA": 1}).names == ["USA"]


def test_names_are_tidied() -> None:
    spellings = Spellings({"  Bu\u0308cher  und\tHefte": 1})
    assert spellings.names == ["B\u00fccher und Hefte"] == [tidy(" B\u00fccher und Hefte")]
    assert not spellings.variants


def test_blank_names_are_no_labels() -> None:
    spellings = Spellings.learn([["", " ", "\u200b"], ["a"]])
    assert spellings.names == ["a"]
    assert spellings.labels(["", "\u00a0", "A", "a"]) == ["a"]


def test_known_names_keep_their_spelling() -> None:
    spellings = Spellings({"WINE": 9, "beer": 1}, known=["wine", "oil"])
    assert spellings.names == ["wine", "oil", "beer"]
    assert spellings.labels(["Wine", "OIL", "BEER", "Tea"]) == ["wine", "oil", "beer", "Tea"]
