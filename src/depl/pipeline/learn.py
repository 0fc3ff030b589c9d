"""Learning from feedback: the labels that it is about are learnt again, the others stay.

Every call continues from what was learnt before. The tf-idf counts the documents of the feedback
and takes their words as terms; by it, names are weighed again. A label that many documents carry
takes in those that have come since; one that few carry, and one whose earlier documents are not
what they were, is solved on all of them. The SVM on characters, where there is one, learns in the
same way. Its sequences are those of the fit, and so are the fusion and the thresholds.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import RunError
from depl.labels.feedback import FeedbackStore
from depl.labels.feedback_corpus import Taught, taught
from depl.pipeline.sparse import unspoken_terms
from depl.run.folder import Run
from depl.run.learned import Documents, Learned, Lesson, Verdicts
from depl.sparse.characters import CharacterSVM
from depl.sparse.keywords import Descriptions
from depl.sparse.names import NameMatch
from depl.sparse.renewal import Renewal
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.updating import solve_again, take_in, with_rows

# A label of fewer documents is solved on all of them. If it took the new ones in, nothing would
# keep its bias from rising: on TIB-en, where most labels are so rare, the SVM then gained nothing
# from 136 documents (P@5 5.0; fitted again 5.5), and with this 5.6.
_FEW = 10


def learn(run: Run) -> tuple[Lesson, Taught]:
    """Learn from all feedback on a run, and use what was learnt from now on.

    Returns
    -------
    lesson, taught : Lesson, Taught
        What was learnt, and what the feedback makes of the training documents. Where there is
        nothing new since the last time, no label was learnt, and the run stays as it is.
    """
    start = time.perf_counter()
    if run.config().neural:
        raise RunError(
            f"{run.path} has an encoder, and only runs of the sparse recipe can learn. Train it "
            f"again with its feedback: depl feedback {run.path} export FOLDER --with-training"
        )
    run.verified("descriptions")
    with run.locked():
        base = run.train()
        found = taught(FeedbackStore(run.path).documents(), run.labels, base, keep_all=True)
        number = run.learned.current()
        before, studied = _before(run, number)
        news = _news(base, found, studied.verdicts)
        if not len(news.labels) and not number:
            raise RunError(
                f"There is nothing to learn: no feedback on {run.path} says anything else than its "
                f"training documents. `depl feedback {run.path} add` gives some."
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
            lesson = replace(lesson, seconds=round(time.perf_counter() - start, 2))
            run.learned.keep(learned, studied, lesson)
    return lesson, found


def _before(run: Run, number: int) -> tuple[Learned, Documents]:
    """What was learnt until now, and from which documents of feedback."""
    if number:
        return run.learned.read(number, run.threads), run.learned.documents(number)
    counts, n = run.train_counts()
    features = run.features()
    none = np.empty(0, np.int64), Descriptions([], [])
    fitted = Learned(features, run.svm(), run.names(), *none, counts, n, run.characters())
    return fitted, Documents({}, csr_array((0, len(features.terms_)), dtype=np.float32))


class _News(NamedTuple):
    """What has changed since the last time.

    Parameters
    ----------
    verdicts : dict of str to Verdicts
        All documents that are other than in training, by id.
    places : array
        Their positions in the corpus.
    reworded : array
        The positions of those whose text is other than in training, or new.
    appended : array
        The positions of documents that were not there the last time.
    again : array
        Labels to be solved on all documents.
    labels : array
        These, and those that take the appended documents in.
    """

    verdicts: dict[str, Verdicts]
    places: NDArray[np.int64]
    reworded: NDArray[np.int64]
    appended: NDArray[np.int64]
    again: NDArray[np.int64]
    labels: NDArray[np.int64]


def _news(base: Corpus, found: Taught, studied: dict[str, Verdicts]) -> _News:
    """What the feedback says now, and other than the last time."""
    corpus, n = found.corpus, len(base)
    relabelled = csr_array(base.Y - corpus.Y[:n])
    relabelled.eliminate_zeros()
    other = [i for i in range(n) if base.texts[i] != corpus.texts[i]]
    reworded = np.array([*other, *range(n, len(corpus))], np.int64)
    places = np.union1d(reworded, np.flatnonzero(np.diff(relabelled.indptr)))
    in_training = {id: i for i, id in enumerate(base.ids)}

    def fitted(id: str) -> Verdicts | None:
        i = in_training.get(id)
        return None if i is None else _verdicts(base, i)

    now = {corpus.ids[i]: _verdicts(corpus, i, found.rejected.get(i)) for i in places.tolist()}
    appended, joined, again = [], set[int](), set[int]()
    for place, (id, said) in zip(places.tolist(), now.items(), strict=True):
        had = studied.get(id) or fitted(id)
        if had is None:
            appended.append(place)
            joined |= {*said.carried, *said.rejected}
        else:
            again |= _differing(had, said)
    for id, had in studied.items():
        if id not in now:  # it was undone
            again |= _differing(had, fitted(id) or Verdicts("", (), ()))
    return _News(
        now,
        places,
        reworded,
        np.array(appended, np.int64),
        np.array(sorted(again), np.int64),
        np.array(sorted(again | joined), np.int64),
    )


def _verdicts(corpus: Corpus, i: int, rejected: set[int] | None = None) -> Verdicts:
    carried = corpus.Y.indices[corpus.Y.indptr[i] : corpus.Y.indptr[i + 1]]
    digest = hashlib.sha256(corpus.texts[i].encode()).hexdigest()
    return Verdicts(digest, tuple(sorted(carried.tolist())), tuple(sorted(rejected or ())))


def _differing(had: Verdicts, said: Verdicts) -> set[int]:
    """The labels that a document is another example of, or against, than before."""
    if had.digest != said.digest:
        return {*had.carried, *had.rejected, *said.carried, *said.rejected}
    return (set(had.carried) ^ set(said.carried)) | (set(had.rejected) ^ set(said.rejected))


def _learned(
    run: Run, corpus: Corpus, before: Learned, studied: Documents, news: _News
) -> tuple[Learned, Documents]:
    """What is known with the news, and from which documents."""
    features, X = _counted(run, corpus, before.features, studied, news)
    renewal = Renewal(before.features, features)
    svm = before.svm.over_other_terms(renewal.weights)
    svm = _updated(svm, X, corpus.Y, before.train_counts, news)
    names = NameMatch(
        renewal.rows(before.names.names),
        before.names.owner,
        None if before.names.weight is None else features.word_weights(),
    )
    own = _described(run, corpus, features, X, csr_array(svm.weights_[news.labels]), news.labels)
    older = np.flatnonzero(~np.isin(before.labels, news.labels))
    labels = np.concatenate([before.labels[older], news.labels])
    described = Descriptions(
        [*(before.descriptions.texts[i] for i in older), *own.texts],
        [*(before.descriptions.keywords[i] for i in older), *own.keywords],
    )
    characters = _by_characters(run, corpus, before, news)
    counts = corpus.label_counts, len(corpus)
    learned = Learned(features, svm, names, labels, described, *counts, characters)
    return learned, Documents(news.verdicts, csr_array(X[news.places]))


def _updated(
    svm: OneVsAllSVM, X: csr_array, Y: csr_array, counts: NDArray[np.int64], news: _News
) -> OneVsAllSVM:
    """An SVM that knows the news; X, Y are all documents, and the counts those from before."""
    again = np.union1d(news.again, news.labels[counts[news.labels] < _FEW])
    joined = np.setdiff1d(news.labels, again)
    if len(again):
        svm = solve_again(svm, again, X, csr_array(Y[:, again]))
    if len(joined):
        new = csr_array(Y[news.appended][:, joined])
        svm = take_in(svm, joined, csr_array(X[news.appended]), new, counts[joined])
    return svm


def _by_characters(run: Run, corpus: Corpus, before: Learned, news: _News) -> CharacterSVM | None:
    """The SVM on characters with the news; None where the run has none."""
    if before.characters is None:
        return None
    features, X = before.characters.features, run.character_vectors()
    room = csr_array((len(corpus) - X.shape[0], X.shape[1]), dtype=X.dtype)
    own = features.transform([corpus.texts[i] for i in news.reworded])
    X = with_rows(csr_array(vstack([X, room], format="csr")), news.reworded, own)
    svm = _updated(before.characters.svm, X, corpus.Y, before.train_counts, news)
    return CharacterSVM(features, svm)


def _counted(
    run: Run, corpus: Corpus, before: TfidfFeatures, studied: Documents, news: _News
) -> tuple[TfidfFeatures, csr_array]:
    """The tf-idf of all documents, and their vectors; texts that were seen are not read again."""
    kept = {x.digest: row for row, x in enumerate(studied.verdicts.values())}
    digests = [news.verdicts[corpus.ids[i]].digest for i in news.reworded]
    unread = [i for i, x in enumerate(digests) if x not in kept]
    wide, fresh = before.transform_all([corpus.texts[news.reworded[i]] for i in unread])
    seen = csr_array(studied.vectors[[kept[x] for x in digests if x in kept]])
    old = run.train_vectors()
    unchanged = np.setdiff1d(np.arange(old.shape[0]), news.reworded)
    parts = (old if len(unchanged) == old.shape[0] else old[unchanged], seen, fresh)
    df = [np.bincount(part.indices, minlength=len(wide.terms_)) for part in parts]
    features = wide.recounted(np.sum(df, axis=0), len(corpus))
    X = Renewal(run.features(), features).rows(old)
    room = csr_array((len(corpus) - X.shape[0], X.shape[1]), dtype=X.dtype)
    rows = [Renewal(before, features).rows(seen), Renewal(wide, features).rows(fresh)]
    order = np.argsort([*(i for i, x in enumerate(digests) if x in kept), *unread])
    own = csr_array(csr_array(vstack(rows, format="csr"))[order])
    return features, with_rows(csr_array(vstack([X, room], format="csr")), news.reworded, own)


def _described(
    run: Run,
    corpus: Corpus,
    features: TfidfFeatures,
    X: csr_array,
    weights: csr_array,
    places: NDArray[np.int64],
) -> Descriptions:
    """Keywords and descriptions of some labels by their weights."""
    settings = run.config().section("descriptions")
    without = unspoken_terms(features, X, stop_words=settings.pop("stop_words"))
    defined = np.flatnonzero(corpus.label_counts[places] < settings.pop("definitions")).tolist()
    # What is broader may not be among these labels: its name stands for it.
    labels = LabelSet(
        replace(run.labels[int(j)], broader=run.labels.broader_names(int(j))) for j in places
    )
    return Descriptions.of(
        labels, weights, features.terms_, defined=defined, without=without, **settings
    )
