"""The last stage of every run: the rankings of all parts become one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.core.scratch import column_counts, rows_of
from depl.fusion.fusion import Fusion
from depl.fusion.thresholds import Thresholds
from depl.labels.simulation import simulate_newcomers
from depl.pipeline.work import Work
from depl.run.folder import Run, in_document_order, write_facts
from depl.run.state import load_attention, load_reranker
from depl.run.titles import Titles, read_titles
from depl.sparse.name_use import NameUse
from depl.sparse.neighbours import WORD_NEIGHBOURS, WordNeighbours
from depl.sparse.tfidf import TfidfFeatures
from depl.sparse.weighting import as_new

_MOST = 100_000  # documents in which names are counted: more tell hardly more


def make_fusion(work: Work) -> None:
    """The fusion, the thresholds and what added labels need, fitted on the held-out documents."""
    run, config = work.run, work.config
    held_out, fold = run.slice.held_out, run.slice.fold[run.slice.held_out]
    rankings, counts = held_out_rankings(work), held_out_counts(run)
    if not run.labels_are_listed:
        rankings = {x: _of_known_labels(ranking, counts, fold) for x, ranking in rankings.items()}
    fusion = Fusion(
        candidates=config.fusion.candidates,
        head_loss=config.fusion.head_loss,
        seed=config.seed,
        n_threads=config.threads or None,
    )
    Y, n_train = run.Y[held_out], len(run.slice.rest())
    facts, of_folds = label_facts(run, titles=read_titles(rankings))
    fusion.fit(rankings, Y, counts, n_train, fold, of_folds)
    fusion.save(work.folder)
    write_facts(work.folder, facts)
    some = fusion.fitted_on_
    usual = counts_of_all(run, counts)
    Thresholds.fit(fusion.cross_fitted_, Y[some], usual, fold[some]).save(work.folder)
    simulate_newcomers(run, rankings["svm"], seed=config.seed).save(work.folder)


def held_out_rankings(work: Work) -> dict[str, Ranking]:
    """What every part, fitted without the held-out documents, says of them."""
    run, config = work.run, work.config
    held_out, depth = run.slice.held_out, config.fusion.depth
    texts, fold = run.train_texts().take(held_out), run.slice.fold[held_out]
    features, names = run.features(), run.names()
    known = known_terms(run, features)

    def by_words(texts: Sequence[str], X: csr_array, fold: NDArray[np.int64]) -> dict[str, Ranking]:
        svm = run.rank_held_out(X, fold, depth, work.executor)
        return {"svm": svm, **names.parts(texts, X, features, depth)}

    X = as_new(run.train_vectors()[held_out], fold, known, features.paired())
    rankings = by_words(texts, X, fold)
    if run.Y.shape[0] <= config.neighbours.documents:
        rankings[WORD_NEIGHBOURS] = _votes_of_others(work, X, fold)
    by_characters = run.held_out_characters()
    if by_characters is not None:
        rankings["characters"] = by_characters.top(depth)
    retriever = None
    if config.neural:
        from depl.pipeline import neural

        retriever = neural.held_out_retriever(work)
        rankings |= neural.held_out_rankings(work, retriever.retriever)
    titles = Titles.ranked(texts, config.fusion.titles)
    if titles.texts:
        of_titles = fold[titles.rows]
        X = as_new(features.transform(titles.texts), of_titles, known, features.paired())
        by_title = by_words(titles.texts, X, of_titles)
        if retriever is not None:
            by_title["name retrieval"] = retriever.rank_by_name(titles.texts, depth)
        rankings |= titles.parts(by_title)
    if config.attends:
        attention = load_attention(run, "held_out")
        rankings["attention"] = attention.rank(texts, rankings.values(), depth)
    if config.reranks:
        reranker = load_reranker(run)
        described = run.descriptions("held_out").texts
        rankings["reranker"] = reranker.rank(texts, rankings.values(), described, depth)
    return rankings


def _votes_of_others(work: Work, X: csr_array, fold: NDArray[np.int64]) -> Ranking:
    """Documents held out in these folds, each ranked by the votes of those that are not."""
    run, voting = work.run, work.config.neighbours
    every, ranked = run.train_vectors(), []
    for f in np.unique(fold).tolist():
        rest = run.slice.rest(f)
        others = WordNeighbours(
            rows_of(every, rest), run.Y[rest], k=voting.k, sharpness=voting.sharpness
        )
        ranked.append(others.rank(X[fold == f], work.config.fusion.depth, work.executor))
    return in_document_order(ranked, fold)


def label_facts(run: Run, *, titles: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How often names of labels are in training documents, and in titles if these are ranked.

    Returns
    -------
    facts : array of shape (n_labels, n_facts)
        Of all training documents.
    of_folds : array of shape (n_folds, n_labels, n_facts)
        Of those that each fold is fitted on.
    """
    names, (n, n_labels) = run.names(), run.Y.shape
    if names.weight is None:  # a run of an earlier version
        nothing = np.empty((1 + run.slice.n_folds, n_labels, 0), np.float32)
        return nothing[0], nothing[1:]
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(np.int64))
    kinds = [rows_of(run.train_vectors(), rows)]
    if titles:
        texts = run.train_texts().take(rows)
        kinds.append(Titles.of(texts).vectors(run.features()))
    found = []
    for X in kinds:
        whole = NameUse.of(names, X, run.Y[rows])
        use = [whole]
        for fold in range(run.slice.n_folds):
            mine = np.flatnonzero(run.slice.fold[rows] == fold)
            use.append(whole.without(NameUse.of(names, X[mine], run.Y[rows[mine]])))
        found.append(np.stack([x.facts() for x in use]))
    every = np.concatenate(found, axis=2)
    return every[0], every[1:]


def _of_known_labels(
    ranking: Ranking, counts: NDArray[np.int64], fold: NDArray[np.int64]
) -> Ranking:
    """Without labels that no other document of a fold carries.

    Where labels come from the documents, such a label is known only because a held-out document
    carries it; so a name that is found would seem to be right far too often. With 1,200 records of
    TIB-en, 80 % of the suggestions above a threshold were promised to be right, and 61 % were; 79 %
    are without such labels (``experiments/own_labels.py``).
    """
    return ranking.keep(counts[fold[:, None], ranking.indices] > 0)


def known_terms(run: Run, features: TfidfFeatures) -> NDArray[np.bool_]:
    """Which terms those documents know that each fold is fitted on, or the names of labels."""
    X, named = run.train_vectors(), column_counts(run.names().names) > 0
    rests = [run.slice.rest(fold) for fold in range(run.slice.n_folds)]
    return np.stack([features.known(column_counts(rows_of(X, x))) | named for x in rests])


def counts_of_all(run: Run, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of all training documents may be expected to carry each label, by what folds know.

    Of a label with 80 documents in two thirds of them, all have 120, and thresholds are for bands
    of these. With 1,000 documents of debtags, of labels with 10 to 99 and a promised precision of
    0.8, 76.6 % of the suggestions were right, and with these counts 80.1 %.
    """
    sizes = np.array([len(run.slice.rest(fold)) for fold in range(run.slice.n_folds)])
    of_all: NDArray[np.int64] = np.rint(counts * (run.Y.shape[0] / sizes[:, None])).astype(np.int64)
    return of_all


def held_out_counts(run: Run) -> NDArray[np.int64]:
    """How many documents of those that each fold is fitted on carry each label."""
    rests = [run.slice.rest(fold) for fold in range(run.slice.n_folds)]
    return np.stack([np.bincount(run.Y[x].indices, minlength=run.Y.shape[1]) for x in rests])
