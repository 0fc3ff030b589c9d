"""Tf-idf against scikit-learn's, and what must not change it."""

from __future__ import annotations

import itertools
import re
import sys
import tracemalloc
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from depl.core import executor
from depl.core.corpus import Dataset
from depl.core.errors import ConfigError, CorpusError, DeplError, MissingExtraError, NotFittedError
from depl.core.workers import map_in_processes
from depl.sparse import counting, writing
from depl.sparse.languages import fold
from depl.sparse.renewal import Renewal
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.words import load_spacy

COMMON = ["wine", "Wine", "WINES", "grape", "1408", "71", "a", "x_y", "don't", "naïve", "STRASSE"]
ODD = ["ß", "İstanbul", "été", "汉字", "データ", "e\u0301", "ﬁne"]
words = st.sampled_from(COMMON + ODD) | st.text(max_size=5)
documents = st.lists(words, max_size=12).map(" ".join)
corpora = st.lists(documents, min_size=1, max_size=12)


def plain(**changes: object) -> TfidfFeatures:
    settings = {"analyzer": "words", "language": "en", "pairs": "no", "min_df": 1, "max_df": 1.0}
    return TfidfFeatures(**(settings | {"title_weight": 0.0} | changes))


def assert_same(a: csr_array, b: csr_array) -> None:
    """Bit for bit."""
    assert a.shape == b.shape
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a, part), getattr(b, part))


@settings(max_examples=150)
@example(texts=["", "WINES \n wine"], others=[""], min_df=1, max_df=0.5, sublinear_tf=False)
@given(
    texts=corpora,
    others=corpora,
    min_df=st.integers(1, 3),
    max_df=st.sampled_from([0.5, 0.7, 0.95, 1.0]),
    sublinear_tf=st.booleans(),
)
def test_plain_words_give_what_scikit_learn_gives(texts, others, min_df, max_df, sublinear_tf):
    knobs = {"min_df": min_df, "max_df": max_df, "sublinear_tf": sublinear_tf}
    ours = plain(**knobs)
    theirs = TfidfVectorizer(
        preprocessor=fold,
        tokenizer=lambda text: [word.casefold() for word in writing.words(text)],
        token_pattern=None,
        **knobs,
    )
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:  # no term is left
        with pytest.raises(CorpusError, match="there is nothing to learn from"):
            ours.fit_transform(texts)
        return
    X = ours.fit_transform(texts)
    assert ours.terms_ == sorted(ours.terms_)
    column = [theirs.vocabulary_[term.casefold()] for term in ours.terms_]
    assert sorted(column) == list(range(len(theirs.vocabulary_)))
    assert X.dtype == ours.idf_.dtype == np.float32
    assert X.has_sorted_indices
    np.testing.assert_allclose(ours.idf_, theirs.idf_[column], rtol=1e-6)
    np.testing.assert_allclose(X.toarray(), expected.toarray()[:, column], atol=1e-6)
    np.testing.assert_allclose(
        ours.transform(others).toarray(), theirs.transform(others).toarray()[:, column], atol=1e-6
    )


@given(corpora)
def test_documents_have_length_one_or_nothing_in_them(texts: list[str]):
    X = plain().fit([*texts, "wine"]).transform(texts)
    lengths = np.sqrt((X.toarray() ** 2).sum(axis=1))
    assert all(n == 0 or n == pytest.approx(1, abs=1e-6) for n in lengths)


# Lemmas


def test_forms_of_one_word_meet_in_its_lemma():
    lemmas = TfidfFeatures(language="en", min_df=1, max_df=1.0)
    X = lemmas.fit_transform(["Mice and mouse", "two MICE mouse traps", "trap"])
    assert lemmas.terms_ == ["and", "mouse", "trap", "two"]
    # "mice" and "mouse" in one document count as two of one term, so the order does not matter...
    assert_same(lemmas.transform(["mouse mouse trap"]), lemmas.transform(["Mouse mice traps"]))
    # ... and the document frequency is that of the lemma: 2 of 3 documents.
    assert lemmas.idf_[1] == pytest.approx(np.log(4 / 3) + 1)
    tf = 1 + np.log(2)
    idf = {t: float(w) for t, w in zip(lemmas.terms_, lemmas.idf_, strict=True)}
    expected = tf * idf["mouse"] / np.hypot(tf * idf["mouse"], idf["and"])
    assert X.toarray()[0, 1] == pytest.approx(expected, abs=1e-6)


