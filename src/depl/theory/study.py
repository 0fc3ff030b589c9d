"""Theorem 1 on real documents: margins, what keywords drop, and simulated projections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import CorpusError
from depl.core.indicator import indicator
from depl.core.progress import track
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures
from depl.theory.setting import Setting, projected_scores, squared_norms
from depl.theory.theorem import Floats

Numbers = NDArray[Any]

DIMENSIONS = (384, 768, 4096, 32_768, 262_144)  # MiniLM's, BERT's, a large model's, and beyond
_BLOCK = 64  # documents whose scores for all labels are held at once


@dataclass(frozen=True)
class Margins:
    """What was measured in one setting.

    A *set* is a document, a label p that it carries, and all M labels that it does not carry and
    the SVM ranks below p. From each set some *pairs* (p, n) are drawn, each with a projection of
    its own.

    Parameters
    ----------
    epsilon, delta, cosine : arrays of shape (n_sets, n_draws)
        Of the pairs: the margin, the larger of the two labels' drops, and the cosine of x and
        v_p - v_n.
    set_epsilon, set_delta : arrays of shape (n_sets,)
        Of the sets: the smallest margin and the largest drop.
    pair_errors, set_errors : arrays of shape (n_dimensions,)
        How many of the projections mis-order their pair, and any label of its set.
    """

    epsilon: Floats
    delta: Floats
    cosine: Floats
    set_epsilon: Floats
    set_delta: Floats
    pair_errors: NDArray[np.int64]
    set_errors: NDArray[np.int64]

    @property
    def gap(self) -> Floats:
        """Eps - delta of the pairs; the theorem applies where it is positive."""
        return self.epsilon - self.delta

    @property
    def set_gap(self) -> Floats:
        """Eps - delta of the sets."""
        return self.set_epsilon - self.set_delta


@dataclass(frozen=True)
class Study:
    """Both settings on the same documents, labels and pairs; ``sizes`` holds M of every set."""

    documents: int
    labels: int
    dimensions: tuple[int, ...]
    sizes: NDArray[np.int64]
    theorem: Margins
    keyword: Margins

    @property
    def pairs(self) -> int:
        """How many pairs were drawn, and projections in each setting and dimension."""
        return int(self.theorem.epsilon.size)


def measure_corpus(
    corpus: Corpus,
    *,
    labels: LabelSet,
    features: TfidfFeatures,
    svm: OneVsAllSVM,
    keywords: Sequence[Sequence[tuple[str, float]]],
    documents: int,
) -> Study:
    """Measure on documents of a corpus.

    Parameters
    ----------
    corpus : Corpus
        The documents and the labels that they carry.
    labels, features, svm
        Of a fitted run.
    keywords : sequence of sequences of (term, weight)
        The keywords of every label.
    documents : int
        How many documents to draw at random; all of them if there are no more.
    """
    corpus = corpus.aligned(labels)
    if documents < len(corpus):
        chosen = np.random.default_rng(0).choice(len(corpus), documents, replace=False)
        corpus = corpus.subset(np.sort(chosen))
    column = {term: i for i, term in enumerate(features.terms_)}
    return measure(
        features.transform(corpus.texts),
        corpus.Y[:, : len(labels)],
        svm.weights_,
        svm.bias_,
        indicator([[column[term] for term, _ in row] for row in keywords], len(column)),
    )


def measure(
    X: csr_array,
    Y: csr_array,
    weights: csr_array,
    bias: NDArray[np.floating],
    keywords: csr_array,
    *,
    dimensions: Sequence[int] = DIMENSIONS,
    draws: int = 20,
    seed: int = 0,
) -> Study:
    """Measure margins and simulate projections for all sets of these documents.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        Non-negative features.
    Y : csr_array of shape (n_documents, n_labels)
        Non-zero where a document carries a label.
    weights, bias, keywords
        As for ``Setting.of``. Labels with a bias of -inf, which the SVM cannot rank, are left out.
    dimensions : sequence of int
        Of the random projections. A large dimension costs no more than a small one.
    draws : int
        Pairs to draw from each set, each with a projection of its own.
    seed : int
        Of pairs and projections.
    """
    known = np.flatnonzero(np.isfinite(bias))
    weights, bias, keywords, Y = weights[known], bias[known], keywords[known], Y[:, known]
    theorem = Setting.of(X, weights, bias, keywords, shifted=True)
    keyword = Setting.of(X, weights, bias, keywords, shifted=False)
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    measured: tuple[list[list[Numbers]], list[list[Numbers]]] = ([], [])
    starts = range(0, X.shape[0], _BLOCK)
    for start in track(starts, "projections", total=len(starts)):
        rows = slice(start, start + _BLOCK)
        full, kept = theorem.scores(rows), theorem.keyword_scores(rows)
        alone = keyword.keyword_scores(rows)
        # In the keyword setting the weights are the keywords, which therefore drop nothing.
        scores = ((full, kept), (alone, alone))
        for i in range(len(full)):
            for case in _sets(full[i], Y[[start + i]].indices, draws, rng):
                sizes.append(len(case.below))
                for out, setting, (w, v) in zip(measured, (theorem, keyword), scores, strict=True):
                    x = setting.X[[start + i]]
                    margins = _margins(setting.V, case, w[i], v[i])
                    out.append([*margins, *_errors(setting.V, x, case, dimensions, rng)])
    if not sizes:
        raise CorpusError(
            f"There is no margin to measure: the run ranks none of the labels that the documents "
            f"carry above another label (number of documents: {X.shape[0]}). Give more documents, "
            f"or the corpus that the run was fitted on."
        )
    shape = (X.shape[0], len(known), tuple(dimensions))
    return Study(*shape, np.array(sizes), _gathered(measured[0]), _gathered(measured[1]))


class _Set(NamedTuple):
    """A label that a document carries, all wrong labels ranked below it, and those drawn."""

    positive: int
    below: NDArray[np.intp]
    drawn: NDArray[np.intp]


def _sets(
    scores: Floats, carried: NDArray[np.integer], draws: int, rng: np.random.Generator
) -> Iterator[_Set]:
    """One document's labels that are ranked above any label it does not carry."""
    negative = np.ones(len(scores), bool)
    negative[carried] = False
    for p in carried:
        below = np.flatnonzero(negative & (scores < scores[p]))
        if len(below):
            yield _Set(int(p), below, rng.choice(below, draws))


