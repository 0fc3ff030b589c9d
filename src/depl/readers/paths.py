"""Labels that are paths, as shops write their categories: Home > Kitchen > Knives.

A path stays the label's id and name, as people wrote it. What it tells is what is broader.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from depl.core.corpus import Corpus, Dataset, LabelSet

_SURE = (">", "›", "»", "→")  # which names do not hold
_OTHERS = ("::", "/", "\\")  # which they do, but not nearly all of them
_SHARE = 0.8  # of the labels that must have it
_BRANCHES = {True: 0.67, False: 0.34}  # different beginnings, at most, to a label
_FEWEST = 3  # labels


def find_path_separator(labels: Collection[str]) -> str:
    """What separates the steps of labels that are paths, with its spaces; empty for other labels.

    Examples
    --------
    >>> find_path_separator(["Home > Kitchen", "Home > Bath", "Home>Bath > Towels"])
    ' > '
    >>> find_path_separator(["TCP/IP", "AC/DC", "Input/Output", "and/or"])
    ''
    >>> find_path_separator(["food/bread", "food/oil", "food/oil/olive", "drink/wine", "drink/tea"])
    ''
    >>> find_path_separator(["a/b", "a/c", "a/d", "e/f", "e/g", "e/h"])
    '/'
    """
    if len(labels) < _FEWEST:
        return ""
    for sign in (*_SURE, *_OTHERS):
        paths = [label for label in labels if len(_steps(label, sign)) > 1]
        if len(paths) < _SHARE * len(labels):
            continue
        first = {_steps(label, sign)[0].casefold() for label in paths}
        if len(first) <= _BRANCHES[sign in _SURE] * len(paths):
            return as_written(paths, sign)
    return ""


def _steps(label: str, sign: str) -> list[str]:
    return [step for step in map(str.strip, label.split(sign)) if step]


def as_written(labels: Collection[str], sign: str) -> str:
    """The separator with or without a space on either side, as most labels have it."""
    spaced = sum(f" {sign} " in label for label in labels)
    return f" {sign} " if 2 * spaced > sum(sign in label for label in labels) else sign


def tidy_path(label: str, separator: str) -> str:
    """The path with its separator written in one way, and none at its end.

    Examples
    --------
    >>> tidy_path("Home>Bath >  Towels >", " > "), tidy_path("/home/bath/", "/")
    ('Home > Bath > Towels', '/home/bath')
    """
    steps = [step.strip() for step in label.split(separator.strip())]
    while len(steps) > 1 and not steps[-1]:
        steps.pop()
    return separator.join(steps)


def above(path: str, separator: str) -> str:
    """The path one step up; empty at the top.

    Examples
    --------
    >>> above("Home > Bath > Towels", " > "), above("Home", " > "), above("/home", "/")
    ('Home > Bath', '', '')
    """
    return path.rpartition(separator)[0] if separator else ""


def with_paths(dataset: Dataset, separator: str) -> Dataset:
    """The same with what is broader than each label, by its path."""
    found = (
        replace(x, broader=tuple(filter(None, [above(x.id, separator)]))) for x in dataset.labels
    )
    labels = LabelSet(found)
    splits = {name: Corpus(x.ids, x.texts, x.Y, labels) for name, x in dataset.splits.items()}
    return replace(dataset, labels=labels, splits=splits)
