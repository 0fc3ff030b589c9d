"""Labels given by name: spellings that differ only in white space, case or Unicode form are one."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

# Invisible, and left behind by word processors: soft hyphen, zero-width space, byte order mark.
_INVISIBLE = dict.fromkeys((0x00AD, 0x200B, 0xFEFF))


def tidy(name: str) -> str:
    """The name with single spaces, composed characters, and nothing invisible.

    Examples
    --------
    >>> tidy("  sparkling   wine ")
    'sparkling wine'
    """
    return unicodedata.normalize("NFC", " ".join(name.translate(_INVISIBLE).split()))


def sameness(name: str) -> str:
    """What two spellings of one label have in common; empty for a blank name.

    Examples
    --------
    >>> sameness("Sparkling  WINE ") == sameness("sparkling wine")
    True
    """
    # Folding case can undo the normal form, and the normal form can bring capitals back.
    folded = unicodedata.normalize("NFKC", tidy(name)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).casefold().split())


class Spellings:
    """Which label each spelling means; the commonest spelling is the label's name.

    Of spellings that are equally common, one that is not all in capitals is taken, and then the
    first in the alphabet: the result does not depend on the order of the documents.

    Parameters
    ----------
    counts : mapping of str to int
        How often each spelling occurs. Blank ones are ignored.
    known : iterable of str
        Names that are labels already, such as those of a run; they keep their spelling.

    Attributes
    ----------
    names : list of str
        The labels, the known ones first, then in the order in which they first occur in ``counts``.
    variants : dict of str to list of str
        The labels with several spellings, and all of these, commonest first.

    Examples
    --------
    >>> spellings = Spellings({"Wine": 3, "wine ": 2, "WINE": 1, "Oil": 1})
    >>> spellings.names, spellings.variants
    (['Wine', 'Oil'], {'Wine': ['Wine', 'wine ', 'WINE']})
    >>> spellings.labels(["wine", " oil", "", "Wine"])
    ['Wine', 'Oil']
    """

    def __init__(self, counts: Mapping[str, int], *, known: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        for name in known:
            self._names.setdefault(sameness(name), name)
        groups: dict[str, Counter[str]] = defaultdict(Counter)
        for spelling, n in counts.items():
            groups[sameness(spelling)][spelling] += n
        groups.pop("", None)
        self.variants: dict[str, list[str]] = {}
        for same, group in groups.items():
            tidied: Counter[str] = Counter()
            for spelling, n in group.items():
                tidied[tidy(spelling)] += n
            name = self._names.setdefault(same, _commonest(tidied)[0])
            if len(group) > 1:
                self.variants[name] = _commonest(group)
        self.names = list(self._names.values())

    @classmethod
    def learn(cls, documents: Iterable[Iterable[str]], *, known: Iterable[str] = ()) -> Spellings:
        """From the labels of each document.

        Examples
        --------
        >>> Spellings.learn([["Wine", "oil"], ["wine"], ["wine"]]).names
        ['wine', 'oil']
        """
        counts: Counter[str] = Counter()
        for labels in documents:
            counts.update(labels)
        return cls(counts, known=known)

    def labels(self, spellings: Iterable[str]) -> list[str]:
        """The labels that these spellings mean, each once; one never seen means itself."""
        found = (self._names.get(sameness(s), tidy(s)) for s in spellings)
        return [name for name in dict.fromkeys(found) if name]


def _commonest(counts: Mapping[str, int]) -> list[str]:
    """The spellings, the best name for the label first."""
    return sorted(counts, key=lambda spelling: (-counts[spelling], spelling.isupper(), spelling))
