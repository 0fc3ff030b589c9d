r"""Words in any writing system, where ``\w\w+`` is not enough.

In Hindi, Tamil and many others, signs for vowels stand around the letters. They are part of the
word, but ``\w`` does not match them. And where words are not separated by spaces, a run of letters
is a phrase:

- In Chinese and Japanese every two characters in a row are a word here. Search engines do the
  same; it needs no dictionary. A run of katakana, in which Japanese writes foreign words, is one
  word: two characters of it mean nothing to people.
- In Thai, Lao, Burmese and Khmer it is every four.

Korean has spaces, and its words are those between them. ``benchmarks/languages.py`` measures what
this is worth in Japanese and Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_NOT_LATIN = re.compile(r"[^\u0000-\u02ff]")
_LATIN_WORD = re.compile(r"\w\w+")
SIGNS = "".join(c for c in map(chr, range(0x300, 0x12000)) if unicodedata.category(c)[0] == "M")
_WORD = re.compile(rf"\w[\w{SIGNS}]*")
_KATAKANA = r"\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff"
_HIRAGANA = r"\u3041-\u309f"
_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUNS = re.compile(
    rf"(?P<pairs>[{_HIRAGANA}]+|[{_HAN}]+)|(?P<fours>[{_SOUTH_EAST}]+)"
    rf"|[{_KATAKANA}]+|[^{_KATAKANA}{_HIRAGANA}{_HAN}{_SOUTH_EAST}]+"
)
_FIRST_WORD = re.compile(rf"\w[\w{SIGNS}]|[{_HIRAGANA}{_HAN}]")
_LENGTHS = {"pairs": 2, "fours": 4}


def words(text: str) -> list[str]:
    """The words of a text, of two letters or more.

    Examples
    --------
    >>> words("the wine of 1971"), words("हिन्दी भाषा")
    (['the', 'wine', 'of', '1971'], ['हिन्दी', 'भाषा'])
    >>> words("量子力学の本"), words("XMLライブラリ")
    (['量子', '子力', '力学', 'の', '本'], ['XML', 'ライブラリ'])
    """
    if _NOT_LATIN.search(text) is None:
        return _LATIN_WORD.findall(text)
    return [word for word, _, _ in words_in_place(text)]


def words_in_place(text: str) -> Iterator[tuple[str, int, int]]:
    """Every word, its first character and one past its end; words may overlap.

    Examples
    --------
    >>> list(words_in_place("a 量子力"))
    [('量子', 2, 4), ('子力', 3, 5)]
    """
    for found in _WORD.finditer(text):
        for run in _RUNS.finditer(found[0]):
            first, last = found.start() + run.start(), found.start() + run.end()
            length = _LENGTHS.get(run.lastgroup or "")
            if length is None:
                if last - first > 1:
                    yield run[0], first, last
                continue
            for at in range(first, max(first, last - length) + 1):
                yield text[at : min(last, at + length)], at, min(last, at + length)


def begins_with_word(token: str) -> bool:
    """Whether what another program takes for a word is more than a sign or a single letter.

    Examples
    --------
    >>> [token for token in ("wine", "a", "...", "茶", "की") if begins_with_word(token)]
    ['wine', '茶', 'की']
    """
    return _FIRST_WORD.match(token) is not None
