"""What a review saves, from the curves of the tail against decisions: shares, errors, a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from depl.evaluation.figures import COLOURS, DASHES, percent_axis, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWS = 1_000  # of the bootstrap
INTERVAL = 2.5, 97.5  # percentiles
PROBABILITIES = {
    "below 2 %, or not at all": (0.0, 0.02),
    "2 to 10 %": (0.02, 0.1),
    "10 to 40 %": (0.1, 0.4),
    "40 % and more": (0.4, np.inf),
}

Floats = NDArray[np.float64]


class Followed(NamedTuple):
    """What one order reached after every round, the first of which is before any decision.

    Parameters
    ----------
    documents : array of shape (rounds,)
        How many were reviewed.
    said : array of shape (rounds, 3)
        How many labels were accepted, added and rejected.
    precision : array of shape (rounds,)
        P@5, in percent.
    f1 : array of shape (rounds, labels)
        Of each label of the tail, in percent.
    """

    documents: NDArray[np.int64]
    said: NDArray[np.int64]
    precision: Floats
    f1: Floats


class Lessons(NamedTuple):
    """What the labels of the tail learnt in one split, an entry for each.

    Parameters
    ----------
    known, reviewed : arrays of int
        How many documents of it there were before, and how many were reviewed.
    expected : array of float
        The probability with which it was suggested for one of these before; the largest.
    before, after : arrays of float
        Its F1, in percent.
    """

    known: NDArray[np.int64]
    reviewed: NDArray[np.int64]
    expected: Floats
    before: Floats
    after: Floats


class Curve(NamedTuple):
    """The tail by decisions."""

    decisions: Floats
    tail: Floats

    @classmethod
    def mean(cls, splits: Sequence[Followed], weights: Sequence[Floats] | None = None) -> Curve:
        """The mean over splits; the labels of each may have weights."""
        of_labels = weights or [np.ones(x.f1.shape[1]) for x in splits]
        pairs = zip(splits, of_labels, strict=True)
        tails = [np.average(x.f1, axis=1, weights=own) for x, own in pairs]
        decisions = np.mean([x.said.sum(axis=1) for x in splits], axis=0)
        return cls(decisions, np.mean(tails, axis=0))

    @classmethod
    def gained(cls, splits: Sequence[Followed]) -> Curve:
        """What was gained since the first round; splits begin at scores of their own."""
        decisions, tail = cls.mean(splits)
        return cls(decisions, tail - tail[0])

    def needed(self, tail: float) -> float:
        """How many decisions it takes to reach a score; beyond the last, at the pace so far.

        Examples
        --------
        >>> curve = Curve(np.array([0.0, 100, 200]), np.array([5.0, 6, 7]))
        >>> curve.needed(6.5), curve.needed(8.0)
        (150.0, 300.0)
        """
        best = np.maximum.accumulate(self.tail)
        if tail <= best[-1]:
            return float(np.interp(tail, best, self.decisions))
        gained = best[-1] - best[0]
        return float(self.decisions[-1] * (tail - best[0]) / gained) if gained > 0 else np.inf


def shares(order: Curve, at_random: Curve) -> Floats:
    """Which share of the decisions at random an order needs for the same tail, round by round."""
    pairs = zip(at_random.decisions[1:], at_random.tail[1:], strict=True)
    return np.array([order.needed(tail) / decisions for decisions, tail in pairs])


def shares_drawn(order: Sequence[Followed], at_random: Sequence[Followed], seed: int = 0) -> Floats:
    """The same with splits, and labels of each, drawn with replacement as often as ``DRAWS``."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(DRAWS):
        splits = rng.integers(len(order), size=len(order))
        weights = [_drawn(rng, order[i].f1.shape[1]) for i in splits]
        curves = (Curve.mean([x[i] for i in splits], weights) for x in (order, at_random))
        drawn.append(shares(*curves))
    return np.array(drawn)


def _drawn(rng: np.random.Generator, n: int) -> Floats:
    """How often each of n things is drawn, with replacement."""
    return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)