def test_numbers_and_codes_stay_as_they_are():
    lemmas = TfidfFeatures(language="en", min_df=1, max_df=1.0).fit(
        ["Regulation 1408/71, form e104s"]
    )
    assert {"1408", "71", "e104s"} <= set(lemmas.terms_)


def test_language_of_the_lemmas_is_a_setting():
    german = TfidfFeatures(min_df=1, max_df=1.0, language="de")
    assert german.fit(["Verordnungen", "die Verordnung"]).terms_ == ["der", "verordnung"]


def test_language_that_is_not_there_is_an_error_that_names_it():
    with pytest.raises(DeplError, match="klingon"):
        TfidfFeatures(language="klingon", min_df=1, max_df=1.0).fit(["wine", "wine"])


def test_language_is_found_once_and_kept_with_the_run(tmp_path: Path):
    german = ["Verordnung über die Erzeugung von Milch", "Verordnungen gegen die Einfuhr von Wein"]
    fitted = TfidfFeatures(min_df=1, max_df=1.0).fit(german)
    assert fitted.language_ == "de"
    fitted.save(tmp_path)
    loaded = TfidfFeatures.load(tmp_path)
    assert loaded.language_ == "de"
    # A text that looks like English is still lemmatised as German.
    assert_same(loaded.transform(["Weine"]), loaded.transform(["Wein"]))
    assert loaded.transform(["Weine"]).nnz == 1


def test_words_of_a_language_without_lemmas_are_taken_as_they_are(caplog):
    korean = TfidfFeatures(min_df=1, max_df=1.0).fit(["유럽 연합의 포도주 규정", "우유 생산"])
    assert korean.language_ == "none"
    assert "no lemmas" in caplog.text
    assert korean.stop_terms() == frozenset()


def test_a_language_without_spaces_has_no_lemmas_to_miss(caplog):
    chinese = TfidfFeatures(min_df=1, max_df=1.0).fit(["欧盟关于葡萄酒的规定", "牛奶生产"])
    assert chinese.language_ == "none"
    assert not caplog.text
    assert {"葡萄", "萄酒"} <= set(chinese.terms_)


def test_stop_terms_are_words_of_grammar_and_their_lemmas():
    german = TfidfFeatures(language="de", min_df=1, max_df=1.0).fit(["die Häuser waren gegen uns"])
    assert {"der", "sein", "gegen"} <= german.stop_terms()
    assert set(german.terms_) - german.stop_terms() == {"haus"}


# One text in several spellings


SENTENCE = "Über die Förderung von Öl in Österreich: Häuser, Flüsse und Bücher im Überblick"


@pytest.mark.parametrize(
    "spelling",
    [
        str.upper,
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: unicodedata.normalize("NFD", text.upper()),
        lambda text: text.replace("fl", "ﬂ").replace("Fl", "ﬂ"),
    ],
    ids=["capitals", "decomposed", "decomposed capitals", "ligatures"],
)
@pytest.mark.parametrize("analyzer", ["simplemma", "words"])
def test_features_do_not_depend_on_the_spelling(analyzer, spelling):
    fitted = TfidfFeatures(analyzer=analyzer, language="de", min_df=1, max_df=1.0).fit([SENTENCE])
    assert spelling(SENTENCE) != SENTENCE
    assert fitted.transform([SENTENCE]).nnz == len(fitted.terms_)
    assert_same(fitted.transform([spelling(SENTENCE)]), fitted.transform([SENTENCE]))
    places = fitted.places(spelling(SENTENCE), fitted.terms_)
    assert set(places) == set(fitted.terms_)


def test_old_and_new_spelling_of_a_word_are_one_term_named_by_the_commoner():
    fitted = plain().fit(["fluß fluss", "fluß", "prozess prozeß prozess"])
    assert fitted.terms_ == ["fluß", "prozess"]
    assert (fitted.transform(["Fluss", "FLUSS", "Prozeß"]).toarray() > 0).tolist() == [
        [True, False],
        [True, False],
        [False, True],
    ]
    assert fitted.places("ein Fluss", {"fluß"}) == {"fluß": [(4, 9)]}


# Which terms are kept


