"""Words in any writing system."""

from __future__ import annotations

import re
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from depl.sparse.languages import fold
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.writing import SIGNS, words, words_in_place

SPACED = st.text(st.sampled_from("aZé_19 .,-'’ß ωΔ жЫ بسم שלום 한국어 ")) | st.text(
    st.characters(max_codepoint=0x2FF)
)
ANY = st.text(st.sampled_from("aé1 .हिकी்த量子の力タデーกขไม่ကမ្ព한국")) | st.text()


@given(SPACED)
def test_words_between_spaces_are_runs_of_two_letters_or_more(text: str):
    assert words(text) == re.findall(r"\w\w+", text)


@given(ANY)
def test_every_word_is_where_it_is_said_to_be(text: str):
    found = list(words_in_place(text))
    assert words(text) == [word for word, _, _ in found]
    assert all(text[start:end] == word != "" for word, start, end in found)
    assert [start for _, start, _ in found] == sorted(start for _, start, _ in found)


@given(ANY)
def test_no_character_of_a_phrase_is_lost(text: str):
    covered = {i for _, start, end in words_in_place(text) for i in range(start, end)}
    assert all(i in covered for i, c in enumerate(text) if c in "量子のกข")


def test_signs_are_all_marks_of_unicode_but_rare_ones():
    marks = [c for c in map(chr, range(sys.maxunicode)) if unicodedata.category(c)[0] == "M"]
    assert set(SIGNS) <= set(marks)
    # What is missing are signs of ancient writing and of music.
    assert all(ord(c) >= 0x12000 for c in set(marks) - set(SIGNS))


def test_vowel_signs_belong_to_the_word():
    assert words(fold("हिन्दी भाषा")) == ["हिन्दी", "भाषा"]
    assert words(fold("தமிழ் மொழி")) == ["தமிழ்", "மொழி"]


def test_writing_without_spaces_is_taken_apart():
    assert words("東京都の図書館") == ["東京", "京都", "の", "図書", "書館"]
    assert words("データベースのDNA分析") == ["データベース", "の", "DNA", "分析"]
    assert words("ภาษาไทย") == ["ภาษา", "าษาไ", "ษาไท", "าไทย"]


def test_a_name_without_spaces_is_found_in_a_text():
    features = TfidfFeatures(language="none", min_df=1, max_df=1.0, title_weight=0.0)
    features.fit(["東京都の図書館", "大阪の美術館", "図書の目録"])
    name, text = features.transform(["図書館", "新しい図書館です"])[[0]], "新しい図書館です"
    assert (features.transform([text]) @ name.T).toarray()[0, 0] > 0.5
    assert features.places(text, {"図書", "書館"}) == {"図書": [(3, 5)], "書館": [(4, 6)]}
