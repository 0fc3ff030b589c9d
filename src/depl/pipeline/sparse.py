"""The stages of the sparse half, and the fusion that ends every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.sparse import csr_array

from depl.core import storage
from depl.fusion.fusion import Fusion
from depl.fusion.thresholds import Thresholds
from depl.pipeline.stages import Work
from depl.run.config import Config
from depl.run.folder import (
    THRESHOLDS,
    Rehearsal,
    Run,
    write_descriptions,
    write_features,
    write_linear,
    write_names,
    write_rehearsal,
)
from depl.sparse.descriptions import count_words, describe
from depl.sparse.keywords import Keywords, top_keywords
from depl.sparse.names import NameMatch, names_and_owners
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.tuning import choose_C, validation_slice

# Ranked a document when hard negatives are asked for: its own labels are among them.
HARD_DEPTH = 40


def make_features(work: Work) -> None:
    """Texts to tf-idf."""
    config = work.config
    features = TfidfFeatures(**config.section("features"), n_jobs=config.threads or None)
    write_features(work.folder, features, features.fit_transform(work.run.train().texts))


def make_linear(work: Work) -> None:
    """The SVM on all training documents."""
    X, Y = work.run.train_vectors(), work.run.Y
    settings = _svm_settings(work.config)
    grid = settings.pop("C_grid")
    if grid:
        settings["C"], scores = choose_C(X, Y, grid, work.config.validation, **settings)
        storage.write_json(work.folder / "choice.json", scores)
    write_linear(work.folder, OneVsAllSVM(**settings).fit(X, Y))


def make_descriptions(work: Work) -> None:
    """Keywords, pseudo descriptions, and the vectors of label names."""
    run = work.run
    features = run.features()
    keywords, texts = describe_labels(run, work.config, features, run.linear().weights_)
    write_descriptions(work.folder, run.labels, keywords, texts)
    names, owner = names_and_owners(run.labels.names, [x.alt_names for x in run.labels])
    write_names(work.folder, NameMatch(features.transform(names), owner))


def make_rehearsal(work: Work) -> None:
    """The sparse half once more, without the validation slice."""
    run, config = work.run, work.config
    X, Y = run.train_vectors(), run.Y
    held_out, rest = validation_slice(X.shape[0], config.validation, config.seed)
    settings = _svm_settings(config) | {"C": run.linear().C}
    del settings["C_grid"]
    svm = OneVsAllSVM(**settings).fit(X[rest], Y[rest])
    depth = config.fusion.depth
    rankings = {"svm": svm.rank(X[held_out], depth), "names": run.names().rank(X[held_out], depth)}
    write_rehearsal(work.folder, Rehearsal(held_out, rest, rankings))
    if config.neural:
        keywords, texts = describe_labels(run, config, run.features(), svm.weights_)
        write_descriptions(work.folder, run.labels, keywords, texts)
        storage.write_ranking(work.folder / "hard.safetensors", svm.rank(X[rest], HARD_DEPTH))


def make_fusion(work: Work) -> None:
    """What combines the parts' rankings, fitted on the validation slice."""
    run, config = work.run, work.config
    rehearsal = run.rehearsal()
    rankings = dict(rehearsal.rankings)
    if config.neural:
        from depl.pipeline.neural import rehearsed_rankings

        rankings |= rehearsed_rankings(run, config, rehearsal)
    fusion = Fusion(
        candidates=config.fusion.candidates,
        head_loss=config.fusion.head_loss,
        seed=config.seed,
        n_threads=config.threads or None,
    )
    known = run.Y[rehearsal.rest]
    counts = csr_array(known).sum(axis=0)
    carried = run.Y[rehearsal.held_out]
    fusion.fit(rankings, carried, counts, len(rehearsal.rest))
    fusion.save(work.folder)
    thresholds = Thresholds.fit(fusion.cross_fitted_, carried[fusion.fitted_on_], counts)
    thresholds.save(work.folder / THRESHOLDS)


def _svm_settings(config: Config) -> dict[str, Any]:
    section = config.section("linear")
    return section | {"seed": config.seed, "n_threads": config.threads or None}


def describe_labels(
    run: Run, config: Config, features: TfidfFeatures, weights: csr_array
) -> tuple[Keywords, list[str]]:
    """Keywords and pseudo descriptions of a run's labels by an SVM's weights."""
    section = config.descriptions
    keywords = top_keywords(weights, features.terms_, section.keywords)
    # A number such as 1408 tells the SVM much and a reader, or an encoder, nothing.
    readable = top_keywords(weights, features.terms_, section.keywords, numbers=section.numbers)
    words = [[term for term, _ in readable.of(i)] for i in range(len(run.labels))]
    count: Callable[[str], int] = count_words
    if config.neural:
        from depl.pipeline.neural import token_counter

        count = token_counter(config)
    return keywords, describe(run.labels, words, max_tokens=section.max_tokens, count_tokens=count)