def _margins(V: csr_array, case: _Set, full: Floats, kept: Floats) -> list[Numbers]:
    """Epsilon, delta and cosine of the drawn pairs; epsilon and delta of the set."""
    p, below, drawn = case
    dropped = full - kept
    away = V[np.full(len(drawn), p)] - V[drawn]
    keyword = kept[p] - kept[drawn]
    length = np.sqrt(squared_norms(away))
    # Two labels without keywords and with the same bias: no projection can tell them apart.
    cosine = np.divide(keyword, length, out=np.zeros_like(keyword), where=length > 0)
    return [
        full[p] - full[drawn],
        np.maximum(dropped[p], dropped[drawn]),
        cosine,
        full[p] - full[below].max(),
        np.maximum(dropped[p], dropped[below].max()),
    ]


def _errors(
    V: csr_array, x: csr_array, case: _Set, dimensions: Sequence[int], rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """How many projections mis-order the pair drawn for them, and any pair of the set."""
    p, below, drawn = case
    n = len(drawn)
    projections = list(projected_scores(V, x, dimensions, n, rng))
    pair = [np.sum(s[drawn, np.arange(n)] >= s[p]) for s in projections]
    whole = [np.sum(s[below].max(axis=0) >= s[p]) for s in projections]
    return np.array(pair), np.array(whole)


def _gathered(rows: list[list[Numbers]]) -> Margins:
    """The measurements of all sets in one ``Margins``; errors are added up."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    columns[-2:] = [errors.sum(axis=0) for errors in columns[-2:]]
    return Margins(*columns)
