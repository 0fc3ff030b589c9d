"""The terms of texts: lemmas of their words and, if asked for, of two words in a row.

The work is arranged so that Python handles each token once: worker processes turn documents into
counts of *surface forms*; only the distinct forms (75,000 for 26 million tokens of EURLEX57K) are
lemmatised, and the columns of forms with one lemma are added up. Lemmas that differ only in what
case folding makes equal, such as the old and new spelling Fluß and Fluss, are one term.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.executor import Executor
from depl.core.scratch import GrowingMatrix, portions
from depl.sparse import languages
from depl.sparse.counting import (
    add_columns,
    commonest_spellings,
    count_forms,
    count_on_disk,
    forms_in_order,
)
from depl.sparse.words import Analyzer, Counter, counter, pair, terms_in_place

# Languages without spaces between words: their characters are counted (``writing``).
_WITHOUT_LEMMAS = ("ja", "km", "lo", "my", "th", "zh")

_logger = logging.getLogger("depl.sparse")


@dataclass(frozen=True)
class TermReader:
    """Finds and counts the terms of texts.

    Parameters
    ----------
    analyzer, language, n_jobs
        As in ``TfidfFeatures``; the language is that of the texts.
    pairs : bool
        Whether two words in a row are terms, too.
    """

    analyzer: Analyzer
    language: str
    pairs: bool
    n_jobs: int | None = None

    def count(self, texts: Sequence[str]) -> tuple[list[str], csr_array]:
        """The terms of the texts' distinct forms, and counts of the forms (texts x forms)."""
        forms, counts = count_forms(self._counter(), texts, self.n_jobs)
        return self._terms_of(forms), counts

    def count_on_disk(
        self, texts: Iterable[str], total: int, executor: Executor | None = None
    ) -> tuple[list[str], csr_array]:
        """Sorted terms, and counts (texts x terms) for so many texts in total, which are mapped."""
        forms, counted = count_on_disk(self._counter(), texts, total, self.n_jobs, executor)
        occurrences = np.zeros(len(forms))
        for part in portions(counted):
            occurrences += np.bincount(part.indices, part.data, minlength=len(forms))
        of_form = commonest_spellings(self._terms_of(forms), occurrences)
        # Not np.unique: its array would need as much memory for every term as for the longest.
        terms = sorted(set(of_form))
        position = {term: j for j, term in enumerate(terms)}
        column_of_form = np.array([position[term] for term in of_form], dtype=np.int64)
        summed = GrowingMatrix(passing=True)
        for part in portions(counted):
            summed.append(add_columns(part, column_of_form, len(terms)))
        del counted
        return terms, summed.whole(len(terms))

    def in_order(
        self, texts: Sequence[str]
    ) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """The terms of the texts' distinct forms; where each text ends; the form of every word."""
        read = counter(self.analyzer, self.language, pairs=False, in_order=True)
        forms, ends, words = forms_in_order(read, texts, self.n_jobs)
        return self._terms_of(forms), ends, words

    def places(self, text: str, terms: Collection[str]) -> dict[str, list[tuple[int, int]]]:
        """Where terms occur in a text: the first character of each word form, and one past its end.

        Examples
        --------
        >>> reader = TermReader("simplemma", "en", pairs=False)
        >>> reader.places("Wines, and a WINE cellar", {"wine", "beer"})
        {'wine': [(0, 5), (13, 17)]}
        """
        asked = {term.casefold(): term for term in terms}
        places: dict[str, list[tuple[int, int]]] = {}
        words = terms_in_place(self.analyzer, self.language, text, self._terms_of)
        for term, start, end in words:
            if term.casefold() in asked:
                places.setdefault(asked[term.casefold()], []).append((start, end))
        return places

    def stop_terms(self) -> frozenset[str]:
        """Stop words of the language, and their lemmas."""
        return _stop_terms(self.analyzer, self.language)

    def _terms_of(self, forms: Sequence[str]) -> list[str]:
        return _terms_of(self.analyzer, self.language, forms)

    def _counter(self) -> Counter:
        return counter(self.analyzer, self.language, self.pairs)


def _terms_of(analyzer: Analyzer, language: str, forms: Sequence[str]) -> list[str]:
    """The term of each lower-cased form, which is a word or a pair of words."""
    if analyzer != "simplemma":
        return list(forms)  # spaCy's forms are lemmas already: it needs the sentence
    words = [form for form in forms if " " not in form]
    lemma = dict(zip(words, languages.lemmas(words, language), strict=True))
    return [lemma.get(form) or pair(*map(lemma.__getitem__, form.split())) for form in forms]


@cache  # their lemmas take as long as those of a short text
def _stop_terms(analyzer: Analyzer, language: str) -> frozenset[str]:
    words = languages.stop_words(language)
    return words.union(_terms_of(analyzer, language, sorted(words)))


def language_of(texts: Sequence[str], analyzer: Analyzer) -> str:
    """The language that most texts are in, or none where the analyzer has no lemmas for it."""
    found = languages.find_language(texts)
    if analyzer == "simplemma" and found in _WITHOUT_LEMMAS:
        return languages.NONE
    if analyzer == "simplemma" and not languages.has_lemmas(found):
        _logger.warning(
            "The texts seem to be in the language %r, for which simplemma has no lemmas: words "
            "are taken as they are. If it is another one, set features.language.",
            found,
        )
        return languages.NONE
    return found
