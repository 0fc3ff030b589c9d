"""One spelling for all texts, and what is known of their language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from depl.sparse import languages
from depl.sparse.languages import find_language, fold, origins, stop_words

# Accents, ligatures, Hangul, Indic vowel signs and half-width kana, which join in several ways.
ODD = "aüu\u0308e\u0301\u0323ﬁİIßΣ ᄒ\u1161\u11ab한ക\u0d46\u0d3eｶﾞ½²"

ENGLISH = ["Council Regulation on the bottling of wine", "Aid for the storage of butter"]
GERMAN = ["Verordnung über das Abfüllen von Wein", "Beihilfen für die Lagerung von Butter"]
FRENCH = ["Règlement sur la mise en bouteille du vin", "Aides au stockage du beurre"]


@given(st.text(alphabet=ODD, max_size=20) | st.text(max_size=20))
def test_every_folded_character_has_its_place_in_the_text(text: str):
    folded, places = fold(text), origins(text)
    assert len(places) == len(folded)
    assert places == sorted(places)
    for character, (start, end) in zip(folded, places, strict=True):
        assert 0 <= start < end <= len(text)
        assert character.casefold() in fold(text[start:end]).casefold()


@given(st.text(alphabet=ODD, max_size=20) | st.text(max_size=20))
def test_what_is_folded_stays_as_it_is(text: str):
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("texts", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (FRENCH, "fr"), ([], "none")]
)
def test_language_of_texts_is_found(texts: list[str], language: str):
    assert find_language(texts) == language
    assert find_language([text.upper() for text in texts]) == language


def test_language_is_that_of_most_texts_all_over_the_corpus():
    assert find_language(ENGLISH * 60 + GERMAN * 600) == "de"


def test_numbers_have_no_language():
    assert find_language(["1408/71", "", "12"]) == "none"


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        *(("wein", "wein"), ("einfuhr", "einfuhr"), ("bestände", "bestand"), ("rindern", "rind")),
        *(("große", "groß"), ("wirtschaftliche", "wirtschaftlich"), ("waren", "sein")),
    ],
)
def test_german_nouns_are_no_verbs_and_adjectives_no_nouns(form: str, lemma: str):
    assert languages.lemmas([form], "de") == [lemma]


def test_norwegian_and_croatian_have_lemmas_and_stop_words_under_their_own_codes():
    assert languages.lemmas(["husene"], "no") == languages.lemmas(["husene"], "nb")
    assert languages.has_lemmas("hr")
    assert stop_words("nb") == stop_words("no") != frozenset()


@pytest.mark.parametrize("language", sorted(languages._lists()))
def test_stop_words_are_words_as_they_are_counted(language: str):
    words = stop_words(language)
    assert len(words) > 80
    assert all(word == fold(word) for word in words)
    # As has_lemmas does, but without unpacking the dictionaries of all languages.
    assert languages._LEMMAS_OF.get(language, language) in SUPPORTED_LANGUAGES
