"""Learning from feedback: the labels that it is about are learnt again, the others stay.

Every call continues from what was learnt before. The tf-idf counts the documents of the feedback
and takes their words as terms; by it, names are weighed again. The labels that the feedback is
about are solved for all documents, in the SVM and, where there is one, in that on characters, whose
sequences are those of the fit: near the fit's weights where these are of many documents
(``depl.sparse.updating``). What an encoder does is in ``learn_vectors``. New documents are
ranked before anything is learnt from them: by what people said of them, the fusion learns what the
parts' scores mean now (``depl.fusion.updating``). Thresholds are probabilities, and so they follow.

It would be quicker if a label of many documents took in only the new ones, with weights that move
as little as they can to get those right. But such weights follow the latest documents: after ten
portions of 68, P@5 on 3,000 others of EURLEX57K was 59.2 instead of 63.7 (retrained 63.8), and on
debtags nothing was gained.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import RunError
from depl.labels.feedback import FeedbackStore
from depl.labels.feedback_corpus import Taught, taught
from depl.pipeline.learn_fusion import foreseen, fused, suggesting
from depl.pipeline.learn_vectors import encode_news, settled, vectors_of
from depl.pipeline.news import News, news_since
from depl.pipeline.sparse import token_count, unspoken_terms
from depl.run.folder import Run
from depl.run.learned import Documents, Learned, Lesson
from depl.run.learned_vectors import LearnedVectors
from depl.sparse.characters import CharacterSVM
from depl.sparse.keywords import Descriptions
from depl.sparse.names import NameMatch
from depl.sparse.renewal import Renewal
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.updating import take_in, with_documents
from depl.sparse.weighting import scale

if TYPE_CHECKING:
    from depl.neural.encoder import DualEncoder


def learn(run: Run) -> tuple[Lesson, Taught]:
    """Learn from all feedback on a run, and use what was learnt from now on.

    Returns
    -------
    lesson, taught : Lesson, Taught
        What was learnt, and what the feedback makes of the training documents. Where there is
        nothing new since the last time, no label was learnt, and the run stays as it is.
    """
    start = time.perf_counter()
    run.verified("descriptions")
    with run.locked(), _no_collection():
        base = run.train()
        found = taught(FeedbackStore(run.path).documents(), run.labels, base, keep_all=True)
        number, before, studied = _before(run)
        news = news_since(base, found, studied.verdicts)
        if not len(news.labels) and not number:
            raise RunError(
                f"There is nothing to learn: no feedback on {run.path} differs from what its "
                f"training documents say. Give some with `depl feedback {run.path} add`."
            )
        lesson = Lesson(
            stages=run.stages_version(),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            documents=len(news.verdicts),
            labels=len(news.labels),
            seconds=0.0,
        )
        if len(news.labels):
            learned, studied = _learned(run, found.corpus, before, studied, news)
            learned = replace(learned, fusion=fused(run, studied))
            lesson = replace(lesson, seconds=round(time.perf_counter() - start, 2))
            run.learned.keep(learned, studied, lesson, before=number)
    return lesson, found


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing here is garbage, and looking for it among 27,000 labels takes a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _before(run: Run) -> tuple[int, Learned, Documents]:
    """What was learnt until now, and from which documents of feedback; 0 where nothing was."""
    with suppress(RunError):  # what is learnt anew replaces a state that is damaged
        number = run.learned.current()
        if number:
            state = run.learned.read(number, run.threads)
            return number, state, run.learned.documents(number)
    features = run.features()
    none = np.empty(0, np.int64), Descriptions([], [])
    rows = csr_array((0, len(features.terms_)), dtype=np.float32)
    known = *none, np.empty(0, np.int64), rows, run.Y
    fitted = Learned(features, run.svm(), run.names(), *known, run.characters())
    if run.has("fusion"):
        fitted = replace(fitted, fusion=run.fitted_fusion())
    return 0, fitted, Documents({}, rows)


def _learned(
    run: Run, corpus: Corpus, before: Learned, studied: Documents, news: News
) -> tuple[Learned, Documents]:
    """What is known with the news, and from which documents."""
    # What an encoder is given here is the same for what was foreseen and for what is kept.
    unread = news.texts(corpus, studied).unread
    texts = [corpus.texts[i] for i in unread]
    state = suggesting(run, before, texts)
    read = None if state is None else state.encode(texts)
    features, X, fresh = _counted(run, corpus, before.features, studied, news)
    renewal = Renewal(before.features.idf_, features)
    svm = before.svm.over_other_terms(renewal.weights)
    Y = csr_array(corpus.Y[:, news.labels])
    fitted = run.svm().over_other_terms(Renewal(run.idf(), features).weights)
    svm = take_in(svm, fitted, run.Y.shape[0], news.labels, X, Y, news.altered)
    names = NameMatch(
        renewal.rows(before.names.names),
        before.names.owner,
        None if before.names.weight is None else features.word_weights(),
        before.names.order,
    )
    # A label that nobody has carried yet stays as it was, whatever it was rejected for.
    known = (before.train_counts + corpus.label_counts)[news.labels] > 0
    learnt = news.labels[known]
    own = _described(run, corpus, features, X, csr_array(svm.weights_[learnt]), learnt)
    vectors = None
    if run.has("index"):
        had = run.descriptions().with_others(before.labels.tolist(), before.descriptions).texts
        own = replace(own, texts=settled([had[j] for j in learnt], own.texts))
        said = {j: x for j, x in zip(learnt.tolist(), own.texts, strict=True) if x != had[j]}
        own_vectors = {} if read is None else vectors_of(unread, read)
        loaded = None if state is None or state.retriever is None else state.retriever.retriever
        encoder = None if loaded is None else loaded.encoder
        vectors = _encoded(run, corpus, before, studied, news, said, own_vectors, encoder)
    older = np.flatnonzero(~np.isin(before.labels, learnt))
    labels = np.concatenate([before.labels[older], learnt])
    described = Descriptions(
        [*(before.descriptions.texts[i] for i in older), *own.texts],
        [*(before.descriptions.keywords[i] for i in older), *own.keywords],
    )
    characters, Z = _by_characters(run, corpus, before, studied, news)
    documents = news.places, csr_array(X[news.places]), corpus.Y
    learned = Learned(features, svm, names, labels, described, *documents, characters, vectors)
    by_characters = None if Z is None else csr_array(Z[news.places])
    seen = foreseen(run, corpus, before, studied, news, fresh, Z, state, read)
    return learned, Documents(news.verdicts, learned.rows, by_characters, seen)


def _by_characters(
    run: Run, corpus: Corpus, before: Learned, studied: Documents, news: News
) -> tuple[CharacterSVM, csr_array] | tuple[None, None]:
    """The SVM on characters with the news, and the vectors of all documents, if it is there."""
    if before.characters is None:
        return None, None
    features, X = before.characters.features, run.character_vectors()
    known = studied.by_characters
    if known is None:  # nothing was studied before
        known = csr_array((0, X.shape[1]), dtype=X.dtype)
        studied = Documents({}, known)
    texts = news.texts(corpus, studied)
    fresh = features.transform([corpus.texts[i] for i in texts.unread])
    own = texts.together(csr_array(known[texts.seen]), fresh)
    X = with_documents(X, len(corpus), news.reworded, own)
    Y = csr_array(corpus.Y[:, news.labels])
    fitted = run.characters()
    assert fitted is not None  # or there were none before
    svm = before.characters.svm
    svm = take_in(svm, fitted.svm, run.Y.shape[0], news.labels, X, Y, news.altered)
    return CharacterSVM(features, svm), X


def _counted(
    run: Run, corpus: Corpus, before: TfidfFeatures, studied: Documents, news: News
) -> tuple[TfidfFeatures, csr_array, csr_array]:
    """The tf-idf of all documents, and their vectors; and of texts not seen before, by the old one.

    Texts that were seen are not read again.
    """
    texts = news.texts(corpus, studied)
    wide, fresh = before.transform_all([corpus.texts[i] for i in texts.unread])
    seen, old = csr_array(studied.vectors[texts.seen]), run.train_vectors()
    unchanged = np.setdiff1d(np.arange(old.shape[0]), news.reworded)
    parts = (old if len(unchanged) == old.shape[0] else old[unchanged], seen, fresh)
    df = [np.bincount(part.indices, minlength=len(wide.terms_)) for part in parts]
    features = wide.recounted(np.sum(df, axis=0), len(corpus))
    own = texts.together(
        Renewal(before.idf_, features).rows(seen), Renewal(wide.idf_, features).rows(fresh)
    )
    X = Renewal(run.idf(), features).rows(old)
    X = with_documents(X, len(corpus), news.reworded, own)
    known = csr_array(fresh[:, : len(before.terms_)])
    return features, X, scale(known, np.ones(len(before.terms_), np.float32), before.paired())


def _encoded(
    run: Run,
    corpus: Corpus,
    before: Learned,
    studied: Documents,
    news: News,
    texts: Mapping[int, str],
    read: Mapping[int, NDArray[np.float32]],
    encoder: DualEncoder | None,
) -> LearnedVectors:
    """The vectors of the news, with labels described anew by ``texts``.

    ``read`` has those of some documents, by position, if the encoder has been loaded.
    """
    known: dict[str, NDArray[np.float32]] = {}
    if before.vectors is not None:
        digests = [x.digest for x in studied.verdicts.values()]
        known = dict(zip(digests, before.vectors.documents, strict=True))
    fitted = run.index("documents").vectors
    reworded = set(news.reworded.tolist())
    documents = {
        i: read.get(i, known.get(said.digest)) if i in reworded else fitted[i]
        for i, said in zip(news.places.tolist(), news.verdicts.values(), strict=True)
    }
    return encode_news(run, corpus, documents, texts, before.vectors, encoder)


def _described(
    run: Run,
    corpus: Corpus,
    features: TfidfFeatures,
    X: csr_array,
    weights: csr_array,
    places: NDArray[np.int64],
) -> Descriptions:
    """Keywords and descriptions of some labels by their weights."""
    settings = run.config().section("descriptions") | {"count_tokens": _token_count(run)}
    without = unspoken_terms(features, X, stop_words=settings.pop("stop_words"))
    defined = np.flatnonzero(corpus.label_counts[places] < settings.pop("definitions")).tolist()
    # What is broader may not be among these labels: its name stands for it.
    labels = LabelSet(
        replace(run.labels[int(j)], broader=run.labels.broader_names(int(j))) for j in places
    )
    return Descriptions.of(
        labels, weights, features.terms_, defined=defined, without=without, **settings
    )


def _token_count(run: Run) -> Callable[[str], int]:
    """What counted the tokens of descriptions in the fit, by the run's own copy of it."""
    if not run.has("encoder"):
        return token_count(run.config())
    from depl.neural.tokens import TOKENIZER, token_counter

    return token_counter(run.verified("encoder", TOKENIZER))
