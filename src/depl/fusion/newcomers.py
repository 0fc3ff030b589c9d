"""How probable a label is that was added to a fitted run, by what little is known of it.

The fusion cannot say: it has learnt what scores mean that an SVM gives labels that it was trained
for. Where it was asked, an example could make a label less probable than its name alone. So labels
that were added have a model of their own, a logistic regression on the evidence for them
(``depl.sparse.evidence``, ``depl.neural.meanings``) and on how broad they are
(``depl.sparse.breadth``), fitted on labels of the run that play newcomers
(``depl.labels.simulation``). It gives probabilities, as the fusion does, by which the labels of
both are ranked together.

Two models follow each other. The first goes without ``depl.sparse.likely``: it says which
documents of the run probably carry the label. These are evidence for the second.

There is one set of weights for 0 examples, one for 1 and one for 10; between them they follow the
logarithm of the number. Those for 1 and 10 are found together, from labels that play with 1, 3 and
10 examples: found apart, for each number, they let a third example bring less than the second had.
A weight is never negative: more evidence never makes a label less probable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from depl.core.errors import RunError
from depl.core.storage import read_json, write_json
from depl.evaluation.metrics import Floats
from depl.fusion.calibration import minimise
from depl.neural import meanings
from depl.sparse import breadth, likely
from depl.sparse import evidence as words
from depl.sparse.evidence import NEAREST

STEPS = (0, 1, 3, 10)  # numbers of examples that labels play newcomers with
LEAST = 20  # pairs of a document and a label that it carries, to learn from

# Without an encoder, and with one.
_FIRST = tuple(len(words.COLUMNS) + n + len(breadth.COLUMNS) for n in (0, len(meanings.COLUMNS)))
_COLUMNS = tuple(n + len(likely.COLUMNS) for n in _FIRST)

_FILE = "newcomers.json"
_LAYOUT = 3  # weights for evidence of another meaning are of no use
_USUAL, _SPREAD = 1.0, 2.0  # what a weight is expected to be, before any label was simulated
# How far from that for fewer examples it is expected. On 710 training documents of TIB-en and 42
# labels that a run on 1,500 others did not know, R@5 with 1, 2, 3, 5 and 10 examples was 30, 35,
# 32, 38 and 45 % where every number began from the usual; 32, 36, 34, 39 and 46 % with this.
_NEXT = 1.0
_SAME = 1 - 1e-4  # cosine of a document with an example that it is itself


class Simulated(NamedTuple):
    """Pairs of a document and a label that plays a newcomer with some number of examples.

    Parameters
    ----------
    evidence : array of shape (n_pairs, n_columns)
        What speaks for the label.
    carried : array of shape (n_pairs,)
        Whether the document carries it.
    times : array of shape (n_pairs,)
        How often the pair counts.
    share : float
        The share of all pairs whose document does not carry the label which are among these.
    """

    evidence: NDArray[np.float32]
    carried: NDArray[np.bool_]
    times: Floats
    share: float

    @classmethod
    def together(cls, rounds: Sequence[Simulated]) -> Simulated:
        """All pairs of several rounds."""
        carried = np.concatenate([x.carried for x in rounds])
        others = [np.count_nonzero(~x.carried) for x in rounds]
        # How many pairs there were that no document carries, and how many of those are left.
        all_others = sum(n / x.share for n, x in zip(others, rounds, strict=True))
        return cls(
            np.concatenate([x.evidence for x in rounds]),
            carried,
            np.concatenate([x.times for x in rounds]),
            sum(others) / all_others if all_others else 1.0,
        )


class NewcomerModel:
    """Log-odds of labels from the evidence for them.

    Parameters
    ----------
    knots : sequence of int
        The numbers of examples that there are weights for, ascending.
    weights : array of shape (len(knots), 2 * n_columns)
        Of the columns of the evidence, and of their square roots.
    offsets : array of shape (len(knots),)
        The log-odds without any evidence.
    first : NewcomerModel, optional
        The model that tells likely documents, by the evidence without them.
    """

    def __init__(
        self,
        knots: Sequence[int],
        weights: Floats,
        offsets: Floats,
        first: NewcomerModel | None = None,
    ) -> None:
        self.knots = tuple(knots)
        self.weights = weights
        self.offsets = offsets
        self.first = first

    @classmethod
    def fit(
        cls, simulated: Sequence[Simulated], first: NewcomerModel | None = None
    ) -> NewcomerModel:
        """Learn from labels that play newcomers, by each of the numbers of ``STEPS``."""
        expected = None if first is None else first._with_more(simulated[0].evidence.shape[1])
        by_name = _logistic([simulated[0]], np.ones((1, 1)), usual=expected)
        # A small run has no labels with so many documents: fewer examples must do.
        some = zip(STEPS[1:], simulated[1:], strict=True)
        played = {n: pairs for n, pairs in some if pairs.carried.sum() >= LEAST}
        if not played:
            return cls([0], by_name[:, :-1], by_name[:, -1], first)
        knots = sorted({min(played), max(played)})
        shares = _shares(knots, np.array(list(played)))
        found = np.concatenate([by_name, _logistic(list(played.values()), shares, by_name[0])])
        return cls([0, *knots], found[:, :-1], found[:, -1], first)

    def _with_more(self, n: int) -> Floats:
        """Weights by name and the offset, as they are expected where there are n columns.

        Likely documents share much with the name. Where all weights were expected to be alike, they
        took most of its weight, and short texts, which no document is like, lost: the first text
        in docs/adding-labels.md got 34 % instead of 97 %.
        """
        own = self.weights[0].reshape(2, -1)
        more = np.full((2, n - own.shape[1]), _USUAL)
        return np.append(np.concatenate([own, more], axis=1), self.offsets[0])

    def probabilities(
        self, evidence: NDArray[np.float32], counts: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Of every document and label, (n_documents, n); ``counts`` are numbers of examples.

        A document that is an example carries the label: somebody said so.
        """
        found: NDArray[np.float32] = expit(self.log_odds(evidence, counts)).astype(np.float32)
        found[evidence[..., NEAREST] >= _SAME] = 1.0
        return found

    def of_others(
        self, evidence: NDArray[np.float32], counts: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """As ``probabilities``, but 0 for a document that is an example: that is known."""
        found: NDArray[np.float32] = expit(self.log_odds(evidence, counts)).astype(np.float32)
        found[evidence[..., NEAREST] >= _SAME] = 0.0
        return found

    def log_odds(
        self, evidence: NDArray[np.float32], counts: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Of every document and label, (n_documents, n)."""
        by_evidence = self.contributions(evidence, counts).sum(axis=-1)
        summed: NDArray[np.float64] = by_evidence + self._at(self.offsets, counts)
        return summed

    def contributions(
        self, evidence: NDArray[np.float32], counts: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """What each column of the evidence adds to the log-odds; the shape is that of it."""
        n = evidence.shape[-1]
        linear, root = self._at(self.weights[:, :n], counts), self._at(self.weights[:, n:], counts)
        added: NDArray[np.float64] = evidence * linear + np.sqrt(evidence) * root
        return added

    def _at(self, values: Floats, counts: NDArray[np.integer]) -> Floats:
        """The values for these numbers of examples, between those of the knots."""
        between: Floats = _shares(self.knots, counts) @ values
        return between

    def save(self, folder: Path) -> None:
        """Write the weights."""
        assert self.first is not None
        kept = {"first": self.first._kept(), **self._kept()}
        write_json(folder / _FILE, {"layout": _LAYOUT, **kept})

    def _kept(self) -> dict[str, Any]:
        kept = {"weights": self.weights.tolist(), "offsets": self.offsets.tolist()}
        return {"knots": self.knots, **kept}

    @classmethod
    def load(cls, folder: Path) -> NewcomerModel | None:
        """Read what ``save`` wrote; None where an earlier version made the folder."""
        path = folder / _FILE
        if not path.exists():
            return None
        kept: dict[str, Any] = read_json(path)
        try:
            if kept.get("layout") != _LAYOUT:
                return None
            model = cls._read(kept, _COLUMNS)
            model.first = cls._read(kept["first"], _FIRST)
            more = model.weights.shape[1] - model.first.weights.shape[1]
            if more != 2 * len(likely.COLUMNS):
                raise ValueError(f"models that differ by {more} weights")
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise RunError(
                f"{path} is damaged ({error!r}). Delete its folder and fit again."
            ) from error
        return model

    @classmethod
    def _read(cls, kept: Mapping[str, Any], columns: Sequence[int]) -> NewcomerModel:
        weights, offsets = np.array(kept["weights"], float), np.array(kept["offsets"], float)
        knots = [int(n) for n in kept["knots"]]
        shapes = [(len(knots), 2 * n) for n in columns]
        if weights.shape not in shapes or offsets.shape != (len(knots),) or knots[0] != 0:
            raise ValueError(f"weights of the shape {weights.shape}")
        return cls(knots, weights, offsets)


def _shares(knots: Sequence[int], counts: NDArray[np.integer]) -> Floats:
    """How much each knot has to say about each number of examples, (n, len(knots))."""
    steps, at = np.log1p(knots), np.log1p(counts)
    return np.stack([np.interp(at, steps, x) for x in np.eye(len(knots))], axis=1)


def _logistic(
    simulated: Sequence[Simulated],
    shares: Floats,
    fewer: Floats | None = None,
    *,
    usual: Floats | None = None,
) -> Floats:
    """Weights that are not negative, and offsets behind them, of some knots, (n_knots, n + 1).

    Parameters
    ----------
    simulated : sequence of Simulated
        Pairs of some numbers of examples.
    shares : array of shape (len(simulated), n_knots)
        How much each knot has to say about each of these numbers.
    fewer : array of shape (n + 1,), optional
        Weights and offset for fewer examples, near which those of the first knot are expected;
        and each next knot's near those of the one before.
    usual : array of shape (n + 1,), optional
        Weights and offset that are expected, where none are known for fewer examples.
    """
    parts = [_Part.of(pairs) for pairs in simulated]
    n, n_knots = len(parts[0].Z), shares.shape[1]
    if usual is None:
        usual = np.append(np.full(n, _USUAL), -5.0)
    usual = usual if fewer is None else fewer
    spreads = np.full((n_knots, 1), _NEXT)
    spreads[0] = _SPREAD if fewer is None else _NEXT

    def loss(flat: Floats) -> tuple[float, Floats]:
        x = flat.reshape(n_knots, n + 1)
        far = np.diff(x[:, :-1], axis=0, prepend=usual[None, :-1]) / spreads
        value, slopes = 0.5 * (far**2).sum(), np.zeros_like(x)
        slopes[:, :-1] += far / spreads
        slopes[:-1, :-1] -= far[1:] / spreads[1:]
        for part, share in zip(parts, shares, strict=True):
            own, slope = part.loss(share @ x)
            value += own
            slopes += np.outer(share, slope)
        return value, slopes.ravel()

    start = np.tile(usual, n_knots)
    bounds = ([(0.0, None)] * n + [(None, None)]) * n_knots
    found: Floats = minimise(loss, start, bounds).reshape(n_knots, n + 1)
    # Nothing is known of evidence that was never there.
    there = np.any([part.Z.any(axis=1) for part in parts], axis=0)
    empty = all(len(pairs.evidence) == 0 for pairs in simulated)
    found[:, :-1] *= there | empty
    return found


class _Part(NamedTuple):
    """Pairs of one number of examples as the regression takes them.

    Parameters
    ----------
    Z : array of shape (n, n_pairs)
        The columns of the evidence and their square roots.
    sign : array of shape (n_pairs,)
        1 where the document carries the label, else -1.
    times : array of shape (n_pairs,)
        How often the pair counts.
    known : float
        By so much the sample raises the log-odds.
    """

    Z: Floats
    sign: Floats
    times: Floats
    known: float

    @classmethod
    def of(cls, pairs: Simulated) -> _Part:
        # One pseudo pair of each kind without evidence keeps the offset finite.
        none = np.zeros((2, pairs.evidence.shape[1]), np.float32)
        Z = np.concatenate([pairs.evidence, none])
        Z = np.ascontiguousarray(np.concatenate([Z, np.sqrt(Z)], axis=1).T, np.float64)
        sign = np.where(np.append(pairs.carried, [True, False]), 1.0, -1.0)
        return cls(Z, sign, np.append(pairs.times, [1.0, 1.0]), -float(np.log(pairs.share)))

    def loss(self, x: Floats) -> tuple[float, Floats]:
        """Loss and gradient; summed without BLAS, where threads change the rounding."""
        at = np.full(len(self.sign), x[-1] + self.known)
        for w, column in zip(x, self.Z, strict=False):
            at += w * column
        margin = self.sign * at
        pull = -self.sign * self.times * expit(-margin)
        value = float((self.times * np.logaddexp(0.0, -margin)).sum())
        return value, np.append([(pull * column).sum() for column in self.Z], pull.sum())
