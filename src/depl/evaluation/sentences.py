"""What the scores of a report mean, in plain sentences."""

from __future__ import annotations

from depl.evaluation.bands import BANDS
from depl.evaluation.scores import Report


def quality(report: Report) -> str:
    """How good suggestions are, as the second half of a sentence.

    Examples
    --------
    >>> from depl.evaluation.scores import Report
    >>> scores = {"P@1": 71.0, "P@5": 42.0, "R@5": 61.2}
    >>> quality(Report("", 9, 9, (1, 5), scores, {}, (), (1, 1))).split(", ")[0]
    'on average 2.1 of 5 suggestions are right'
    """
    k = report.k
    right, found = k * report.scores[f"P@{k}"] / 100, report.scores[f"R@{k}"]
    if k == 1:
        return f"the first suggestion is right for {100 * right:.0f} % of the documents"
    if _one_each(report):
        first = report.scores.get("P@1")
        place = "" if first is None else f", and for {first:.0f} % it is the first"
        said = f"for {found:.0f} % of the documents the label is among the first {k} suggestions"
        return said + place
    return (
        f"on average {right:.1f} of {k} suggestions are right, and {found:.0f} % of a document's "
        f"labels are among the first {k}"
    )


def _one_each(report: Report) -> bool:
    """Whether every document for which something is found has one label: found is all it has."""
    right = report.k * report.scores[f"P@{report.k}"]
    return right > 0 and abs(right - report.scores[f"R@{report.k}"]) < 1e-6


def summary(report: Report) -> list[str]:
    """A report in a few sentences: all labels, rare and common ones, probabilities."""
    k = report.k
    said = [_sentence(quality(report))]
    if k > 1 and "P@1" in report.scores and not _one_each(report):
        first = report.scores["P@1"]
        said.append(f"The first suggestion is right for {first:.0f} % of the documents.")
    said += _of_bands(report)
    if report.reliability is not None:
        error = 100 * report.reliability.error
        said.append(
            f"The probabilities differ from the share that is right by {error:.1f} points on "
            f"average."
        )
    return said


def _of_bands(report: Report) -> list[str]:
    """How much is found of rare and of common labels; nothing where all are of one band."""
    there = [band.name for band in BANDS if report.bands[band.name]["labels_in_test"]]
    if len(there) < 2:
        return []
    first, *others = (
        f"{report.bands[name][f'R@{report.k}']:.0f} % of those with {name}" for name in there
    )
    parts = f"{', '.join([first, *others[:-1]])} and {others[-1]}".replace(
        "of those", "of labels", 1
    )
    return [f"Among the first {report.k} are {parts} training documents."]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
