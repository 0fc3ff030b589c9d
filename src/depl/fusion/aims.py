"""Thresholds in words: ``precision=0.8`` and ``f1``, which a run turns into probabilities."""

from __future__ import annotations

import math
from typing import NoReturn

from depl.core.errors import ConfigError
from depl.fusion.thresholds import Thresholds


def parse_threshold(text: str, what: str = "threshold") -> float | str:
    """A number as a number; ``precision=P`` and ``f1`` as text, in one spelling.

    Parameters
    ----------
    text : str
        What somebody gave.
    what : str
        What they call it, for the message that refuses it.

    Examples
    --------
    >>> parse_threshold("0.3"), parse_threshold("precision = .80"), parse_threshold("f1")
    (0.3, 'precision=0.8', 'f1')
    """
    aim, _, wanted = text.replace(" ", "").partition("=")
    try:
        number = float(wanted if aim == "precision" else text)
    except ValueError:
        number = math.nan
    if aim == "precision" and 0 < number <= 1:
        return f"precision={number:g}"
    if text == "f1":
        return "f1"
    if aim == "precision" or math.isnan(number):
        raise ConfigError(
            f"{what} must be a number, precision=P with P above 0 and at most 1 (precision=0.8: "
            f"80 % of the suggestions are right), or f1; got {text[:100]}."
        )
    return number


def refuse_percent(number: float, what: str = "threshold") -> NoReturn:
    """Raise ``ConfigError`` for a threshold that no probability reaches."""
    share = f"; for {number:g} % give {number / 100:g}" if number <= 100 else ""
    raise ConfigError(
        f"{what} is compared with probabilities, which are at most 1; got {number:g}{share}. "
        f"({what} precision=0.8 finds the one at which 80 % of the suggestions are right.)"
    )


def precision_of(aim: str) -> float | None:
    """The precision that a threshold in words asks for; None: the best F1."""
    return None if aim == "f1" else float(aim.partition("=")[2])


def probability_for(aim: str, thresholds: Thresholds | None, what: str = "threshold") -> float:
    """The probability from which suggestions are as good as a threshold in words asks for.

    Raises ``ConfigError`` where the run has no thresholds, or does not reach the precision.
    """
    if thresholds is None:
        raise ConfigError(
            f"{what} {aim} needs the thresholds that the fusion stage finds, and this run "
            f"has none. Finish it with `depl fit RUN`, or find them with `depl fit RUN --from "
            f"fusion`; or give a number."
        )
    precision = precision_of(aim)
    found = thresholds.best_f1 if precision is None else thresholds.for_precision(precision)
    if found is None:
        highest = float(thresholds.curve().certain.max(initial=0.0))
        raise ConfigError(
            f"{what} {aim} is out of reach: on the validation documents, even the most "
            f"confident suggestions are right in at most {highest:.1%} of the cases, one standard "
            f"error deducted. Ask for a lower precision."
        )
    return found
