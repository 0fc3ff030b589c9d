"""Labels given by name: spellings that differ only in white space, case or Unicode form are one."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

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


_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)
_CODE = re.compile(r"\d+([. -]\d+)*", re.ASCII)
_KNOWN_CODE = re.compile(r"(?=.{1,16}$)[A-Z]{0,3}\d\w*([. /-]\w+)*", re.ASCII)
_SHORTEST = 4  # digits of a code in which points make no difference


class Codes:
    """Finds codes that are written otherwise: as numbers by a spreadsheet, or without points.

    Parameters
    ----------
    labels : iterable of str
        The labels, of which those that consist of digits are codes. What may be several is none.

    Examples
    --------
    >>> codes = Codes(["0101.21", "2204.10", "0007", "wine"])
    >>> codes.find("101.21"), codes.find("010121"), codes.find("10121"), codes.find("2204.1")
    ('0101.21', '0101.21', '0101.21', '2204.10')
    >>> codes.find("7"), codes.find("1012.1"), codes.find("12"), codes.find("wine")
    ('0007', '0101.21', None, None)
    """

    def __init__(self, labels: Iterable[str]) -> None:
        found: dict[str, set[str]] = defaultdict(set)
        for label in labels:
            for form in self._forms(label):
                found[form].add(label)
        self._known = {form: min(some) for form, some in found.items() if len(some) == 1}

    def find(self, label: str) -> str | None:
        """The one code that this may be; the zeros at its ends count for more than its points."""
        forms = self._forms(label)
        return next((self._known[form] for form in forms if form in self._known), None)

    @staticmethod
    def _forms(label: str) -> list[str]:
        forms = []
        if _NUMBER.fullmatch(label):
            whole, _, decimals = label.partition(".")
            forms.append(f"{whole.lstrip('0') or '0'}.{decimals.rstrip('0')}")
        digits = "".join(filter(str.isdigit, label))
        if _CODE.fullmatch(label) and len(digits) >= _SHORTEST:
            forms.append(digits.lstrip("0"))
        return forms


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


def lost_zeros(labels: Iterable[str]) -> bool:
    """Whether labels look like codes of one length, some of which have lost a zero.

    Examples
    --------
    >>> lost_zeros(["10121", "20110", "220421", "851713"]), lost_zeros(["010121", "220421"])
    (True, False)
    >>> lost_zeros(["7", "12", "105"]), lost_zeros(["wine", "oil"]), lost_zeros([])
    (False, False, False)
    """
    found = list(labels)
    if not found or not all(_NUMBER.fullmatch(label) and label[0] != "0" for label in found):
        return False
    lengths = sorted({len(label.partition(".")[0]) for label in found})
    return len(lengths) == 2 and lengths[0] + 1 == lengths[1] and lengths[1] >= _SHORTEST


def are_codes(ids: Iterable[str]) -> bool:
    """Whether ids are codes that people know, such as tariff codes, and no numbers of a database.

    They are short, and have zeros at the beginning, points, or letters before their digits.

    Examples
    --------
    >>> are_codes(["0101.21", "2204.10"]), are_codes(["010121", "851713"]), are_codes(["J45.0"])
    (True, True, True)
    >>> are_codes(["2560", "161"]), are_codes(["wine", "oil"]), are_codes(["gnd:4005857-8"])
    (False, False, False)
    """
    found = list(ids)
    odd = (id for id in found if _KNOWN_CODE.fullmatch(id) is None)
    if not found or next(islice(odd, len(found) // 20, None), None) is not None:  # one in twenty
        return False
    marked = sum("." in id or id[0].isalpha() for id in found)
    return 2 * marked > len(found) or any(id[0] == "0" and len(id) > 1 for id in found)
