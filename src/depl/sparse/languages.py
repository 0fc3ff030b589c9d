"""What depends on the language of the texts: finding it, lemmas, stop words; and one spelling."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

from depl.core.errors import ConfigError
from depl.core.progress import track

if TYPE_CHECKING:
    from simplemma import Lemmatizer

AUTO = "auto"  # the language is found from the training texts
NONE = "none"  # no lemmas and no stop words

_LOOKED_AT = 200  # texts by which the language of a corpus is decided
_LENGTH = 1_000  # characters of each
# Codes by which simplemma knows what py3langid finds.
_LEMMAS_OF = {"no": "nb", "hr": "hbs", "sr": "hbs", "bs": "hbs", "sh": "hbs"}
_STOP_WORDS_OF = {"nb": "no", "nn": "no"}


def fold(text: str) -> str:
    """The text in lower case and in one Unicode form, however it was typed or extracted.

    Composed and decomposed umlauts are the same, so are ligatures from a PDF and their letters.

    Examples
    --------
    >>> fold("MU\u0308NCHEN") == fold("München") == "münchen"
    True
    >>> fold("\ufb01sh"), fold("İzmir")
    ('fish', 'izmir')
    """
    # The lower case of a dotted I is an i with a second dot, which would end the word.
    lower = unicodedata.normalize("NFKC", text).lower().replace("i\u0307", "i")
    return unicodedata.normalize("NFKC", lower)


def origins(text: str) -> list[tuple[int, int]]:
    """For every character of ``fold(text)``, where in the text it comes from: first, one past last.

    Examples
    --------
    >>> origins("u\u0308\ufb01")
    [(0, 2), (2, 3), (2, 3)]
    """
    starts = [i for i, c in enumerate(text) if i == 0 or not _continues(c)]
    places = []
    for start, end in pairwise([*starts, len(text)]):
        places += [(start, end)] * len(fold(text[start:end]))
    return places


def _continues(character: str) -> bool:
    """Whether a character can become one with those before it: accents, vowel signs, Hangul."""
    first = unicodedata.normalize("NFKC", character)[0]
    return unicodedata.category(first).startswith("M") or "\u1160" <= first <= "\u11ff"


def find_language(texts: Sequence[str]) -> str:
    """The code of the language that most of the texts are in; "none" where there are no letters.

    It is decided once for all texts, from some of them at even distances.

    Examples
    --------
    >>> find_language(["Verordnung über den Wein", "DIE ERZEUGUNG VON MILCH"])
    'de'
    """
    step = max(1, len(texts) // _LOOKED_AT)
    sample = "\n".join(fold(text[:_LENGTH]) for text in texts[::step][:_LOOKED_AT])
    if not any(map(str.isalpha, sample)):
        return NONE
    from py3langid import classify  # reads its model of 5 MB on first use

    code: str = classify(sample)[0]
    return code


def has_lemmas(language: str) -> bool:
    """Whether simplemma knows the language.

    Examples
    --------
    >>> has_lemmas("de"), has_lemmas("zh")
    (True, False)
    """
    try:
        _lemmatizer().lemmatize("a", lang=_LEMMAS_OF.get(language, language))
    except ValueError:
        return False
    return True


@cache
def _lemmatizer() -> Lemmatizer:
    """One for all calls: most words of a text were in a text before, and it remembers them."""
    from simplemma import Lemmatizer

    return Lemmatizer()


def lemmas(forms: Sequence[str], language: str) -> list[str]:
    """The lemma of each word form, in lower case; a number or a code is its own.

    Examples
    --------
    >>> lemmas(["häuser", "1408"], "de")
    ['haus', '1408']
    """
    if language == NONE:
        return list(forms)
    if not has_lemmas(language):
        raise ConfigError(
            f"simplemma has no lemmas for the language {language!r}. Set features.language to "
            f"another code or to 'none', or features.analyzer to 'words'."
        )
    lemmatize, code = _lemmatizer().lemmatize, _LEMMAS_OF.get(language, language)
    grammar = stop_words(language)

    def lemma(form: str) -> str:
        found = fold(lemmatize(form, lang=code))
        if code != "de" or form in grammar:
            return found
        # German writes nouns with a capital, and simplemma takes "wein" for a form of "weinen", to
        # cry. Of the two readings the noun is meant, unless it is an adjective with an ending.
        noun = fold(lemmatize(form.capitalize(), lang=code))
        return noun if len(noun) <= len(found) else found

    # Numbers are kept: "1408" of Regulation 1408/71 is more informative than most words.
    return [
        lemma(form) if form.isalpha() else form for form in track(forms, "lemmas", total=len(forms))
    ]


def stop_words(language: str) -> frozenset[str]:
    """Words of grammar in a language: articles, prepositions, pronouns; empty if it has no list.

    Examples
    --------
    >>> "gegen" in stop_words("de"), "wein" in stop_words("de"), stop_words("zh")
    (True, False, frozenset())
    """
    return _lists().get(_STOP_WORDS_OF.get(language, language), frozenset())


@cache
def _lists() -> dict[str, frozenset[str]]:
    text = files("depl.sparse").joinpath("stop_words.txt").read_text(encoding="utf-8")
    found = {}
    for paragraph in text.split("\n\n")[1:]:
        code, _, words = paragraph.partition(":")
        found[code.strip()] = frozenset(words.split())
    return found
