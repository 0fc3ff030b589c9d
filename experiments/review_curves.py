"""What a review saves, from the curves of the tail against decisions: shares, errors, a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from depl.evaluation.figures import COLOURS, DASHES, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWS = 1_000  # of the bootstrap
INTERVAL = 2.5, 97.5  # percentiles

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


class Curve(NamedTuple):
    """The tail by decisions."""

    decisions: Floats
    tail: Floats

    @classmethod
    def mean(cls, orders: Sequence[Followed], weights: Floats | None = None) -> Curve:
        """The mean of some orders; the labels may have weights."""
        f1 = np.mean([x.f1 for x in orders], axis=0)
        decisions = np.mean([x.said.sum(axis=1) for x in orders], axis=0)
        return cls(decisions, np.average(f1, axis=1, weights=weights))

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


def shares_drawn(order: Followed, at_random: Sequence[Followed], seed: int = 0) -> Floats:
    """The same with labels and random orders drawn with replacement, as often as ``DRAWS``."""
    rng = np.random.default_rng(seed)
    n_labels, n = order.f1.shape[1], len(at_random)
    drawn = []
    for _ in range(DRAWS):
        weights = np.bincount(rng.integers(n_labels, size=n_labels), minlength=n_labels)
        some = [at_random[i] for i in rng.integers(n, size=n)]
        own = Curve.mean([order], weights.astype(np.float64))
        drawn.append(shares(own, Curve.mean(some, weights.astype(np.float64))))
    return np.array(drawn)


def print_report(review: Followed, oracle: Followed, at_random: Sequence[Followed]) -> None:
    """Two tables: the scores, and which share of the decisions at random is needed, 95 % sure."""
    rows = {"review": [review], "random": list(at_random), "oracle": [oracle]}
    print("| documents | order | accepted | added | rejected | decisions | tail | ± | P@5 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for i, documents in enumerate(review.documents.tolist()):
        for name, orders in rows.items():
            said = np.mean([x.said[i] for x in orders], axis=0)
            numbers = " | ".join(f"{x:,.0f}" for x in (*said, said.sum()))
            f1 = np.mean([x.f1[i] - x.f1[0] for x in orders], axis=0)
            error = f1.std() / np.sqrt(len(f1))  # of what was gained
            tail = Curve.mean(orders).tail[i]
            precision = np.mean([x.precision[i] for x in orders])
            print(
                f"| {documents:,} | {name} | {numbers} | {tail:.2f} | {error:.2f} "
                f"| {precision:.2f} |"
            )
    print("\n| documents at random | tail | review needs | oracle needs |")
    print("| --- | --- | --- | --- |")
    mean, found = Curve.mean(at_random), []
    for order in (review, oracle):
        bounds = np.percentile(shares_drawn(order, at_random), INTERVAL, axis=0, method="nearest")
        three = zip(shares(Curve.mean([order]), mean), *bounds, strict=True)
        found.append([f"{x:.0%} ({low:.0%} to {high:.0%})" for x, low, high in three])
    for i, (own, best) in enumerate(zip(*found, strict=True), start=1):
        print(f"| {review.documents[i]:,} | {mean.tail[i]:.2f} | {own} | {best} |")


def review_figure(review: Followed, oracle: Followed, at_random: Sequence[Followed]) -> str:
    """The tail against decisions: of the review, at random (each order thin), of the oracle."""
    curves = {"review": [review], "at random": list(at_random), "oracle": [oracle]}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for colour, dashes, orders in zip(COLOURS, DASHES, curves.values(), strict=False):
            mean = Curve.mean(orders)
            axes.plot(*mean, color=colour, dashes=dashes, linewidth=1.7, marker="o", markersize=3)
            for order in orders if len(orders) > 1 else []:
                axes.plot(*Curve.mean([order]), color=colour, linewidth=0.6, alpha=0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel("decisions")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylabel("macro-F1@5 of the tail, %")

    return svg(draw, "wide", legend=list(curves))
