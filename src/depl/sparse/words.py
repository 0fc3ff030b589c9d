"""Words of texts, and pairs of words in a row: found and counted, by spaCy if it is asked for."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import count, pairwise
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from depl.core.errors import ConfigError, MissingExtraError
from depl.sparse.languages import fold, origins
from depl.sparse.writing import begins_with_word, words, words_in_place

Analyzer = Literal["simplemma", "spacy", "words"]

Counter = Callable[[Sequence[str]], tuple[list[str], csr_array]]
"""From texts to their distinct words and documents x words counts."""


def counter(analyzer: Analyzer, language: str, pairs: bool, in_order: bool = False) -> Counter:
    """From texts to their distinct words and documents x words counts; can go to a process.

    ``in_order`` leaves every word where it is: a row has an entry for each, in their order.
    """
    if analyzer == "spacy":
        return SpacyCounter(language, pairs, in_order)
    return partial(count_lower_cased, pairs=pairs, in_order=in_order)


def count_lower_cased(
    texts: Sequence[str], *, pairs: bool, in_order: bool = False
) -> tuple[list[str], csr_array]:
    """Distinct lower-cased words of the texts, and pairs; and documents x words counts."""
    return _count((words(fold(text)) for text in texts), pairs, in_order)


def pair(first: str, second: str) -> str:
    """The term for two words in a row."""
    return f"{first} {second}"


class SpacyCounter:
    """Counts the lemmas that spaCy's pipeline gives words in their sentences."""

    def __init__(self, language: str, pairs: bool, in_order: bool = False) -> None:
        self.language = language
        self.pairs = pairs
        self.in_order = in_order

    def __call__(self, texts: Sequence[str]) -> tuple[list[str], csr_array]:
        """Distinct lower-cased lemmas of the texts, and documents x lemmas counts."""
        composed = [unicodedata.normalize("NFC", text) for text in texts]
        nlp = load_for(self.language, *composed)
        documents = nlp.pipe(composed, batch_size=64)
        lemmas = ([fold(t.lemma_) for t in doc if begins_with_word(t.text)] for doc in documents)
        return _count(lemmas, self.pairs, self.in_order)


@lru_cache(maxsize=1)
def load_spacy(language: str):  # type: ignore[no-untyped-def]  # noqa: ANN201 - spaCy is an extra
    """The language's small trained pipeline if it is installed, else spaCy's table of lemmas."""
    try:
        import spacy
    except ImportError:
        raise MissingExtraError("spacy", "spacy", "The spaCy analyzer") from None
    kind = "web" if language in ("en", "zh") else "news"
    name = f"{language}_core_{kind}_sm"
    if spacy.util.is_package(name):
        return spacy.load(name, exclude=["parser", "ner"])
    try:
        nlp = spacy.blank(language)
        nlp.add_pipe("lemmatizer", config={"mode": "lookup"})
        nlp.initialize()
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"spaCy has neither the pipeline {name} nor a table of lemmas for the language "
            f"{language!r} ({error}). Install one of them, or set features.analyzer to "
            f"'simplemma' or 'words'."
        ) from error
    return nlp


def load_for(language: str, *texts: str):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """The pipeline with room for the longest of these texts."""
    nlp = load_spacy(language)
    nlp.max_length = max(nlp.max_length, max(map(len, texts), default=0) + 1)
    return nlp


def _count(
    documents: Iterator[list[str]], pairs: bool, in_order: bool
) -> tuple[list[str], csr_array]:
    if pairs:
        documents = (found + [pair(a, b) for a, b in pairwise(found)] for found in documents)
    position: defaultdict[str, int] = defaultdict(count().__next__)
    rows = [np.fromiter(map(position.__getitem__, found), np.int32) for found in documents]
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    indices = np.concatenate(rows) if rows else np.empty(0, np.int32)
    ones = np.ones(len(indices), np.float32)
    counts = csr_array((ones, indices, indptr), shape=(len(rows), len(position)))
    if not in_order:
        counts.sum_duplicates()
    return list(position), counts


def terms_in_place(
    analyzer: Analyzer,
    language: str,
    text: str,
    terms_of: Callable[[Sequence[str]], list[str]],
) -> list[tuple[str, int, int]]:
    """The term of every word of a text, its first character and one past its end.

    ``terms_of`` gives the terms of lower-cased words; spaCy gives those of the words in the text.
    """
    if analyzer == "spacy":
        tokens = [t for t in load_for(language, text)(text) if begins_with_word(t.text)]
        return [(fold(t.lemma_), t.idx, t.idx + len(t.text)) for t in tokens]
    folded = fold(text)
    found = list(words_in_place(folded))
    forms = list(dict.fromkeys(form for form, _, _ in found))
    term_of = dict(zip(forms, terms_of(forms), strict=True))
    placed = [(term_of[form], start, end) for form, start, end in found]
    if folded == text.lower() and len(folded) == len(text):
        return placed
    origin = origins(text)
    return [(term, origin[a][0], origin[b - 1][1]) for term, a, b in placed]
