"""The probability above which to suggest a label: for a given precision, or for the best F1.

A threshold is chosen on documents that neither the parts nor the fusion's trees saw: the
validation slice, with cross-fitted probabilities. Labels of different frequency have their own
curves, because one threshold cuts off rare labels first.

Counting right suggestions above every possible threshold would overfit where there are few. Three
things smooth the curve: a point needs a number of suggestions that are expected to be right;
``_PRIOR`` pseudo-suggestions, as good as their probabilities say, precede the first real one; and
a more probable suggestion is never considered worse (isotonic regression).

A precision counts as reached where it is with its standard error taken off. On 1,000 and 3,000
documents of three corpora, precisions that were asked of single bands were missed by more than two
points in 4 of 54 cases; without that, in 16 of 59. It costs 3 % of the right suggestions there, and
less the more documents there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import ConfigError, RunError
from depl.core.ranking import Ranking
from depl.core.storage import read_json, write_json
from depl.evaluation.bands import BANDS, band_of
from depl.evaluation.metrics import Hits

_ALL = "all"
_FILE = "thresholds.json"
_POINTS = 200  # of a curve, at most about
_MASS = 10.0  # suggestions expected to be right between two points, at least
_PRIOR = 10.0  # pseudo-suggestions at the head of a curve


class Point(NamedTuple):
    """What to expect of the suggestions above a threshold: fractions from 0 to 1."""

    threshold: float
    precision: float
    recall: float


@dataclass(frozen=True)
class Curve:
    """Precision and recall over falling thresholds.

    Parameters
    ----------
    thresholds : array of shape (n,)
        Falling.
    suggested : array of shape (n,)
        How many suggestions of the slice have at least that probability.
    precision : array of shape (n,)
        The share of them that is right, smoothed: never rising.
    true : int
        How many (document, label) pairs of the slice there are to find.
    """

    thresholds: NDArray[np.float64]
    suggested: NDArray[np.int64]
    precision: NDArray[np.float64]
    true: int

    @classmethod
    def fit(
        cls,
        probability: NDArray[np.floating],
        right: NDArray[np.bool_],
        true: int,
        *,
        mass: float = _MASS,
        prior: float = _PRIOR,
        points: int = _POINTS,
    ) -> Curve:
        """The curve of suggestions given by their probabilities and whether they are right.

        Examples
        --------
        >>> curve = Curve.fit(np.array([0.9, 0.6, 0.3]), np.array([True, False, True]), 2,
        ...                   mass=0, prior=0, points=3)
        >>> curve.precision.round(2).tolist()
        [1.0, 0.75, 0.67]
        """
        from scipy.optimize import isotonic_regression  # slow to import, and only needed by fit

        order = np.argsort(-probability, kind="stable")
        p, hits = probability[order].astype(np.float64), np.cumsum(right[order])
        last = np.append(p[1:] != p[:-1], True) if len(p) else np.empty(0, bool)
        ends = np.flatnonzero(last)  # equal probabilities are suggested together or not at all
        expected = np.cumsum(p)
        if mass > 0 and len(p):
            step = max(mass, expected[-1] / points)
            filled = np.floor(expected[ends] / step)
            full = np.diff(filled, prepend=0.0) > 0
            full[-1] = True
            ends = ends[full]
        if not len(ends):
            return cls(np.empty(0), np.empty(0, np.int64), np.empty(0), true)
        sizes = np.diff(ends + 1, prepend=0).astype(np.float64)
        found = np.diff(hits[ends], prepend=0).astype(np.float64)
        found[0] += prior * expected[ends[0]] / sizes[0]
        sizes[0] += prior
        rates = isotonic_regression(found / sizes, weights=sizes, increasing=False).x
        precision = np.cumsum(rates * sizes) / np.cumsum(sizes)
        return cls(p[ends], (ends + 1).astype(np.int64), precision, true)

    @property
    def recall(self) -> NDArray[np.float64]:
        """The share of all pairs that is suggested, smoothed likewise."""
        return np.minimum(1.0, self.precision * self.suggested / max(1, self.true))

    @property
    def f1(self) -> NDArray[np.float64]:
        """2 right / (suggested + true)."""
        return 2 * self.precision * self.suggested / np.maximum(1, self.suggested + self.true)

    @property
    def certain(self) -> NDArray[np.float64]:
        """The precision less its standard error: what it is at least, five times out of six.

        A threshold is the lowest of many that seem to reach a precision, and the fewer suggestions
        it is found on, the more of them only seem to.
        """
        error = np.sqrt(self.precision * (1 - self.precision) / np.maximum(1, self.suggested))
        return self.precision - error

    def lowest(self, precision: float) -> float | None:
        """The lowest threshold that certainly has this precision; None where there is none."""
        reached = np.flatnonzero(self.certain >= precision - 1e-9)
        return float(self.thresholds[reached[-1]]) if len(reached) else None

    def best(self) -> float | None:
        """The threshold of the largest F1; None where nothing right can be suggested."""
        f1 = self.f1
        if not self.true or not f1.any():
            return None
        # Of equal ones, up to rounding, the highest threshold.
        return float(self.thresholds[int(np.argmax(f1 >= f1.max() - 1e-12))])

    def at(self, threshold: float) -> Point:
        """The point of the curve for a threshold: the last that is not below it."""
        above = int(np.count_nonzero(self.thresholds >= threshold))
        if not above:
            return Point(threshold, 1.0, 0.0)
        return Point(threshold, float(self.precision[above - 1]), float(self.recall[above - 1]))


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a run: over all labels, and for each band of training counts.

    Parameters
    ----------
    curves : mapping of str to Curve
        "all", and every band's name.
    """

    curves: Mapping[str, Curve]

    @classmethod
    def fit(
        cls,
        ranking: Ranking,
        Y: csr_array,
        train_counts: NDArray[np.integer],
        fold: NDArray[np.integer] | None = None,
    ) -> Thresholds:
        """Learn from probabilities of documents that were not fitted on.

        Parameters
        ----------
        ranking : Ranking
            All suggestions, with probabilities.
        Y : csr_array of shape (n_documents, n_labels)
            The labels of the documents.
        train_counts : array of shape (n_labels,) or (n_folds, n_labels)
            How many documents of the parts' training data carry each label. With their mean over
            folds, a label whose only document is held out had one training document; so with 1,000
            documents of TIB-en, of labels with 1 to 9 and a promised precision of 0.7, 53 % were
            right, and 69 % are with those of each fold.
        fold : array of shape (n_documents,), optional
            Where there are counts of several folds: the one of each document.
        """
        hits = Hits.of(ranking.indices, Y)
        listed = ranking.indices >= 0
        probability, right = ranking.scores[listed], hits.correct[listed]
        band = band_of(np.atleast_2d(train_counts))
        fold = np.zeros(len(ranking), np.int64) if fold is None else np.asarray(fold)
        suggested = band[fold[:, None], ranking.indices][listed]
        carried = band[fold[hits.documents], hits.labels]
        curves = {_ALL: Curve.fit(probability, right, len(carried))}
        for i, b in enumerate(BANDS):
            among = suggested == i
            true = int(np.count_nonzero(carried == i))
            curves[b.name] = Curve.fit(probability[among], right[among], true)
        return cls(curves)

    def for_precision(self, precision: float, band: str | None = None) -> float | None:
        """The lowest threshold with this share of right suggestions; None where it is not reached.

        With a band, for its labels only: "0", "1-9", "10-99" or "100+".
        """
        if not 0 < precision <= 1:
            raise ConfigError(f"A precision lies above 0 and is 1 at most; got {precision}.")
        return self.curve(band).lowest(precision)

    def for_f1(self, band: str | None = None) -> float | None:
        """The threshold of the best micro-F1; None where nothing right can be suggested."""
        return self.curve(band).best()

    @property
    def best_f1(self) -> float | None:
        """The threshold of the best micro-F1 over all labels."""
        return self.for_f1()

    def curve(self, band: str | None = None) -> Curve:
        """The curve of a band, or of all labels."""
        try:
            return self.curves[band or _ALL]
        except KeyError:
            known = ", ".join(b.name for b in BANDS)
            raise ConfigError(f"There is no band {band!r}; the bands are {known}.") from None

    def of_labels(
        self, train_counts: NDArray[np.integer], precision: float | None = None
    ) -> NDArray[np.float64]:
        """Each label's threshold by its band: for a precision, or for the best F1.

        Labels of a band that does not reach it have inf: they are not suggested at all. A band
        without any held-out suggestion to find a threshold on has that of all labels.
        """
        found = [self.of_band(b.name, precision) for b in BANDS]
        return np.array([np.inf if t is None else t for t in found])[band_of(train_counts)]

    def of_band(self, band: str, precision: float | None = None) -> float | None:
        """A band's threshold for a precision, or for the best F1; of all labels if it has none."""
        which = band if self.has_own(band) else None
        return self.for_f1(which) if precision is None else self.for_precision(precision, which)

    def has_own(self, band: str) -> bool:
        """Whether a band has right suggestions in the held-out documents to find a threshold on."""
        curve = self.curve(band)
        # Where every label of a band is suggested and none is carried, as labels without documents
        # in a small run, only the pseudo-suggestions are right.
        return curve.true > 0 and bool(curve.recall.max(initial=0.0) > 0)

    def save(self, folder: Path) -> None:
        """Write the curves as json."""
        write_json(folder / _FILE, {name: _plain(curve) for name, curve in self.curves.items()})

    @classmethod
    def load(cls, folder: Path) -> Thresholds:
        """Read what ``save`` wrote."""
        path = folder / _FILE
        kept = read_json(path)
        try:
            return cls({name: _curve(kept[name]) for name in (_ALL, *(b.name for b in BANDS))})
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path} is damaged ({error!r}). Fit again from the fusion.") from error


def keep(ranking: Ranking, at_least: float | NDArray[np.float64]) -> Ranking:
    """The suggestions that reach the threshold, one for all or one per label, moved to the front.

    Examples
    --------
    >>> ranking = Ranking(np.array([[2, 0, 1]]), np.array([[0.9, 0.6, 0.5]]))
    >>> keep(ranking, np.array([0.7, 0.4, 0.7])).indices.tolist()
    [[2, 1, -1]]
    """
    needed = at_least[ranking.indices] if isinstance(at_least, np.ndarray) else at_least
    return ranking.keep(ranking.scores.astype(np.float64) >= needed)


def _plain(curve: Curve) -> dict[str, Any]:
    return {
        "true": curve.true,
        "thresholds": curve.thresholds.tolist(),
        "suggested": curve.suggested.tolist(),
        "precision": curve.precision.tolist(),
    }


def _curve(kept: Mapping[str, Any]) -> Curve:
    curve = Curve(
        np.array(kept["thresholds"], np.float64),
        np.array(kept["suggested"], np.int64),
        np.array(kept["precision"], np.float64),
        int(kept["true"]),
    )
    if not curve.thresholds.shape == curve.suggested.shape == curve.precision.shape:
        raise ValueError("its columns differ in length")
    return curve
