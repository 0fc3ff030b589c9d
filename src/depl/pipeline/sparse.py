"""The stages of the sparse half."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from depl.core import storage
from depl.core.corpus import held_out_rows
from depl.pipeline.work import Work
from depl.run.config import Config
from depl.run.folder import FOLDS, Slice, write_matrix, write_slice
from depl.sparse.keywords import Descriptions, count_words
from depl.sparse.languages import AUTO
from depl.sparse.names import NameMatch, names_and_owners
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.tuning import choose_C


def make_features(work: Work) -> str:
    """Texts to tf-idf."""
    config = work.config
    features = TfidfFeatures(**config.section("features"), n_jobs=config.threads or None)
    X = features.fit_transform(work.run.train().texts)
    features.save(work.folder)
    write_matrix(work.folder / "X.safetensors", X)
    found = " (found)" if config.features.language == AUTO else ""
    return f"language {features.language_}{found}, {X.shape[1]:,} terms"


def make_linear(work: Work) -> None:
    """The SVM on all training documents."""
    X, Y = work.run.train_vectors(), work.run.Y
    settings = _svm_settings(work.config)
    grid = settings.pop("C_grid")
    if grid:
        settings["C"], scores = choose_C(X, Y, grid, work.config.validation, **settings)
        storage.write_json(work.folder / "choice.json", scores)
    OneVsAllSVM(**settings).fit(X, Y).save(work.folder)


def make_slice(work: Work) -> None:
    """Which training documents are held out."""
    config, n = work.config, work.run.Y.shape[0]
    rows = held_out_rows(n, config.validation, np.random.default_rng(config.seed))
    write_slice(work.folder, Slice(*rows))


def make_held_out(work: Work) -> None:
    """The SVM fitted without the held-out documents."""
    run = work.run
    settings = _svm_settings(work.config) | {"C": run.svm().C}
    del settings["C_grid"]
    rest = run.slice.rest
    OneVsAllSVM(**settings).fit(run.train_vectors()[rest], run.Y[rest]).save(work.folder)


def make_descriptions(work: Work) -> None:
    """Keywords, pseudo descriptions, and the vectors of label names."""
    run, config = work.run, work.config
    features = run.features()
    settings = config.section("descriptions")
    without = () if settings.pop("stop_words") else features.stop_terms()
    count: Callable[[str], int] = count_words
    if config.neural:
        from depl.neural.encoder_files import find_encoder
        from depl.neural.tokens import token_counter

        count = token_counter(find_encoder(config.encoder.name))
    # Only an encoder's held-out fit reads descriptions of its own.
    for fold in FOLDS if config.neural else ("final",):
        folder = work.folder if fold == "final" else work.folder / fold
        Descriptions.of(
            run.labels,
            run.svm(fold).weights_,
            features.terms_,
            without=without,
            count_tokens=count,
            **settings,
        ).save(folder)
    names, owner = names_and_owners(run.labels.names, [x.alt_names for x in run.labels])
    NameMatch(features.transform(names), owner).save(work.folder)


def _svm_settings(config: Config) -> dict[str, Any]:
    section = config.section("linear")
    return section | {"seed": config.seed, "n_threads": config.threads or None}
