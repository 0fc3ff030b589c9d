"""Pseudo descriptions: a label's name followed by its keywords (section 3.1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from depl.core.corpus import LabelSet


def count_words(text: str) -> int:
    """How many words a text has: the budget's unit as long as there is no encoder."""
    return len(text.split())


def describe(
    labels: LabelSet,
    keywords: Sequence[Sequence[str]],
    *,
    max_tokens: int = 16,
    count_tokens: Callable[[str], int] = count_words,
) -> list[str]:
    """Write every label's pseudo description.

    The name always stands whole; keywords follow in order as long as the budget lasts, and none is
    cut in the middle. A label without keywords, because no training document carries it, has its
    other names in their place.

    Parameters
    ----------
    labels : LabelSet
        What to describe.
    keywords : sequence of sequences of str
        The keywords of each label, in order; none where no training document carries the label.
    max_tokens : int
        The budget: 16 is the paper's best, 32 its other setting.
    count_tokens : callable
        Counts the tokens of a text; an encoder's tokenizer, or words.

    Examples
    --------
    >>> from depl.core.corpus import Label
    >>> labels = LabelSet([Label("1", "wine"), Label("2", "mead", ("honey wine",))])
    >>> describe(labels, [["grape", "cellar"], []], max_tokens=2)
    ['wine grape', 'mead']
    >>> describe(labels, [["grape", "cellar"], []])
    ['wine grape cellar', 'mead honey wine']
    """
    return [
        _fill(label.name, words or label.alt_names, max_tokens, count_tokens)
        for label, words in zip(labels, keywords, strict=True)
    ]


def _fill(
    name: str, additions: Sequence[str], max_tokens: int, count_tokens: Callable[[str], int]
) -> str:
    text, used = name, count_tokens(name)
    for addition in additions:
        used += count_tokens(addition)
        if used > max_tokens:
            break
        text = f"{text} {addition}"
    return text