@pytest.mark.parametrize("n", [10, 20, 90])
def test_term_in_exactly_the_largest_share_is_kept_and_one_more_is_not(n: int):
    share = n * 7 // 10
    texts = ["exactly " * (i < share) + "more " * (i <= share) + "filler0" for i in range(n)]
    kept = plain(max_df=0.7).fit([*texts[:-1], texts[-1].replace("filler0", "other")])
    assert kept.terms_ == ["exactly", "other"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab ", max_size=12), min_size=2, max_size=8), st.integers(1, 3))
def test_pairs_are_weighted_on_their_own(texts, min_df):
    knobs = {"sublinear_tf": True, "max_df": 1.0, "token_pattern": r"\w\w+"}
    words = TfidfVectorizer(min_df=min_df, **knobs)
    pairs = TfidfVectorizer(min_df=max(2, min_df), ngram_range=(2, 2), **knobs)
    try:
        blocks = [words.fit_transform(texts).toarray(), 0.7 * pairs.fit_transform(texts).toarray()]
    except ValueError:  # there are none
        return
    expected = np.hstack(blocks)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    expected = expected / np.where(lengths > 0, lengths, 1)
    names = [*words.get_feature_names_out(), *pairs.get_feature_names_out()]

    ours = TfidfFeatures(analyzer="words", language="none", pairs="yes", min_df=min_df, max_df=1.0)
    X = ours.fit_transform(texts)
    assert ours.terms_ == sorted(names)
    np.testing.assert_allclose(X.toarray(), expected[:, np.argsort(names)], atol=1e-6)
    np.testing.assert_array_equal(ours.transform(texts).toarray(), X.toarray())


def test_pairs_of_lemmas_are_taken_in_short_texts():
    short = ["Operating systems", "an operating system", "systems operate"]
    features = TfidfFeatures(language="en", max_df=1.0).fit(short)
    assert features.pairs_
    assert "operate system" in features.terms_
    assert "system operate" not in features.terms_  # in one text only
    long = [text + " filler word" * 300 for text in short]
    assert not TfidfFeatures(language="en", max_df=1.0).fit(long).pairs_


def test_term_in_exactly_the_fewest_documents_is_kept():
    assert plain(min_df=2).fit(["once twice", "twice", "twice wine wine"]).terms_ == ["twice"]


@pytest.mark.parametrize("texts", [[], [""], ["a b c", "! ?"], ["wine", "wine"]])
def test_nothing_to_learn_from_is_said(texts: list[str]):
    with pytest.raises(CorpusError, match=rf"No term of the {len(texts)} training documents .*70%"):
        TfidfFeatures().fit(texts)


def test_words_not_seen_in_training_and_empty_texts_give_empty_rows():
    X = plain().fit(["wine grape", "wine steel"]).transform(["", "beer", "wine beer", " . "])
    assert X.shape == (4, 3)
    assert np.diff(X.indptr).tolist() == [0, 0, 1, 0]
    assert X.data.tolist() == [1.0]


def test_no_texts_give_a_matrix_without_rows():
    assert plain().fit(["wine grape", "wine steel"]).transform([]).shape == (0, 3)


def test_transform_before_fit_is_refused():
    with pytest.raises(NotFittedError, match=r"This TfidfFeatures is not fitted yet"):
        TfidfFeatures().transform(["wine"])


def test_fit_gives_the_object_itself():
    unfitted = plain()
    assert unfitted.fit(["wine"]) is unfitted


def test_one_very_long_word_does_not_make_all_others_as_large():
    # Encoded attachments are "words" of many thousand letters: memory is to follow the text.
    texts = ["x" * 20_000, *(f"word{i} word{i + 1}" for i in range(2_000))]
    tracemalloc.start()
    try:
        plain(n_jobs=1).fit(texts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6  # the text has 60 kB


# What must not change the result


@pytest.mark.parametrize("analyzer", ["simplemma", "words"])
@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_do_not_change_the_result(dataset: Dataset, monkeypatch, analyzer: str, chunk: int):
    texts = dataset.train.texts
    whole = TfidfFeatures(analyzer=analyzer, n_jobs=1)
    X = whole.fit_transform(texts)
    monkeypatch.setattr(counting, "_CHUNK", chunk)
    parts = TfidfFeatures(analyzer=analyzer, n_jobs=1)
    assert_same(parts.fit_transform(texts), X)
    assert parts.terms_ == whole.terms_
    np.testing.assert_array_equal(parts.idf_, whole.idf_)
    assert_same(parts.transform(dataset.dev.texts), whole.transform(dataset.dev.texts))


def test_worker_processes_do_not_change_the_result(dataset: Dataset, monkeypatch):
    texts = dataset.train.texts
    alone = TfidfFeatures(n_jobs=1)
    X = alone.fit_transform(texts)
    asked: list[int] = []

    def spy(function, chunks, processes, ahead):
        asked.append(processes)
        return map_in_processes(function, chunks, processes, ahead)

    monkeypatch.setattr(executor, "map_in_processes", spy)
    monkeypatch.setattr(counting, "_SERIAL_BELOW", 1)
    monkeypatch.setattr(counting, "_CHUNK", 7)
    together = TfidfFeatures(n_jobs=2)
    assert_same(together.fit_transform(texts), X)
    assert together.terms_ == alone.terms_
    assert asked == [2]


# spaCy


class ToyPipeline:
    """As much of spaCy as is used: the lemma of a word is its first four letters."""

    max_length = 5
    made: str

    def pipe(self, texts: list[str], batch_size: int):
        assert all(len(text) < self.max_length for text in texts)
        for text in texts:
            yield [SimpleNamespace(text=t, lemma_=t[:4].title()) for t in text.split()]

    def add_pipe(self, name: str, config: dict[str, str]) -> None:
        assert (name, config) == ("lemmatizer", {"mode": "lookup"})

    def initialize(self) -> None:
        if self.made == "blank tlh":
            raise ValueError("[E912] no lookup table for 'tlh'")


@pytest.fixture
def toy_spacy(monkeypatch) -> Iterator[list[str]]:
    """A stand-in for spaCy with one installed pipeline; gives what was made with it."""
    made: list[str] = []

    def pipeline(text: str) -> ToyPipeline:
        made.append(text)
        nlp = ToyPipeline()
        nlp.made = text
        return nlp

    toy = SimpleNamespace(
        util=SimpleNamespace(is_package=lambda name: name == "en_core_web_sm"),
        load=lambda name, exclude: pipeline(f"load {name}"),
        blank=lambda language: pipeline(f"blank {language}"),
    )
    load_spacy.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", toy)
    yield made
    load_spacy.cache_clear()


def test_missing_spacy_is_said_with_the_way_to_get_it(toy_spacy, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"needs the library 'spacy'.*depl\[spacy\]"):
        TfidfFeatures(analyzer="spacy", min_df=1).fit(["wine", "wine"])


def test_spacys_lemmas_are_counted_lower_cased(toy_spacy: list[str]):
    lemmas = TfidfFeatures(analyzer="spacy", language="en", min_df=1, max_df=1.0, n_jobs=1)
    X = lemmas.fit_transform(["Vineyards , vineyard grapes", "x GRAPE"])
    assert lemmas.terms_ == ["grap", "vine"]
    assert (X.toarray() > 0).tolist() == [[True, True], [True, False]]
    assert toy_spacy == ["load en_core_web_sm"]


def test_without_a_trained_pipeline_spacys_table_of_lemmas_serves(toy_spacy: list[str]):
    lemmas = TfidfFeatures(analyzer="spacy", language="de", min_df=1, max_df=1.0, n_jobs=1)
    assert lemmas.fit(["Trauben"]).terms_ == ["trau"]
    assert toy_spacy == ["blank de"]


def test_language_that_spacy_does_not_know_is_said(toy_spacy: list[str]):
    with pytest.raises(ConfigError, match=r"neither the pipeline tlh_core_news_sm .*'tlh'"):
        TfidfFeatures(analyzer="spacy", language="tlh", n_jobs=1).fit(["qul"])


def test_words_of_names_are_terms_even_if_no_text_has_them():
    texts = ["the wind farm", "the wine cellar", "the wine"]
    features = TfidfFeatures(language="en", pairs="yes", min_df=2, max_df=0.9)
    X = features.fit_transform(texts, ["Monopile farm", "the wine list"])
    named = ["farm", "list", "monopile", "monopile farm", "the wine", "wine", "wine list"]
    assert features.terms_ == named
    of = dict(zip(features.terms_, features.idf_.tolist(), strict=True))
    assert of["monopile"] == of["wine list"] == pytest.approx(np.log(4) + 1)
    assert of["farm"] == pytest.approx(np.log(4 / 2) + 1)
    assert "wind" not in of  # in one text, and in no name
    assert "the" not in of  # in a name, but too frequent
    assert_same(X, features.transform(texts))
    vectors = features.transform(["a farm", "the monopile of a farm", "Monopile farm"]).toarray()
    half, whole, _ = vectors @ vectors[2]
    assert half < 0.6
    assert whole > 0.8


# Titles

titled = st.lists(
    st.builds(
        "{}\n{}".format,
        st.text("abc ", max_size=8).filter(str.strip),
        st.text("abcd ", max_size=30).filter(str.strip),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(titled, st.sampled_from([0.2, 0.5, 3.0]), st.sampled_from(["yes", "no"]), st.booleans())
def test_titles_are_added_as_a_share_of_the_text(texts, weight, pairs, sublinear_tf):
    knobs = {"analyzer": "words", "language": "none", "pairs": pairs, "sublinear_tf": sublinear_tf}
    ours = TfidfFeatures(**knobs, max_df=1.0, title_weight=weight)
    try:
        X = ours.fit_transform(texts)
    except CorpusError:  # words of one letter are no terms
        return
    assert ours.titles_
    at = {term: j for j, term in enumerate(ours.terms_)}

    def frequencies(text: str) -> np.ndarray:
        counts = np.zeros(len(at))
        words = re.findall(r"\w\w+", text)
        for term in [*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))]:
            if term in at:
                counts[at[term]] += 1
        return (
            np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) if sublinear_tf else counts
        )

    for row, text in zip(X.toarray(), texts, strict=True):
        whole, title = frequencies(text), frequencies(text.strip().split("\n")[0])
        if title.any():
            whole += weight * np.linalg.norm(whole) / np.linalg.norm(title) * title
        whole *= ours.idf_
        paired = np.array([" " in term for term in ours.terms_])
        for kind, length in ((~paired, 1.0), (paired, 0.7)):
            whole[kind] *= length / (np.linalg.norm(whole[kind]) or 1)
        np.testing.assert_allclose(row, whole / (np.linalg.norm(whole) or 1), atol=1e-6)
    assert_same(ours.transform(texts), X)


@settings(max_examples=50, deadline=None)
@given(titled, titled)
def test_vectors_with_titles_are_renewed_as_a_fit_on_all_texts_makes_them(texts, others):
    knobs = {"analyzer": "words", "language": "none", "pairs": "no", "max_df": 1.0}
    try:
        before, whole = TfidfFeatures(**knobs), TfidfFeatures(**knobs)
        X, expected = before.fit_transform(texts), whole.fit_transform([*texts, *others])
    except CorpusError:
        return
    wide, new = before.transform_all(others)
    df = [np.bincount(part.indices, minlength=len(wide.terms_)) for part in (X, new)]
    after = wide.recounted(sum(df), len(texts) + len(others))
    columns = [wide.terms_.index(term) for term in whole.terms_]
    old = Renewal(before.idf_, after).rows(X).toarray()
    fresh = Renewal(wide.idf_, after).rows(new).toarray()
    renewed = np.vstack([old, fresh])[:, columns]
    np.testing.assert_allclose(renewed, expected.toarray(), atol=1e-6)


def test_titles_count_where_most_texts_have_one_and_are_kept(tmp_path):
    text = "wine and cheese\nA survey of vineyards, of grapes and of cellars"
    features = TfidfFeatures(language="en", pairs="no", max_df=1.0).fit([text, text, "grapes"])
    assert features.titles_
    wine, grape = (features.terms_.index(x) for x in ("wine", "grape"))
    named, flat = features.transform([text, text.replace("\n", " ")]).toarray()
    assert named[wine] > flat[wine]
    assert named[grape] < flat[grape]
    features.save(tmp_path)
    assert_same(TfidfFeatures.load(tmp_path).transform([text]), features.transform([text]))
    few = TfidfFeatures(language="en", pairs="no", max_df=1.0).fit([text, "grapes", "cheese"])
    assert not few.titles_
    assert_same(few.transform([text]), few.transform([text.replace("\n", " ")]))
    few.save(tmp_path)
    assert not TfidfFeatures.load(tmp_path).titles_


@settings(max_examples=60)
@given(texts=corpora, others=corpora)
def test_words_in_order_are_those_of_a_plain_look(texts, others):
    features = plain()
    try:
        features.fit(texts)
    except CorpusError:
        return
    silent = {x.casefold() for x in features.stop_terms()}
    place = {term.casefold(): i for i, term in enumerate(features.terms_)}
    found = features.words_in_order(others)
    assert len(found) == len(others)
    for i, text in enumerate(others):
        words = [x.casefold() for x in writing.words(fold(text))]
        expected = [place.get(x, -1) for x in words if x not in silent]
        assert found.terms[found.ends[i] : found.ends[i + 1]].tolist() == expected
        assert found.take(np.array([i])).terms.tolist() == expected


def test_words_that_nearly_all_texts_have_do_not_part_others():
    texts = ["wine report", "grape report", "wine report grape"]
    features = plain(max_df=0.7).fit(texts)
    assert features.terms_ == ["grape", "wine"]
    found = features.words_in_order([*texts, "wine unheard grape"])
    assert found.terms.tolist() == [1, 0, 1, 0, 1, -1, 0]
    assert found.ends.tolist() == [0, 1, 2, 4, 7]
