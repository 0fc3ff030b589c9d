"""Texts to tf-idf vectors over lemmas (section 3.2 of the paper), and over pairs of them.

The work is arranged so that Python handles each token once: worker processes turn documents into
counts of *surface forms*; only the distinct forms (75,000 for 26 million tokens of EURLEX57K) are
lemmatised, and the columns of forms with one lemma are added up. Lemmas that differ only in what
case folding makes equal, such as the old and new spelling Fluß and Fluss, are one term.

In short texts, two words in a row are terms as well: an "operating system" is neither an operation
nor a system. They are weighted on their own, so that they do not outnumber the words. On slices of
the training documents P@1 of the SVM rose from 77.8 to 80.4 on debtags and from 35.1 to 35.8 on
10,000 records of TIB-en. On long texts (3,000 laws of EURLEX57K: from 61.0 to 60.4, tail macro-F1@5
from 21.5 to 19.5) they do not pay, and on many they make the SVM four times as slow.

The words of a title count more than others, for what a title names, the document is about. Where
most texts have one (the first line of several), the counts of its words are added once more, scaled
to a share of the length of all. On slices of the training documents (10,000 of them) P@1 of the SVM
rose from 36.9 to 42.0 on TIB-en, from 86.7 to 88.1 on EURLEX57K and from 83.5 to 84.7 on debtags,
and the macro-F1@5 of rare labels by 3.3, 3.3 and 4.6 points.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
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
from depl.sparse.counting import (
    add_columns,
    commonest_spellings,
    count_forms,
    count_on_disk,
    forms_in_order,
    over_terms,
)
from depl.sparse.kinds import are_short, have_titles, some_of
from depl.sparse.sequences import SILENT, UNKNOWN, Sequences
from depl.sparse.weighting import are_pairs, emphasised, idf, scale
from depl.sparse.words import Analyzer, Counter, counter, pair, terms_in_place

_logger = logging.getLogger("depl.sparse")

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
    terms_ : list of str
        The terms, sorted; the columns of what ``transform`` returns.
    common_ : list of str or None
        Words that are no terms because too many documents have them; None: not known.
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
        self.language_ = self._find_language(texts)
        some = some_of(texts)
        short = are_short(some, len(texts))
        self.pairs_ = short if self.pairs == "auto" else self.pairs == "yes"
        self.titles_ = self.title_weight > 0 and have_titles(some)
        both = chain(texts, as_texts(names))
        total = len(texts) + len(names)
        forms, counted = count_on_disk(self._counter(), both, total, self.n_jobs, executor)
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
        tf, n = summed.whole(len(terms)), len(texts)
        in_names = column_counts(csr_array(tf[n:])) > 0
        df = column_counts(tf) - column_counts(csr_array(tf[n:]))
        frequent, too_frequent = df >= self._least(terms), df / max(n, 1) > self.max_df
        if not (frequent & ~too_frequent).any():
            raise CorpusError(
                f"No term of the {n} training documents is in at least {self.min_df} of "
                f"them and in at most {self.max_df:.0%}: there is nothing to learn from. Give more "
                f"documents, or set features.min_df and features.max_df."
            )
        kept = np.flatnonzero((frequent | in_names) & ~too_frequent)
        self.terms_ = [terms[j] for j in kept]
        common = np.flatnonzero(too_frequent)
        self.common_: list[str] | None = [terms[j] for j in common if " " not in terms[j]]
        self.idf_ = idf(n, df[kept])
        X, done = GrowingMatrix(), 0
        for part in portions(tf, np.arange(n)):
            titles = self._titles(texts[done : done + part.shape[0]])
            X.append(self._weigh(csr_array(part[:, kept]), self._counts(titles)))
            done += part.shape[0]
        return X.whole(len(kept))

    def transform(self, texts: Sequence[str]) -> csr_array:
        """Vectors of texts over the learned terms (documents x terms, float32)."""
        if not hasattr(self, "terms_"):
            raise NotFittedError(self)
        texts = as_texts(texts)
        return self._weigh(self._counts(texts), self._counts(self._titles(texts)))

    def words_in_order(self, texts: Sequence[str]) -> Sequences:
        """The terms of the words of texts, in their order.

        Words of grammar, and words that nearly all documents have, are passed over.

        Examples
        --------
        >>> features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["animal protection"])
        >>> features.terms_, features.words_in_order(["Protection of the animals"]).terms.tolist()
        (['animal', 'protection'], [1, 0])
        """
        if not hasattr(self, "terms_"):
            raise NotFittedError(self)
        texts = as_texts(texts)
        if not texts:
            return Sequences.none(0)
        read = counter(self.analyzer, self.language_, pairs=False, in_order=True)
        forms, ends, words = forms_in_order(read, texts, self.n_jobs)
        columns, silent = self._columns(), self._silent()
        keys = [term.casefold() for term in self._terms_of(forms)]
        of_form = [SILENT if x in silent else columns.get(x, UNKNOWN) for x in keys]
        return Sequences.of(ends, np.array(of_form, np.int32)[words])

    def _silent(self) -> set[str]:
        """Words of grammar, and words that nearly all documents have, without regard to case.

        Found once: their lemmas take as long as those of a short text.
        """
        common, words = self.__dict__.get("_passed_over") or (None, set())
        if not words or common is not self.common_:  # fitted again
            words = {term.casefold() for term in (*self.stop_terms(), *(self.common_ or ()))}
            self._passed_over = self.common_, words
        return words

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
        if not hasattr(self, "terms_"):
            raise NotFittedError(self)
        texts = as_texts(texts)
        forms, counts = self._count_forms(texts)
        terms = self._terms_of(forms)
        columns = self._columns()
        unknown = self._unknown(terms, columns)
        place = {term.casefold(): i for i, term in enumerate(unknown)}
        of_form = np.array([place.get(term.casefold(), -1) for term in terms], np.int64)
        new = np.flatnonzero(of_form >= 0)
        df = np.bincount(
            add_columns(csr_array(counts[:, new]), of_form[new], len(place)).indices,
            minlength=len(place),
        )
        frequent = df >= self._least(unknown)
        added = [x for x, kept in zip(unknown, frequent, strict=True) if kept]
        columns = columns | {term.casefold(): len(columns) + i for i, term in enumerate(added)}
        more = self.with_terms(added, 0)
        # Most terms are those from before: they are not gone through again.
        more._kept = more.terms_, columns, np.append(self.paired(), are_pairs(added))
        titles = more._counts(more._titles(texts))
        return more, more._weigh(over_terms(terms, counts, columns), titles)

    def recounted(self, df: NDArray[np.integer], n: int) -> TfidfFeatures:
        """The same with the idf of terms that are in so many of n documents."""
        new = copy(self)
        new.idf_ = idf(n, df)
        return new

    def known(self, df: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which terms would be terms if each were in so many documents."""
        return df >= self._least(self.terms_)

    def unknown_terms(self, texts: Sequence[str]) -> list[str]:
        """Words of texts, sorted, as terms that no document of ``fit`` has.

        Words that nearly all of them have, and words of grammar, are not among these. Features of
        an earlier version cannot tell the former from unknown ones, and give none.

        Examples
        --------
        >>> features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["wine", "beer"])
        >>> features.unknown_terms(["A monopile and wines"])
        ['monopile']
        """
        if not hasattr(self, "terms_"):
            raise NotFittedError(self)
        terms = self._terms_of(self._count_forms(as_texts(texts))[0])
        grammar = {term.casefold() for term in self.stop_terms()}
        words = [term for term in terms if " " not in term and term.casefold() not in grammar]
        return self._unknown(words, self._columns())

    def _unknown(self, terms: Sequence[str], known: Mapping[str, int]) -> list[str]:
        """Terms that no document of ``fit`` has, sorted, each once."""
        if self.common_ is None:
            return []
        common = {term.casefold() for term in self.common_}
        folded = {term.casefold(): term for term in terms}
        return sorted(x for key, x in folded.items() if key not in known and key not in common)

    def _columns(self) -> dict[str, int]:
        """The column of every term, by the term without regard to case."""
        return self._of_terms()[1]

    def _of_terms(self) -> tuple[list[str], dict[str, int], NDArray[np.bool_]]:
        """The terms, their columns, and which are pairs; made once for the same terms.

        A short text is read in less time than it takes to go through all terms. Where terms were
        added behind those of the features that these are a copy of, only the added ones are new.
        """
        terms, columns, pairs = self.__dict__.get("_kept") or ([], {}, np.zeros(0, np.bool_))
        if terms is not self.terms_:
            n = len(terms) if self.terms_[: len(terms)] == terms else 0
            added = {term.casefold(): j for j, term in enumerate(self.terms_[n:], start=n)}
            columns = {**columns, **added} if n else added
            pairs = np.append(pairs[:n], are_pairs(self.terms_[n:]))
            self._kept = self.terms_, columns, pairs
        return self._kept

    def with_terms(self, terms: Sequence[str], n_documents: int) -> TfidfFeatures:
        """The same with further terms, behind the others, that none of n documents has."""
        if not terms:
            return self
        more = copy(self)
        more.terms_ = [*self.terms_, *terms]
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
        terms = read_table(folder / _TERMS, "term")
        features.language_, features.pairs_ = features.language, features.pairs == "yes"
        features.titles_ = features.title_weight > 0
        features.terms_, features.common_ = terms["term"], common
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
        if not hasattr(self, "terms_"):
            raise NotFittedError(self)
        words = terms_in_place(self.analyzer, self.language_, text, self._terms_of)
        asked = {term.casefold(): term for term in terms}
        places: dict[str, list[tuple[int, int]]] = {}
        for term, start, end in words:
            if term.casefold() in asked:
                places.setdefault(asked[term.casefold()], []).append((start, end))
        return places

    def word_weights(self) -> NDArray[np.float32]:
        """The idf of every term that is a single word; 0 for pairs of words."""
        return np.where(self.paired(), np.float32(0), self.idf_)

    def paired(self) -> NDArray[np.bool_]:
        """Which terms are two words in a row."""
        return self._of_terms()[2]

    def stop_terms(self) -> frozenset[str]:
        """Terms that are words of grammar in the language of the texts, or lemmas of such words."""
        if not hasattr(self, "terms_"):
            raise NotFittedError(self)
        words = languages.stop_words(self.language_)
        return words.union(self._terms_of(sorted(words)))

    def _find_language(self, texts: Sequence[str]) -> str:
        if self.language != languages.AUTO:
            return self.language
        found = languages.find_language(texts)
        if self.analyzer == "simplemma" and not languages.has_lemmas(found):
            _logger.warning(
                "The texts seem to be in the language %r, for which simplemma has no lemmas: words "
                "are taken as they are. If it is another one, set features.language.",
                found,
            )
            return languages.NONE
        return found

    def _weigh(self, counts: csr_array, of_titles: csr_array) -> csr_array:
        """Tf-idf of counts of terms, in the texts and in their titles, if any; rows of length 1."""
        X = self._tf(counts)
        if of_titles.shape[0]:
            X = emphasised(X, self._tf(of_titles), self.title_weight)
        return scale(X, self.idf_, self.paired())

    def _tf(self, counts: csr_array) -> csr_array:
        tf = counts.astype(np.float32)
        tf.sort_indices()
        if self.sublinear_tf:
            np.log(tf.data, out=tf.data)
            tf.data += 1
        return tf

    def _titles(self, texts: Sequence[str]) -> list[str]:
        """The titles of texts, where they count; otherwise none."""
        return [title_of(text) for text in texts] if self.titles_ else []

    def _counts(self, texts: Sequence[str]) -> csr_array:
        """How often each text has each term."""
        if not texts:
            return csr_array((0, len(self.terms_)), dtype=np.int64)
        forms, counts = self._count_forms(texts)
        return over_terms(self._terms_of(forms), counts, self._columns())

    def _least(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """In how many documents each of these must be to be a term."""
        return np.where(are_pairs(terms), max(self.min_df, _PAIRS_MIN_DF), self.min_df)

    def _terms_of(self, forms: Sequence[str]) -> list[str]:
        if self.analyzer != "simplemma":
            return list(forms)  # spaCy's forms are lemmas already: it needs the sentence
        words = [form for form in forms if " " not in form]
        lemma = dict(zip(words, languages.lemmas(words, self.language_), strict=True))
        return [lemma.get(form) or pair(*map(lemma.__getitem__, form.split())) for form in forms]

    def _count_forms(self, texts: Sequence[str]) -> tuple[list[str], csr_array]:
        return count_forms(self._counter(), texts, self.n_jobs)

    def _counter(self) -> Counter:
        return counter(self.analyzer, self.language_, self.pairs_)


def load_idf(folder: Path) -> NDArray[np.float32]:
    """The idf alone of what ``save`` wrote: without the terms it is read in a tenth of the time."""
    return np.asarray(read_table(folder / _TERMS, "idf")["idf"], np.float32)
