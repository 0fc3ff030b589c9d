"""How probable a label is that was added to a fitted run, by what little is known of it.

The fusion cannot say: it has learnt what scores mean that an SVM gives labels that it was trained
for. Where it was asked, an example could make a label less probable than its name alone. So labels
that were added have a model of their own, a logistic regression on the evidence for them
(``depl.sparse.evidence``, ``depl.neural.meanings``) and on how broad they are
(``depl.sparse.breadth``), fitted on labels of the run that play newcomers
(``depl.labels.simulation``). It gives probabilities, as the fusion does, by which the labels of
both are ranked together.

There is one set of weights for 0 examples, and one each for 1, 3 and 10, each expected near that
for fewer; between them the weights follow the logarithm of the number. A weight is never negative:
more evidence never makes a label less probable.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from depl.sparse import breadth
from depl.sparse import evidence as words
from depl.sparse.evidence import NEAREST

STEPS = (0, 1, 3, 10)  # numbers of examples with weights of their own
LEAST = 20  # pairs of a document and a label that it carries, to learn from

_BREADTH = len(breadth.COLUMNS)  # the last ones; runs of earlier versions lack them
# Without an encoder, and with one.
_COLUMNS = tuple(len(words.COLUMNS) + n + _BREADTH for n in (0, len(meanings.COLUMNS)))

_FILE = "newcomers.json"
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
    weights : array of shape (len(STEPS), 2 * n_columns)
        Of the columns of the evidence, and of their square roots.
    offsets : array of shape (len(STEPS),)
        The log-odds without any evidence.
    """

    def __init__(self, weights: Floats, offsets: Floats) -> None:
        self.weights = weights
        self.offsets = offsets

    @classmethod
    def fit(cls, simulated: Sequence[Simulated]) -> NewcomerModel:
        """Learn from labels that play newcomers, by each of the numbers of ``STEPS``."""
        solved, kept = [_logistic(simulated[0])], [simulated[0]]
        for pairs in simulated[1:]:
            # A small run has no labels with so many documents: fewer examples must do.
            enough = pairs.carried.sum() >= LEAST
            solved.append(_logistic(pairs, solved[-1]) if enough else solved[-1])
            kept.append(pairs if enough else kept[-1])
        # Nothing is known of evidence that was never there. Between two numbers of examples, of
        # which only the larger has it, half of its weight goes with half of the offset.
        weights = [_there(x) * w for x, (w, _) in zip(kept, solved, strict=True)]
        return cls(np.stack(weights), np.array([offset for _, offset in solved]))

    def probabilities(
        self, evidence: NDArray[np.float32], counts: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Of every document and label, (n_documents, n); ``counts`` are numbers of examples.

        A document that is an example carries the label: somebody said so.
        """
        found: NDArray[np.float32] = expit(self.log_odds(evidence, counts)).astype(np.float32)
        found[evidence[..., NEAREST] >= _SAME] = 1.0
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

    @staticmethod
    def _at(values: Floats, counts: NDArray[np.integer]) -> Floats:
        """The values for these numbers of examples, between those of the steps."""
        steps, at = np.log1p(STEPS), np.log1p(np.minimum(counts, STEPS[-1]))
        upper = np.clip(np.searchsorted(steps, at), 1, len(steps) - 1)
        share = (at - steps[upper - 1]) / (steps[upper] - steps[upper - 1])
        share = share.reshape(-1, *(1,) * (values.ndim - 1))
        between: Floats = (1 - share) * values[upper - 1] + share * values[upper]
        return between

    def save(self, folder: Path) -> None:
        """Write the weights."""
        write_json(
            folder / _FILE, {"weights": self.weights.tolist(), "offsets": self.offsets.tolist()}
        )

    @classmethod
    def load(cls, folder: Path) -> NewcomerModel | None:
        """Read what ``save`` wrote; None where an earlier version made the folder."""
        path = folder / _FILE
        if not path.exists():
            return None
        kept: dict[str, Any] = read_json(path)
        try:
            weights, offsets = np.array(kept["weights"], float), np.array(kept["offsets"], float)
            if weights.shape in [(len(STEPS), 2 * (n - _BREADTH)) for n in _COLUMNS]:
                halves = np.split(weights, 2, axis=1)
                weights = np.hstack([np.pad(x, ((0, 0), (0, _BREADTH))) for x in halves])
            shapes = [(len(STEPS), 2 * n) for n in _COLUMNS]
            if weights.shape not in shapes or offsets.shape != (len(STEPS),):
                raise ValueError(f"weights of the shape {weights.shape}")
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{path} is damaged ({error!r}). Delete its folder and fit again."
            ) from error
        return cls(weights, offsets)


def _there(pairs: Simulated) -> NDArray[np.bool_]:
    """Of which columns, and square roots of columns, some pair has more than 0."""
    there = pairs.evidence.any(axis=0) | (len(pairs.evidence) == 0)
    return np.concatenate([there, there])


def _logistic(pairs: Simulated, fewer: tuple[Floats, float] | None = None) -> tuple[Floats, float]:
    """Weights that are not negative, and the offset, for pairs of one number of examples.

    ``fewer`` are those for fewer examples, near which the weights are expected.
    """
    # One pseudo pair of each kind without evidence keeps the offset finite.
    none = np.zeros((2, pairs.evidence.shape[1]), np.float32)
    Z = np.concatenate([pairs.evidence, none])
    Z = np.ascontiguousarray(np.concatenate([Z, np.sqrt(Z)], axis=1).T, np.float64)
    times = np.append(pairs.times, [1.0, 1.0])
    sign = np.where(np.append(pairs.carried, [True, False]), 1.0, -1.0)
    known = -np.log(pairs.share)  # by so much the sample raises the odds
    usual, offset = (np.full(len(Z), _USUAL), -5.0) if fewer is None else fewer
    spread = _SPREAD if fewer is None else _NEXT

    def loss(x: Floats) -> tuple[float, Floats]:
        """Loss and gradient; summed without BLAS, where threads change the rounding."""
        at = np.full(len(sign), x[-1] + known)
        for w, column in zip(x, Z, strict=False):
            at += w * column
        margin = sign * at
        pull = -sign * times * expit(-margin)
        far = (x[:-1] - usual) / spread
        value = (times * np.logaddexp(0.0, -margin)).sum() + 0.5 * (far**2).sum()
        slopes = [(pull * column).sum() for column in Z]
        return value, np.append(slopes + far / spread, pull.sum())

    start = np.append(usual, offset)
    bounds = [(0.0, None)] * len(Z) + [(None, None)]
    found = minimise(loss, start, bounds)
    return found[:-1], float(found[-1])
