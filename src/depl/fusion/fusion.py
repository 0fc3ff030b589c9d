"""Combines several rankings into one, with probabilities.

Each part (the SVM, a classifier head, retrieval, neighbours, label names ...) knows something that
the others do not, and its scores are in its own units. On documents that none of them was trained
on, boosted trees learn from the scores and ranks that the parts give a label whether the document
carries it. A label's training count is a feature, too, because it says which part to trust.

The features of a (document, label) pair (``candidates``) are, for every part, the label's score and
its rank by that part, both missing where the part does not list it, the log of 1 + its training
count, the best score that each part gives the document at all (where documents carry one label
each, it matters how far a label is behind the best), and further facts about the label. A better
score or rank never lowers the
probability; this constraint on the trees found more of the rare labels (PSP@5 73.0 against 72.7 on
a slice of 4,500 EURLEX57K documents with seven parts). Exact scores instead of missing ones were no
better there.

In the order of the ranking rare labels are favoured, as far as it costs the frequent ones almost
nothing, and improbable ones may follow in an order of their own (``rare``): on EURLEX57K, where the
sparse half alone gives up 0.1 points of P@5, the macro-F1@5 of labels with 1 to 9 training
documents rises from 35.2 to 39.0. The probabilities are those before favouring, so that they are
calibrated for rare and for frequent labels; a rare label may therefore precede one that is more
probable.

Whether all this is an improvement is measured on the same documents by cross-fitting: a document is
scored by trees that did not see it. If a single part is better, ``rank`` uses that part.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, logit

from depl.core.errors import ConfigError, DeplError, NotFittedError, RunError
from depl.core.indicator import carried
from depl.core.ranking import Ranking
from depl.core.storage import read_json, write_json
from depl.core.tensors import read_tensors, write_tensors
from depl.core.workers import map_in_threads
from depl.evaluation.metrics import (
    Floats,
    Hits,
    inverse_propensities,
    precision_and_psp,
)
from depl.fusion.by_count import FURTHER, ByCount
from depl.fusion.calibration import calibration_error, logistic_line, probabilities
from depl.fusion.candidates import candidate_pairs, n_features
from depl.fusion.checks import check_rankings, checked_facts
from depl.fusion.growing import cross_fit
from depl.fusion.leaves import MOST_LEAVES
from depl.fusion.rare import CUTS, Order, choose_order, rare_labels
from depl.fusion.shapley import contributions
from depl.fusion.trees import Trees, prior

FUSION = "fusion"  # the name of the fusion itself next to those of its parts

_FOLDS = 3
_BLOCK = 256  # documents whose pairs are in memory at a time while ranking
_MOST = 20_000  # documents to learn from; more only need memory
_KEPT = ("candidates", "iterations", "leaves", "learning_rate", "head_loss", "seed")
_BY_COUNT = ("slopes", "offsets")
_SETTINGS = "fusion.json"
_TREES = "trees.safetensors"


class Fusion:
    """One ranking with calibrated probabilities from any number of rankings.

    Parameters
    ----------
    candidates : int
        How many of the best labels of every part are considered for a document.
    iterations : int or None
        How many trees are boosted; fewer where nothing is left to gain. None: 160 to 500, the more
        the more pairs there are to learn from.
    leaves : int
        How many leaves each has at most.
    learning_rate : float
        The learning rate of boosting.
    head_loss : float
        How many points P@1 and P@5 may each lose in favour of rare labels; 0 favours none.
    seed : int
        For the folds.
    n_threads : int or None
        For fitting and ranking; None means one per core. The result does not depend on it.

    Attributes
    ----------
    parts_ : tuple of str
        The names of the parts, in the order they were given.
    chosen_ : str
        "fusion", or the name of the single part that is better.
    scores_ : dict of str to dict of str to float
        For every part and for "fusion": P@1, P@5, PSP@1, PSP@5 and their mean, in percent, on the
        documents of ``fit``; those of the fusion by cross-fitting. The fusion also has the
        expected calibration error of its first five labels, "ECE".
    depth_ : int
        How many labels each part ranked; give ``rank`` rankings of the same depth.
    n_facts_ : int
        How many facts about labels the trees read.
    order_ : Order
        How far the order of suggestions favours rare labels.
    cross_fitted_ : Ranking
        After ``fit``, and not saved: all candidates with probabilities, from trees that
        did not see the document.
    fitted_on_ : array of int64
        Which of the documents of ``fit`` its rows are.
    """

    def __init__(
        self,
        *,
        candidates: int = 40,
        iterations: int | None = None,
        leaves: int = 15,
        learning_rate: float = 0.03,
        head_loss: float = 0.2,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        enough = (
            candidates >= 1
            and (iterations is None or iterations >= 1)
            and 2 <= leaves <= MOST_LEAVES
        )
        if not enough or learning_rate <= 0 or head_loss < 0:
            raise ConfigError(
                f"A fusion needs at least 1 candidate, 1 iteration, 2 to {MOST_LEAVES} leaves, a "
                f"learning rate above 0 and a head loss of 0 or more; got candidates = "
                f"{candidates}, iterations = {iterations}, leaves = {leaves}, learning_rate = "
                f"{learning_rate}, head_loss = {head_loss}."
            )
        self.candidates = candidates
        self.iterations = iterations
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.head_loss = head_loss
        self.seed = seed
        self.n_threads = n_threads

    def fit(
        self,
        rankings: Mapping[str, Ranking],
        Y: csr_array,
        train_counts: NDArray[np.integer],
        n_train: int,
        fold: NDArray[np.integer] | None = None,
        facts: NDArray[np.float32] | None = None,
    ) -> Fusion:
        """Learn from documents that the parts have not seen.

        Parameters
        ----------
        rankings : mapping of str to Ranking
            Each part's ranking of these documents.
        Y : csr_array of shape (n_documents, n_labels)
            The labels of these documents.
        train_counts : array of shape (n_labels,) or (n_folds, n_labels)
            How many documents of the parts' training data carry each label.
        n_train : int
            How many documents the parts were trained on.
        fold : array of shape (n_documents,), optional
            Where the parts were trained several times, each time without other documents: the
            fold of each document.
        facts : array of shape (n_labels, n_facts) or (n_folds, n_labels, n_facts), optional
            What else is known of the labels from the parts' training data; NaN where nothing is.
        """
        vars(self).pop("_line", None)  # a second fit that fails leaves it unfitted
        parts = tuple(rankings)
        if not parts or FUSION in parts:
            raise ConfigError(
                f"A fusion needs one part or more, none of them named {FUSION!r}; got {parts}."
            )
        by_fold = np.atleast_2d(train_counts)
        of_document = np.zeros(Y.shape[0], np.int64) if fold is None else np.asarray(fold)
        if Y.shape[1] != by_fold.shape[1]:
            raise DeplError(
                f"Y has {Y.shape[1]} labels, but there are training counts of {by_fold.shape[1]}. "
                f"Give both for the same label set."
            )
        self.parts_ = parts
        self.n_facts_ = 0 if facts is None else facts.shape[-1]
        more = facts[None] if facts is not None and facts.ndim == 2 else facts
        check_rankings(parts, rankings, Y.shape[1], Y.shape[0])
        self.depth_ = max(ranking.k for ranking in rankings.values())
        rng = np.random.default_rng(self.seed)
        documents = rng.permutation(Y.shape[0])
        self.fitted_on_ = np.sort(documents[:_MOST])
        if len(documents) > _MOST:
            documents = self.fitted_on_
            rankings = {x: ranking.take(documents) for x, ranking in rankings.items()}
            Y, of_document = Y[documents], of_document[documents]
            documents = rng.permutation(_MOST)
        if not np.any(Y.data):
            raise DeplError(
                f"None of the {Y.shape[0]} documents to fit the fusion on carries a label. "
                f"Take documents with labels, or do without the fusion."
            )

        rows, labels, X = candidate_pairs(rankings, self.candidates, by_fold, of_document, more)
        true = carried(Y, rows, labels)
        of_all, log_odds = cross_fit(
            X,
            true,
            (documents % _FOLDS)[rows],
            len(parts),
            rng,
            self.n_threads,
            iterations=self.iterations,
            leaves=self.leaves,
            learning_rate=self.learning_rate,
        )
        self._n_train = n_train
        # On cross-fitted scores, so that it also corrects overconfident trees on few documents.
        slope, offset = logistic_line(log_odds, true)
        usual = slope * log_odds + offset
        probability = expit(usual)
        inverse = inverse_propensities(by_fold.mean(axis=0), n_train)
        # A label counts by the fold that knows least of it: where its only document is held out, it
        # is not rare, but unknown.
        rare = rare_labels(by_fold.min(axis=0))
        self.order_ = choose_order(
            rows, labels, log_odds, probability, Y, inverse, rare, self.head_loss
        )
        keys = self.order_.keys(log_odds, probability, inverse[labels])
        first = Ranking.from_pairs(
            rows, labels, usual.astype(np.float32), Y.shape[0], FURTHER, order=keys
        )
        # Without favour, the order is that of the probabilities: one line for all keeps it.
        self._by_count = (
            ByCount.fit(first, Y, by_fold, of_document) if self.head_loss else ByCount()
        )
        probability = expit(self._by_count.corrected(usual, X[:, 2 * len(parts)]))
        most = int(np.bincount(rows, minlength=1).max())
        self.cross_fitted_ = Ranking.from_pairs(
            rows,
            labels,
            probability.astype(np.float32),
            Y.shape[0],
            most,
            order=keys,
        )
        fused = self.cross_fitted_.top(max(CUTS))

        self.scores_ = {x: _scores(r, Y, inverse) for x, r in {**rankings, FUSION: fused}.items()}
        self.scores_[FUSION]["ECE"] = calibration_error(fused, Y)
        # On a tie the fusion wins: it has a probability for every pair, and suggests labels that
        # the best part may not know.
        self.chosen_ = max((FUSION, *parts), key=lambda x: self.scores_[x]["mean"])
        if self.chosen_ == FUSION:
            self._trees = of_all
        else:
            chosen = rankings[self.chosen_]
            right = Hits.of(chosen.indices, Y).correct
            listed = (chosen.indices >= 0) & np.isfinite(chosen.scores)
            slope, offset = logistic_line(chosen.scores[listed], right[listed])
            self._trees = Trees.constant(prior(right[listed]))
            self._by_count = ByCount()
            self.cross_fitted_ = probabilities(chosen, slope, offset)
        self._line = (slope, offset)
        return self

    def rank(
        self,
        rankings: Mapping[str, Ranking],
        train_counts: NDArray[np.integer],
        k: int,
        further: Ranking | None = None,
        facts: NDArray[np.float32] | None = None,
    ) -> Ranking:
        """The k best labels of each document, with their probabilities.

        Where a single part was chosen, its order is kept as it is.

        Parameters
        ----------
        rankings : mapping of str to Ranking
            Of the same parts as in ``fit``.
        train_counts : array of shape (n_labels,)
            As in ``fit``; labels added since then have 0.
        k : int
            Labels per document; a document with fewer candidates is padded.
        further : Ranking, optional
            Labels that the parts do not rank, with their probabilities.
        facts : array of shape (n_labels, n_facts), optional
            As in ``fit``, where there were any.
        """
        self._check_fitted()
        n = check_rankings(self.parts_, rankings, len(train_counts))
        more = checked_facts(facts, len(train_counts), self.n_facts_)
        slope, offset = self._line
        if self.chosen_ != FUSION:
            ranking = probabilities(rankings[self.chosen_].top(k), slope, offset)
            return ranking if further is None else ranking.merged(further, k)

        def rank_block(first: int) -> Ranking:
            some = slice(first, first + _BLOCK)
            block = {x: rankings[x].take(some) for x in self.parts_}
            rows, labels, X = candidate_pairs(block, self.candidates, train_counts, facts=more)
            log_odds = self._trees.log_odds(X)
            usual = slope * log_odds + offset
            # The order goes by one line for all labels; probabilities go by one for each frequency.
            likely = expit(usual).astype(np.float32)
            of_label = X[:, 2 * len(self.parts_)]
            scores = expit(self._by_count.corrected(usual, of_label)).astype(np.float32)
            if further is not None:
                own = further.take(some)
                at, columns = np.nonzero(own.indices >= 0)
                given = own.scores[at, columns]
                rows, labels = np.append(rows, at), np.append(labels, own.indices[at, columns])
                scores, likely = np.append(scores, given), np.append(likely, given)
                log_odds = np.append(log_odds, (logit(given.astype(np.float64)) - offset) / slope)
            inverse = inverse_propensities(train_counts[labels], self._n_train)
            order = self.order_.keys(log_odds, likely, inverse)
            return Ranking.from_pairs(rows, labels, scores, min(_BLOCK, n - first), k, order)

        if n <= _BLOCK:
            return rank_block(0)
        blocks = map_in_threads(rank_block, range(0, n, _BLOCK), self.n_threads)
        return Ranking.concatenate(list(blocks))

    @property
    def line(self) -> tuple[float, float]:
        """Slope and offset that make log-odds those of the probabilities, for labels on average."""
        self._check_fitted()
        return self._line

    def probability(self, log_odds: Floats, log_counts: NDArray[np.floating]) -> Floats:
        """What ``log_odds`` mean for labels with these ln(1 + training count)."""
        slope, offset = self.line
        chances: Floats = expit(self._by_count.corrected(slope * log_odds + offset, log_counts))
        return chances

    def log_odds(self, X: NDArray[np.float32]) -> Floats:
        """What the order goes by; the scores of a single part where that was chosen."""
        self._check_fitted()
        if self.chosen_ != FUSION:
            return X[:, self.parts_.index(self.chosen_)].astype(np.float64)
        return self._trees.log_odds(X)

    def mixed_with(self, trees: Trees, share: float) -> Fusion:
        """The same with a mean of its trees' log-odds and others', which have that share."""
        self._check_fitted()
        new = copy(self)
        new._trees = self._trees.mixed_with(trees, share)
        return new

    def recalibrated(self, slope: float, offset: float) -> Fusion:
        """The same, with log-odds times a slope and plus an offset; the order stays."""
        self._check_fitted()
        new, own = copy(self), self._line
        new._line = (slope * own[0], slope * own[1] + offset)
        new._by_count = self._by_count.after(slope, offset)
        return new

    def contributions(
        self,
        rankings: Mapping[str, Ranking],
        train_counts: NDArray[np.integer],
        row: int,
        label: int,
        facts: NDArray[np.float32] | None = None,
    ) -> dict[str, float]:
        """How much each part contributes to a label of a document.

        In log-odds, as Shapley values: they add up to the log-odds with all parts minus the
        log-odds if none listed the label. The label need not be among the candidates.
        """
        self._check_fitted()
        check_rankings(self.parts_, rankings, len(train_counts))
        slope, offset = self._line
        missing = (np.nan, np.nan)
        said = {x: rankings[x].place(row, label) or missing for x in self.parts_}
        if self.chosen_ != FUSION:
            given = dict.fromkeys(self.parts_, 0.0)
            score = said[self.chosen_][0]
            if np.isfinite(score):
                given[self.chosen_] = slope * score + offset - float(self._trees.baseline[0])
            return given
        scores, places = zip(*said.values(), strict=True)
        best = [rankings[x].scores[row, 0] for x in self.parts_]
        listed = np.array([*scores, *places], np.float32)
        known = checked_facts(facts, len(train_counts), self.n_facts_)[label]
        others = np.array([np.log1p(train_counts[label]), *best, *known], np.float32)
        slope *= float(self._by_count.slope(others[:1])[0])
        added = slope * contributions(self._trees.log_odds, listed, others)
        return dict(zip(self.parts_, added.tolist(), strict=True))

    def save(self, folder: Path) -> None:
        """Write the settings as json and the trees as safetensors."""
        self._check_fitted()
        settings = {
            "settings": {name: getattr(self, name) for name in _KEPT},
            "parts": self.parts_,
            "depth": self.depth_,
            "facts": self.n_facts_,
            "chosen": self.chosen_,
            "scores": self.scores_,
            "line": self._line,
            "by_count": asdict(self._by_count),
            "favour": self.order_.power,
            "fill": self.order_.fill,
            "improbable": self.order_.below,
            "n_train": self._n_train,
        }
        write_tensors(folder / _TREES, self._trees.tensors())
        write_json(folder / _SETTINGS, settings)

    @classmethod
    def load(cls, folder: Path, n_threads: int | None = None) -> Fusion:
        """Read what ``save`` wrote."""
        path = folder / _SETTINGS
        kept = read_json(path)
        try:
            fusion = cls(**kept["settings"], n_threads=n_threads)
            fusion.parts_ = tuple(kept["parts"])
            fusion.chosen_ = kept["chosen"]
            fusion.scores_ = kept["scores"]
            if fusion.chosen_ not in fusion.scores_ or set(fusion.scores_) != {
                FUSION,
                *kept["parts"],
            }:
                raise ValueError("its parts, scores and chosen do not go together")
            slope, offset = kept["line"]
            fusion._line = (float(slope), float(offset))
            # Runs from before have one line for all frequencies.
            by_count = kept.get("by_count") or asdict(ByCount())
            fusion._by_count = ByCount(*(tuple(map(float, by_count[x])) for x in _BY_COUNT))
            fusion.depth_ = int(kept["depth"])
            fusion.n_facts_ = int(kept.get("facts", 0))  # none in runs of earlier versions
            # Runs from before there was a fill have none; then it was for labels below 2 %.
            rest = float(kept.get("fill", 0)), float(kept.get("improbable", 0.02))
            fusion.order_ = Order(float(kept["favour"]), *rest)
            fusion._n_train = int(kept["n_train"])
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{path} is damaged ({error!r}). Delete its folder and fit again."
            ) from error
        names = tuple(Trees.constant(0.0).tensors())
        tensors = read_tensors(folder / _TREES, *names)
        fusion._trees = Trees.from_tensors(tensors, n_features(len(fusion.parts_), fusion.n_facts_))
        return fusion

    def _check_fitted(self) -> None:
        if not hasattr(self, "_line"):
            raise NotFittedError(self)


def _scores(ranking: Ranking, Y: csr_array, inverse: Floats) -> dict[str, float]:
    """P and PSP, and their mean."""
    scores = precision_and_psp(ranking.top(max(CUTS)).indices, Y, inverse, CUTS)
    return scores | {"mean": sum(scores.values()) / len(scores)}
