"""``--threshold`` of ``depl predict``: what it may be, and which score it asks for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from depl.cli.console import err
from depl.core.errors import ConfigError
from depl.evaluation.bands import BANDS
from depl.fusion.aims import parse_threshold, precision_of, probability_for, refuse_percent
from depl.fusion.thresholds import Thresholds
from depl.model.classifier import Classifier


def parsed(threshold: str | None, *, per_band: bool) -> float | str | None:
    """``--threshold``: a number as a number; precision=P and f1 as text."""
    if threshold is None:
        if per_band:
            raise ConfigError("--per-band needs --threshold precision=P or --threshold f1.")
        return None
    found = parse_threshold(threshold, "--threshold")
    if isinstance(found, str):
        return found
    if per_band:
        raise ConfigError(
            f"--per-band finds a threshold for each band, and --threshold {threshold} sets one for "
            f"all: give one of the two, or --threshold precision=P."
        )
    return found


def minimum_score(
    model: Classifier, aim: float | str | None, *, per_band: bool
) -> float | NDArray[np.float64] | None:
    """The score that a suggestion must reach, or each label's own."""
    if not isinstance(aim, str):
        if aim is not None and aim > 1 and model.gives_probabilities:
            refuse_percent(aim, "--threshold")
        return aim
    thresholds = model.thresholds
    if thresholds is None and model.model != "fusion":
        raise ConfigError(
            f"--threshold {aim} applies to the probabilities of all parts together; this is "
            f"the model {model.model}. Give a number, or --model fusion."
        )
    if per_band and thresholds is not None:
        _print_bands(thresholds, aim, precision_of(aim))
        return thresholds.of_labels(model.train_counts, precision_of(aim))
    found = probability_for(aim, thresholds, "--threshold")
    assert thresholds is not None
    expected = thresholds.curve().at(found)
    err.print(
        f"[dim]threshold {found:.3f}: expect {expected.precision:.0%} of the suggestions to be "
        f"right, and {expected.recall:.0%} of all labels to be found[/]"
    )
    return found


def _print_bands(thresholds: Thresholds, aim: str, precision: float | None) -> None:
    for band in BANDS:
        found = thresholds.of_band(band.name, precision)
        said = "never suggested: out of reach" if found is None else f"threshold {found:.3f}"
        if not thresholds.has_own(band.name):
            said += " (by all labels, as the held-out documents have too few of these)"
        err.print(f"[dim]{aim}, labels with {band.name} training documents: {said}[/]")
