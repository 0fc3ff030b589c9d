"""The stages of the sparse half."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.aside import held_out_folds
from depl.core.corpus import LabelSet
from depl.core.scratch import column_counts, rows_of
from depl.core.tensors import write_matrix
from depl.pipeline.work import Work
from depl.run.config import Config
from depl.run.folder import (
    FOLDS,
    Run,
    in_document_order,
    write_characters,
    write_slice,
)
from depl.sparse.characters import DEPTH, LEAST_DOCUMENTS, CharacterFeatures, CharacterSVM
from depl.sparse.keywords import Descriptions, count_words
from depl.sparse.label_tree import choose_solver, linear_model
from depl.sparse.languages import AUTO
from depl.sparse.names import NameMatch, names_and_owners
from depl.sparse.siblings import sibling_groups
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.tuning import choose_C
from depl.sparse.weighting import as_new

# Documents that the fusion learns from, if there are as many: about a tenth of TIB-en. A tenth of a
# small corpus is too few to learn from: on 2,266 documents of debtags the fusion lost 3 points of
# P@1 against its own SVM, and gained 0.7 once all of them were held out, a third at a time.
_ENOUGH = 4_000
_FOLDS = 3  # SVMs to fit for them at most


def make_features(work: Work) -> str:
    """Texts to tf-idf."""
    config = work.config
    features = TfidfFeatures(**config.section("features"), n_jobs=config.threads or None)
    names, _ = _names_and_owners(work.run.labels)
    X = features.fit_transform(work.run.train_texts(), names, work.executor)
    features.save(work.folder)
    write_matrix(work.folder / "X.safetensors", X)
    found = " (detected)" if config.features.language == AUTO else ""
    return f"language {features.language_}{found}, {X.shape[1]:,} terms"


def make_linear(work: Work) -> str:
    """The SVM on all training documents; says so where it is not solved."""
    X, Y = work.run.train_vectors(), work.run.Y
    settings = _svm_settings(work.config)
    grid = settings.pop("C_grid")
    if settings["solver"] == "auto":
        settings["solver"] = choose_solver(X, Y)
    if grid:
        settings["C"], scores = choose_C(
            X, Y, grid, work.config.validation, executor=work.executor, **settings
        )
        storage.write_json(work.folder / "choice.json", scores)
    svm = linear_model(**settings).fit(X, Y, work.executor)
    svm.save(work.folder)
    return svm.unsolved()


def make_slice(work: Work) -> None:
    """Which training documents are held out: in one fold, or in several where they are few."""
    config, n = work.config, work.run.Y.shape[0]
    size = config.validation * n
    n_folds = config.folds or (1 if config.neural else min(_FOLDS, math.ceil(_ENOUGH / size)))
    if n_folds > 1:
        size = max(size, min(n, _ENOUGH) / n_folds)
    groups = sibling_groups(work.run.train_vectors())
    write_slice(
        work.folder, held_out_folds(groups, size, n_folds, np.random.default_rng(config.seed))
    )


def make_held_out(work: Work) -> None:
    """The SVM fitted without the documents that are held out, for each fold."""
    run = work.run
    settings = _same_settings(work)
    X, Y = run.train_vectors(), run.Y
    for fold in range(run.slice.n_folds):
        rest = run.slice.rest(fold)
        svm = linear_model(**settings).fit(rows_of(X, rest), Y[rest], work.executor)
        svm.save(work.folder / str(fold))


def make_characters(work: Work) -> str:
    """The SVM on characters, and what others, without the documents held out, say of those."""
    run, n = work.run, work.run.Y.shape[0]
    if n > work.config.characters.documents:
        return f"left out: more than {work.config.characters.documents:,} documents"
    features = CharacterFeatures()
    X, Y = features.fit_transform(run.train_texts()), run.Y
    if not X.nnz:
        return "left out: no sequence of four characters is in two documents"
    settings = _same_settings(work)

    def fitted(rows: NDArray[np.int64]) -> OneVsAllSVM:
        return linear_model(**settings).fit(X[rows], Y[rows], work.executor)

    rankings = []
    for fold in range(run.slice.n_folds):
        rest, mine = run.slice.rest(fold), np.flatnonzero(run.slice.fold == fold)
        known = column_counts(rows_of(X, rest)) >= LEAST_DOCUMENTS
        held_out = as_new(X[mine], np.zeros(len(mine), np.int64), known[None])
        rankings.append(fitted(rest).rank(held_out, DEPTH, work.executor))
    held_out_ranking = in_document_order(rankings, run.slice.fold[run.slice.held_out])
    final = CharacterSVM(features, fitted(np.arange(n)))
    write_characters(work.folder, final, X, held_out_ranking)
    return f"{X.shape[1]:,} sequences"


def make_descriptions(work: Work) -> None:
    """Keywords, pseudo descriptions, and the vectors of label names."""
    run, config = work.run, work.config
    features = run.features()
    describe = description_of(run, config, features)
    # Only an encoder's held-out fit reads descriptions of its own.
    for fold in FOLDS if config.neural else ("final",):
        folder = work.folder if fold == "final" else work.folder / fold
        describe(run.svm(fold).weights_).save(folder)
    names, owner = _names_and_owners(run.labels)
    order = features.words_in_order(names)
    NameMatch(features.transform(names), owner, features.word_weights(), order).save(work.folder)


def description_of(
    run: Run, config: Config, features: TfidfFeatures
) -> Callable[[csr_array], Descriptions]:
    """What describes all labels of a run by the weights of an SVM."""
    settings = config.section("descriptions")
    without = unspoken_terms(features, run.train_vectors(), stop_words=settings.pop("stop_words"))
    defined = np.flatnonzero(run.train_counts()[0] < settings.pop("definitions"))
    return partial(
        Descriptions.of,
        run.labels,
        terms=features.terms_,
        defined=defined.tolist(),
        without=without,
        count_tokens=token_count(config),
        **settings,
    )


def token_count(config: Config) -> Callable[[str], int]:
    """What counts the tokens of descriptions: the encoder's tokenizer, or words without one."""
    if not config.neural:
        return count_words
    from depl.neural.encoder_files import find_encoder
    from depl.neural.tokens import token_counter

    return token_counter(find_encoder(config.encoder.name))


def unspoken_terms(features: TfidfFeatures, X: csr_array, *, stop_words: bool) -> set[str]:
    """Terms that describe no label; X are the vectors of the training documents."""
    # A label that is described by a word of a single document finds no other by it.
    once = column_counts(X) <= 1
    without = {features.terms_[term] for term in np.flatnonzero(once)}
    return without if stop_words else without | set(features.stop_terms())


def _names_and_owners(labels: LabelSet) -> tuple[list[str], NDArray[np.int64]]:
    return names_and_owners(labels.names, [label.alt_names for label in labels])


def _same_settings(work: Work) -> dict[str, Any]:
    """The settings of a further SVM: those of the first, with what was chosen for it."""
    svm = work.run.svm()
    settings = _svm_settings(work.config) | {"C": svm.C, "solver": svm.solver}
    del settings["C_grid"]
    return settings


def _svm_settings(config: Config) -> dict[str, Any]:
    section = config.section("linear")
    return section | {"seed": config.seed, "n_threads": config.threads or None}