def error_of_gain(splits: Sequence[Followed]) -> Floats:
    """The standard error of what was gained since the first round, over labels."""
    gains = [x.f1 - x.f1[0] for x in splits]
    found: Floats = np.sqrt(sum(x.var(axis=1) / x.shape[1] for x in gains)) / len(gains)
    return found


def print_report(found: Mapping[str, Sequence[Followed]]) -> None:
    """Two tables: the scores, and which share of the decisions at random is needed, 95 % sure."""
    documents, start = found["review"][0].documents.tolist(), Curve.mean(found["review"]).tail[0]
    print(f"{len(found['review'])} splits; the tail at the start: {start:.2f}\n")
    print("| documents | order | accepted | added | rejected | decisions | tail gained | P@5 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for i, n in enumerate(documents):
        for name, splits in found.items():
            said = np.mean([x.said[i] for x in splits], axis=0)
            numbers = " | ".join(f"{x:,.0f}" for x in (*said, said.sum()))
            gained, error = Curve.gained(splits).tail[i], error_of_gain(splits)[i]
            scores = f"{gained:.2f} ± {error:.2f} | {np.mean([x.precision[i] for x in splits]):.2f}"
            print(f"| {n:,} | {name} | {numbers} | {scores} |")
    print("\n| documents at random | decisions | review needs | oracle needs |")
    print("| --- | --- | --- | --- |")
    columns = []
    for name in ("review", "oracle"):
        at_random = found["random"][: len(found[name])]
        drawn = shares_drawn(found[name], at_random)
        bounds = np.percentile(drawn, INTERVAL, axis=0, method="nearest")
        own = shares(Curve.mean(found[name]), Curve.mean(at_random))
        three = zip(own, *bounds, strict=True)
        columns.append([f"{x:.0%} ({low:.0%} to {high:.0%})" for x, low, high in three])
    decisions = Curve.mean(found["random"]).decisions[1:]
    for n, asked, *needed in zip(documents[1:], decisions, *columns, strict=True):
        print(f"| {n:,} | {asked:,.0f} | {' | '.join(needed)} |")


def print_lessons(splits: Sequence[Lessons]) -> None:
    """Which labels the tail gains from, and what one document taught, by how it was expected."""
    known, reviewed, expected, before, after = map(np.concatenate, zip(*splits, strict=True))
    gained = after - before
    groups = {
        "first documents": (known == 0) & (reviewed > 0),
        "further documents": (known > 0) & (reviewed > 0),
        "none": reviewed == 0,
    }
    print("\n| reviewed of a label | labels | F1 before | F1 after | share of the gain |")
    print("| --- | --- | --- | --- | --- |")
    for name, some in groups.items():
        share = gained[some].sum() / gained.sum()
        scores = f"{before[some].mean():.1f} | {after[some].mean():.1f}"
        print(f"| {name} | {some.sum() / len(splits):,.0f} | {scores} | {share:.0%} |")
    print("\n| documents before | one more, expected with | labels | F1 before | gained |")
    print("| --- | --- | --- | --- | --- |")
    for name, has in (("none", known == 0), ("some", known > 0)):
        for said, (low, high) in PROBABILITIES.items():
            some = has & (reviewed == 1) & (expected >= low) & (expected < high)
            if some.any():
                error = gained[some].std() / np.sqrt(some.sum())
                print(
                    f"| {name} | {said} | {some.sum() / len(splits):,.0f} "
                    f"| {before[some].mean():.1f} | {gained[some].mean():+.1f} ± {error:.1f} |"
                )


def review_figure(found: Mapping[str, Sequence[Followed]]) -> str:
    """The tail against decisions, with the standard error of what was gained."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for colour, dashes, splits in zip(COLOURS, DASHES, found.values(), strict=False):
            decisions, tail = Curve.gained(splits)
            error = error_of_gain(splits)
            axes.fill_between(decisions, tail - error, tail + error, color=colour, alpha=0.15, lw=0)
            axes.plot(decisions, tail, color=colour, dashes=dashes, lw=1.7, marker="o", ms=3)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("decisions")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        percent_axis(axes, "macro-F1@5 of the tail, points gained", pad=8)

    return svg(draw, "wide", legend=list(found))
