"""The terms of fitted features, the column of each, and the words that are no terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from depl.sparse.weighting import are_pairs


class TermIndex:
    """Terms in the order of their columns, looked up without regard to case; never changed.

    What is looked up is computed on first use, and once: a short text is read in less time than it
    takes to go through all terms.

    Parameters
    ----------
    terms : list of str
        The terms.
    common : list of str or None
        Words that are no terms because too many documents have them; None: not known.

    Examples
    --------
    >>> vocabulary = TermIndex(["beer", "wine"], ["the"]).with_terms(["Fluß"])
    >>> vocabulary.columns["fluss"], vocabulary.unknown(["milk", "Wine", "the"])
    (2, ['milk'])
    """

    def __init__(self, terms: list[str], common: list[str] | None) -> None:
        self.terms = terms
        self.common = common
        self._shorter: TermIndex | None = None  # has the first of these terms

    def with_terms(self, terms: Sequence[str]) -> TermIndex:
        """The same with further terms behind the others."""
        longer = TermIndex([*self.terms, *terms], self.common)
        longer._shorter = self
        return longer

    @property
    def columns(self) -> Mapping[str, int]:
        """The column of every term, by the term in folded case."""
        return self._lookup[0]

    @property
    def paired(self) -> NDArray[np.bool_]:
        """Which terms are two words in a row."""
        return self._lookup[1]

    @cached_property
    def _lookup(self) -> tuple[dict[str, int], NDArray[np.bool_]]:
        shorter, self._shorter = self._shorter, None  # needed no more
        if shorter is None:
            return _numbered(self.terms), are_pairs(self.terms)
        (columns, paired), n = shorter._lookup, len(shorter.terms)
        added = self.terms[n:]
        return columns | _numbered(added, n), np.append(paired, are_pairs(added))

    @cached_property
    def common_words(self) -> frozenset[str]:
        """The words that too many documents have, as far as they are known, in folded case."""
        return frozenset(word.casefold() for word in self.common or ())

    def unknown(self, terms: Iterable[str]) -> list[str]:
        """Those that are neither terms nor common words, sorted, each once.

        None where the common words are not known: they could not be told from unknown ones.
        """
        if self.common is None:
            return []
        folded = {term.casefold(): term for term in terms}
        return sorted(folded[x] for x in folded.keys() - self.columns.keys() - self.common_words)


def _numbered(terms: Sequence[str], first: int = 0) -> dict[str, int]:
    return {term.casefold(): j for j, term in enumerate(terms, start=first)}
