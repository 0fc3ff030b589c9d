"""The results of a study in numbers: spreads of margins, bounds and rates by dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from depl.theory.study import Margins, Study
from depl.theory.theorem import COSINE, bound, dimension_needed, gap_needed, misordering

_ENCODER_D = 768  # the dimension of the paper's encoder


def summary(study: Study) -> dict[str, Any]:
    """The results as plain numbers; shares and probabilities are fractions.

    It is the object that ``depl theory --json`` prints.
    """
    t, k = study.theorem, study.keyword
    m = float(np.median(study.sizes))
    asked, right = gap_needed(m, _ENCODER_D)
    needed = {
        "theorem": dimension_needed(t.gap),
        "keyword": dimension_needed(k.gap),
        "cosine": dimension_needed(k.cosine, constant=COSINE),
        "theorem_sets": dimension_needed(t.set_gap, study.sizes),
        "keyword_sets": dimension_needed(k.set_gap, study.sizes),
    }
    medians = {name: float(np.median(d)) for name, d in needed.items()}
    return {
        "documents": study.documents,
        "labels": study.labels,
        "sets": len(study.sizes),
        "pairs": study.pairs,
        "negatives": _spread(study.sizes),
        "theorem": {
            "margin": _spread(t.epsilon),
            "delta": _spread(t.delta),
            "gap": _spread(t.gap),
            "set_margin": _spread(t.set_epsilon),
            "set_delta": _spread(t.set_delta),
            "set_gap": _spread(t.set_gap),
        },
        "keyword": {
            "gap": _spread(k.gap),
            "cosine": _spread(k.cosine),
            "set_gap": _spread(k.set_gap),
        },
        "dimensions": {str(d): _at(study, i, d) for i, d in enumerate(study.dimensions)},
        # JSON has no infinity: null where more than half have no gap.
        "median_dimension_needed": {
            name: round(d) if np.isfinite(d) else None for name, d in medians.items()
        },
        "printed_condition": {
            "negatives": m,
            "d": _ENCODER_D,
            "gap_asked": float(asked),
            "bound_printed": 1 / m,
            "bound_there": float(bound(asked, _ENCODER_D, m)),
            "gap_for_bound_printed": float(right),
        },
    }


def _spread(values: NDArray[Any]) -> dict[str, float]:
    low, middle, high = np.percentile(values, [5, 50, 95])
    return {
        "5%": float(low),
        "median": float(middle),
        "95%": float(high),
        "positive": float(np.mean(values > 0)),
    }


def _at(study: Study, i: int, d: int) -> dict[str, Any]:
    """The bounds in dimension d, and exact and simulated rates."""
    found: dict[str, Any] = {}
    for name, margins in (("theorem", study.theorem), ("keyword", study.keyword)):
        found[name] = {
            **_informative(bound(margins.gap, d), margins, d),
            "sets_bounded": float(np.mean(bound(margins.set_gap, d, study.sizes) < 1)),
            "exact": float(misordering(margins.cosine, d).mean()),
            "simulated": rate(int(margins.pair_errors[i]), study.pairs),
            "simulated_sets": rate(int(margins.set_errors[i]), study.pairs),
        }
    k = study.keyword
    found["cosine"] = _informative(bound(k.cosine, d, constant=COSINE), k, d)
    return found


def _informative(bounds: NDArray[np.float64], margins: Margins, d: int) -> dict[str, float | None]:
    """The share of pairs with a bound below 1, and for those the mean bound and exact rate."""
    bounded = bounds < 1
    exact = misordering(margins.cosine[bounded], d)
    return {
        "pairs_bounded": float(bounded.mean()),
        "bound_there": float(bounds[bounded].mean()) if bounded.any() else None,
        "exact_there": float(exact.mean()) if bounded.any() else None,
    }


def rate(errors: int, trials: int) -> dict[str, float]:
    """A simulated rate with its 95 % confidence interval.

    Trials that are independent but have different probabilities scatter less than binomial ones
    (Hoeffding, 1956), so for their mean probability Clopper and Pearson's interval is, if anything,
    too wide.
    """
    found = binomtest(errors, trials).proportion_ci(0.95, method="exact")
    return {"rate": errors / trials, "low": float(found.low), "high": float(found.high)}
