"""Learning from feedback: the labels that it is about are solved again, the others stay.

The terms, the fusion and the thresholds are those of the fit. A label is solved on all documents,
old and new, as the fit would solve it on these terms; documents that are new count as negatives of
the affected labels only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import RunError
from depl.labels.feedback import DecidedDocument, FeedbackStore
from depl.labels.feedback_corpus import Taught, taught
from depl.pipeline.sparse import unspoken_terms
from depl.run.folder import Run
from depl.run.learned import Learned, Lesson
from depl.sparse.keywords import Descriptions
from depl.sparse.svm import OneVsAllSVM


def learn(run: Run) -> tuple[Lesson, Taught]:
    """Learn from all feedback on a run, and use what was learnt from now on.

    Returns
    -------
    lesson, taught : Lesson, Taught
        What was learnt, and what the feedback makes of the training documents.
    """
    start = time.perf_counter()
    if run.config().neural:
        raise RunError(
            f"{run.path} has an encoder, and only runs of the sparse recipe can learn. Train it "
            f"again with its feedback: depl feedback {run.path} export FOLDER --with-training"
        )
    run.verified("descriptions")
    with run.locked():
        decided = FeedbackStore(run.path).documents()
        base = run.train()
        found = taught(decided, run.labels, base, keep_all=True)
        changed, affected = _differences(base, found.corpus, decided)
        if not len(affected):
            raise RunError(
                f"There is nothing to learn: no feedback on {run.path} says anything else than its "
                f"training documents. `depl feedback {run.path} add` gives some."
            )
        learned = _solved(run, found.corpus, changed, affected)
        lesson = Lesson(
            stages=run.stages_version(),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            documents=len(changed),
            labels=len(affected),
            seconds=round(time.perf_counter() - start, 2),
        )
        run.learned.keep(learned, lesson)
    return lesson, found


def _differences(
    base: Corpus, corpus: Corpus, decided: Sequence[DecidedDocument]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of documents that are new or other than in training, and of labels they concern."""
    n = len(base)
    reworded = [i for i in range(n) if base.texts[i] != corpus.texts[i]]
    fresh = np.array([*reworded, *range(n, len(corpus))], dtype=np.int64)
    relabelled = csr_array(base.Y - corpus.Y[:n])
    relabelled.eliminate_zeros()
    changed = np.union1d(fresh, np.flatnonzero(np.diff(relabelled.indptr)))
    touched = {corpus.ids[i] for i in changed} | {corpus.texts[i] for i in changed}
    # What was rejected although no training document carries it there is a hard negative.
    rejected = [
        corpus.labels.get(label)
        for document in decided
        if document.id in touched or document.text in touched
        for label in document.rejected
    ]
    labels = np.concatenate([corpus.Y[fresh].indices, relabelled.indices, rejected])
    affected = np.unique(labels.astype(np.int64))
    return changed, affected[affected >= 0]


def _solved(
    run: Run, corpus: Corpus, changed: NDArray[np.int64], affected: NDArray[np.int64]
) -> Learned:
    """The run's SVM and descriptions with some labels solved again on the new documents."""
    features, old = run.features(), run.train_vectors()
    room = csr_array((len(corpus) - old.shape[0], old.shape[1]), dtype=old.dtype)
    X = csr_array(vstack([old, room], format="csr"))
    X = _with_rows(X, changed, features.transform([corpus.texts[i] for i in changed]))
    svm = _with_rows_of(run.svm(), affected, X, csr_array(corpus.Y[:, affected]))
    settings = run.config().section("descriptions")
    without = unspoken_terms(features, X, stop_words=settings.pop("stop_words"))
    defined = np.flatnonzero(corpus.label_counts[affected] < settings.pop("definitions")).tolist()
    # What is broader may not be among the affected ones: its name stands for it.
    labels = LabelSet(
        replace(run.labels[int(j)], broader=run.labels.broader_names(int(j))) for j in affected
    )
    weights = csr_array(svm.weights_[affected])
    own = Descriptions.of(
        labels, weights, features.terms_, defined=defined, without=without, **settings
    )
    described = run.descriptions()
    for place, text, keywords in zip(affected.tolist(), own.texts, own.keywords, strict=True):
        described.texts[place], described.keywords[place] = text, keywords
    return Learned(svm, described, corpus.label_counts, len(corpus))


def _with_rows_of(
    svm: OneVsAllSVM, affected: NDArray[np.int64], X: csr_array, Y: csr_array
) -> OneVsAllSVM:
    """The SVM with the rows of some labels solved again."""
    settings = {name: getattr(svm, name) for name in ("loss", "C", "cull", "rare_bonus", "tol")}
    own = OneVsAllSVM(**settings, seed=svm.seed, n_threads=svm.n_threads).fit(X, Y)
    new = copy(svm)
    new.weights_ = _with_rows(svm.weights_, affected, own.weights_)
    new.bias_, new.gap_ = svm.bias_.copy(), svm.gap_.copy()
    new.bias_[affected], new.gap_[affected] = own.bias_, own.gap_
    return new


def _with_rows(matrix: csr_array, places: NDArray[np.int64], rows: csr_array) -> csr_array:
    """The matrix with other rows at some places."""
    source = np.arange(matrix.shape[0])
    source[places] = matrix.shape[0] + np.arange(len(places))
    return csr_array(csr_array(vstack([matrix, rows], format="csr"))[source])
