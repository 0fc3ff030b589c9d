"""Texts to tf-idf vectors over lemmas (section 3.2 of the paper), and over pairs of them.

``sparse.terms`` says how texts become terms, ``sparse.kinds`` when pairs of words are terms and the
words of titles count more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import CorpusError, NotFittedError
from depl.core.executor import Executor
from depl.core.scratch import GrowingMatrix, column_counts, portions
from depl.core.storage import read_settings, read_table, write_json, write_table
from depl.core.texts import as_texts, checked_texts, title_of
from depl.sparse import languages
from depl.sparse.counting import over_terms
from depl.sparse.kinds import are_short, have_titles, some_of
from depl.sparse.sequences import SILENT, UNKNOWN, Sequences
from depl.sparse.term_index import TermIndex
from depl.sparse.terms import TermReader, language_of
from depl.sparse.weighting import are_pairs, emphasised, frequencies, idf, scale
from depl.sparse.words import Analyzer

Pairs = Literal["auto", "yes", "no"]

_TERMS = "terms.parquet"
_SETTINGS = ("analyzer", "language", "pairs", "min_df", "max_df", "sublinear_tf", "title_weight")

_PAIRS_MIN_DF = 2  # there are too many pairs that occur once


class TfidfFeatures:
    """Sublinear tf-idf of lemmas, each document scaled to length 1.

    Parameters
    ----------
    analyzer : {"simplemma", "spacy", "words"}
        How a word becomes a term: simplemma's lemma (default), the lemma that spaCy's pipeline
        gives it in its sentence (the extra ``spacy``), or the lower-cased word itself.
    language : str
        Language code for lemmas and stop words, such as "de"; "auto" finds it from the texts that
        are fitted, "none" takes words as they are.
    pairs : {"auto", "yes", "no"}
        Whether two words in a row are terms, too; "auto": in texts of at most 300 words on
        average, as long as these have no more than 3 million words together.
    min_df : int
        Terms in fewer documents are left out.
    max_df : float
        Terms in a larger share of the documents are left out.
    sublinear_tf : bool
        Use 1 + ln(tf) instead of tf.
    title_weight : float
        How much the words of a title count beside the whole text, where most texts that are fitted
        have one; 0: no more than others.
    n_jobs : int or None
        Worker processes; None means one per core. The result does not depend on it.

    Attributes
    ----------
    language_ : str
        The language that was given or found.
    pairs_ : bool
        Whether pairs are terms.
    titles_ : bool
        Whether words of titles count more.
    vocabulary_ : TermIndex
        The terms and their columns.
    idf_ : array of float32
        Inverse document frequencies, ln((1 + n) / (1 + df)) + 1.

    Examples
    --------
    >>> features = TfidfFeatures(language="en", min_df=1, max_df=1.0)
    >>> X = features.fit_transform(["Wines and a wine cellar", "two cellars"])
    >>> features.terms_, X.shape
    (['and', 'cellar', 'two', 'wine'], (2, 4))
    """

    def __init__(
        self,
        *,
        analyzer: Analyzer = "simplemma",
        language: str = languages.AUTO,
        pairs: Pairs = "auto",
        min_df: int = 1,
        max_df: float = 0.7,
        sublinear_tf: bool = True,
        title_weight: float = 0.5,
        n_jobs: int | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.language = language
        self.pairs = pairs
        self.min_df = min_df
        self.max_df = max_df
        self.sublinear_tf = sublinear_tf
        self.title_weight = title_weight
        self.n_jobs = n_jobs

    @property
    def terms_(self) -> list[str]:
        """The terms, in the order of the columns of what ``transform`` returns."""
        return self.vocabulary_.terms

    @property
    def common_(self) -> list[str] | None:
        """Words that are no terms because too many documents have them; None: not known."""
        return self.vocabulary_.common

    def fit(self, texts: Sequence[str], names: Sequence[str] = ()) -> TfidfFeatures:
        """Learn the terms and their document frequencies."""
        self.fit_transform(texts, names)
        return self

    def fit_transform(
        self, texts: Sequence[str], names: Sequence[str] = (), executor: Executor | None = None
    ) -> csr_array:
        """Learn the terms and return the vectors of the same texts (documents x terms, float32).

        Parameters
        ----------
        texts : sequence of str
            The training documents.
        names : sequence of str
            Names of labels. Their words are terms, too, even those that are in none of the texts:
            a text that is yet to come may have them, and a name of which only the common half were
            known would seem to be in every text that has that half.
        executor : Executor, optional
            Counts the words; None: ``n_jobs`` processes do.
        """
        texts = checked_texts(texts)
        auto = self.language == languages.AUTO
        self.language_ = language_of(texts, self.analyzer) if auto else self.language
        some, n = some_of(texts), len(texts)
        self.pairs_ = are_short(some, n) if self.pairs == "auto" else self.pairs == "yes"
        self.titles_ = self.title_weight > 0 and have_titles(some)
        both = chain(texts, as_texts(names))
        terms, tf = self._reader().count_on_disk(both, n + len(names), executor)
        kept = self._choose(terms, tf, n)
        X, done = GrowingMatrix(), 0
        for part in portions(tf, np.arange(n)):
            titles = self._titles(texts[done : done + part.shape[0]])
            X.append(self._weigh(csr_array(part[:, kept]), self._counts(titles)))
            done += part.shape[0]
        return X.whole(len(kept))

    def _choose(self, terms: list[str], counts: csr_array, n: int) -> NDArray[np.int64]:
        """Learn which terms to keep; the counts are those of n texts and then of names."""
        of_names = column_counts(csr_array(counts[n:]))
        df = column_counts(counts) - of_names
        frequent, too_frequent = df >= self._least(are_pairs(terms)), df / max(n, 1) > self.max_df
        if not (frequent & ~too_frequent).any():
            raise CorpusError(
                f"No term of the {n} training documents is in at least {self.min_df} of "
                f"them and in at most {self.max_df:.0%}: there is nothing to learn from. Give more "
                f"documents, or set features.min_df and features.max_df."
            )
        kept = np.flatnonzero((frequent | (of_names > 0)) & ~too_frequent)
        common = [terms[j] for j in np.flatnonzero(too_frequent) if " " not in terms[j]]
        self.vocabulary_ = TermIndex([terms[j] for j in kept], common)
        self.idf_ = idf(n, df[kept])
        return kept

    def transform(self, texts: Sequence[str]) -> csr_array:
        """Vectors of texts over the learned terms (documents x terms, float32)."""
        self._check_fitted()
        texts = as_texts(texts)
        return self._weigh(self._counts(texts), self._counts(self._titles(texts)))

    def words_in_order(self, texts: Sequence[str]) -> Sequences:
        """The terms of the words of texts, in their order.

        Stop words, and words that nearly all documents have, are skipped.

        Examples
        --------
        >>> features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["animal protection"])
        >>> features.terms_, features.words_in_order(["Protection of the animals"]).terms.tolist()
        (['animal', 'protection'], [1, 0])
        """
        self._check_fitted()
        texts = as_texts(texts)
        if not texts:
            return Sequences.none(0)
        reader = self._reader()
        terms, ends, words = reader.in_order(texts)
        columns, common = self.vocabulary_.columns, self.vocabulary_.common_words
        silent = common.union(term.casefold() for term in reader.stop_terms())
        keys = [term.casefold() for term in terms]
        of_form = [SILENT if x in silent else columns.get(x, UNKNOWN) for x in keys]
        return Sequences.of(ends, np.array(of_form, np.int32)[words])

    def transform_all(self, texts: Sequence[str]) -> tuple[TfidfFeatures, csr_array]:
        """The same with the words of further texts as terms, and the vectors of these texts.

        Words in fewer than ``min_df`` of these texts, and pairs in only one, are no terms. The idf
        of new terms is that of terms in no document of ``fit``; see ``recounted``.

        Examples
        --------
        >>> features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["wine", "beer"])
        >>> more, X = features.transform_all(["Monopile wines"])
        >>> more.terms_, X.shape
        (['beer', 'wine', 'monopile'], (1, 3))
        """
        self._check_fitted()
        texts = as_texts(texts)
        terms, counts = self._reader().count(texts)
        unknown = self.vocabulary_.unknown(terms)
        place = {term.casefold(): i for i, term in enumerate(unknown)}
        df = column_counts(over_terms(terms, counts, place))
        frequent = df >= self._least(are_pairs(unknown))
        more = self.with_terms([x for x, kept in zip(unknown, frequent, strict=True) if kept], 0)
        titles = more._counts(more._titles(texts))
        return more, more._weigh(over_terms(terms, counts, more.vocabulary_.columns), titles)

    def recounted(self, df: NDArray[np.integer], n: int) -> TfidfFeatures:
        """The same with the idf of terms that are in so many of n documents."""
        new = copy(self)
        new.idf_ = idf(n, df)
        return new

    def known(self, df: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which terms would be kept if each were in so many documents."""
        return df >= self._least(self.paired())

    def unknown_terms(self, texts: Sequence[str]) -> list[str]:
        """Words of texts, sorted, as terms that no document of ``fit`` has.

        Stop words, and words that nearly all of them have, are not among these. Features of an
        earlier version cannot tell the latter from unknown ones, and give none.

        Examples
        --------
        >>> features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["wine", "beer"])
        >>> features.unknown_terms(["A monopile and wines"])
        ['monopile']
        """
        self._check_fitted()
        reader = self._reader()
        terms, _ = reader.count(as_texts(texts))
        silent = {term.casefold() for term in reader.stop_terms()}
        words = [term for term in terms if " " not in term and term.casefold() not in silent]
        return self.vocabulary_.unknown(words)

    def with_terms(self, terms: Sequence[str], n_documents: int) -> TfidfFeatures:
        """The same with further terms, behind the others, that none of n documents has."""
        if not terms:
            return self
        more = copy(self)
        more.vocabulary_ = self.vocabulary_.with_terms(terms)
        more.idf_ = np.concatenate([self.idf_, idf(n_documents, np.zeros(len(terms)))])
        return more

    def save(self, folder: Path) -> None:
        """Write terms, their idf and the settings."""
        write_table(folder / _TERMS, {"term": self.terms_, "idf": self.idf_})
        settings = {name: getattr(self, name) for name in _SETTINGS}
        # What was found: texts that come later may look different.
        found = {
            "language": self.language_,
            "pairs": "yes" if self.pairs_ else "no",
            "title_weight": self.title_weight if self.titles_ else 0.0,
        }
        write_json(folder / "tfidf.json", settings | found | {"common": self.common_})

    @classmethod
    def load(cls, folder: Path, n_jobs: int | None = None) -> TfidfFeatures:
        """Read what ``save`` wrote."""
        names = (*_SETTINGS, "common")
        older = {"pairs": "no", "common": None, "title_weight": 0.0}  # before there were these
        settings = read_settings(folder / "tfidf.json", names, **older)
        common = settings.pop("common")
        features = cls(**settings, n_jobs=n_jobs)
        terms = read_table(folder / _TERMS, "term")["term"]
        features.language_, features.pairs_ = features.language, features.pairs == "yes"
        features.titles_ = features.title_weight > 0
        features.vocabulary_ = TermIndex(terms, common)
        features.idf_ = load_idf(folder)
        return features

    def places(self, text: str, terms: Collection[str]) -> dict[str, list[tuple[int, int]]]:
        """Where terms occur in a text: the first character of each word form, and one past its end.

        Examples
        --------
        >>> features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["wine", "beer"])
        >>> features.places("Wines, and a WINE cellar", {"wine", "beer"})
        {'wine': [(0, 5), (13, 17)]}
        """
        self._check_fitted()
        return self._reader().places(text, terms)

    def word_weights(self) -> NDArray[np.float32]:
        """The idf of every term that is a single word; 0 for pairs of words."""
        return np.where(self.paired(), np.float32(0), self.idf_)

    def paired(self) -> NDArray[np.bool_]:
        """Which terms are two words in a row."""
        return self.vocabulary_.paired

    def stop_terms(self) -> frozenset[str]:
        """Stop words of the language of the texts, and their lemmas."""
        self._check_fitted()
        return self._reader().stop_terms()

    def _weigh(self, counts: csr_array, of_titles: csr_array) -> csr_array:
        """Tf-idf of counts of terms, in the texts and in their titles, if any; rows of length 1."""
        X = frequencies(counts, sublinear=self.sublinear_tf)
        if of_titles.shape[0]:
            titles = frequencies(of_titles, sublinear=self.sublinear_tf)
            X = emphasised(X, titles, self.title_weight)
        return scale(X, self.idf_, self.paired())

    def _titles(self, texts: Sequence[str]) -> list[str]:
        """The titles of texts, where they count; otherwise none."""
        return [title_of(text) for text in texts] if self.titles_ else []

    def _counts(self, texts: Sequence[str]) -> csr_array:
        """How often each text has each term."""
        if not texts:
            return csr_array((0, len(self.terms_)), dtype=np.int64)
        terms, counts = self._reader().count(texts)
        return over_terms(terms, counts, self.vocabulary_.columns)

    def _least(self, paired: NDArray[np.bool_]) -> NDArray[np.int64]:
        """In how many documents a term must be, by whether it is a pair."""
        return np.where(paired, max(self.min_df, _PAIRS_MIN_DF), self.min_df)

    def _reader(self) -> TermReader:
        return TermReader(self.analyzer, self.language_, self.pairs_, self.n_jobs)

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError(self)


def load_idf(folder: Path) -> NDArray[np.float32]:
    """The idf alone of what ``save`` wrote: without the terms it is read in a tenth of the time."""
    return np.asarray(read_table(folder / _TERMS, "idf")["idf"], np.float32)
