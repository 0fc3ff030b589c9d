"""What kind of texts a corpus has: short ones, and such with titles; some of them tell."""

from __future__ import annotations

from collections.abc import Sequence

from depl.core.texts import title_of
from depl.sparse.words import WORD

_SHORT = 300  # words of a text on average, for pairs to be taken
_FEW = 3_000_000  # words of all texts together
_LOOKED_AT = 1_000  # texts by which that is decided, and whether they have titles
USUAL = 0.5  # share of texts with a title from which on titles count


def some_of(texts: Sequence[str]) -> Sequence[str]:
    """Texts at even distances, by which is decided what all are like."""
    return texts[:: max(1, len(texts) // _LOOKED_AT)]


def are_short(some: Sequence[str], n: int) -> bool:
    """Whether n texts have few words, each and together, by some of them at even distances."""
    words = sum(len(WORD.findall(text)) for text in some) / max(1, len(some))
    return words <= min(_SHORT, _FEW / max(1, n))


def have_titles(some: Sequence[str]) -> bool:
    """Whether most texts have a title, by some of them at even distances."""
    return sum(bool(title_of(text)) for text in some) >= USUAL * max(1, len(some))
