"""What is wrong with a corpus, gathered while it is read, so that one message tells it all."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

EXAMPLES = 5


class Kind(Enum):
    """The kinds of trouble: what it is, what to do about it, and whether rows can be left out."""

    BROKEN_JSON = (
        "broken JSON",
        "Every line must be one JSON object. Mend or remove these lines.",
    )
    WRONG_FIELDS = (
        "fields of the wrong type",
        "An id is a string or a whole number, a text is a string, labels are a list of ids.",
    )
    WRONG_COLUMNS = (
        "rows with the wrong number of columns, or broken quotes",
        "Every row must have as many cells as the header; put quotes around cells that hold the "
        "separator, a quote (doubled) or a line break.",
    )
    WRONG_ENCODING = (
        "lines that are not UTF-8",
        "Convert the file, for example with: iconv -f latin1 -t utf-8 OLD > NEW",
    )
    DUPLICATE_DOCUMENTS = (
        "document ids that occur more than once in a split",
        "Give every document an id of its own, or remove the copies.",
    )
    NO_TEXT = ("documents with no text", "Fill in their text, or remove them.")
    NO_LABELS = ("documents with no label of the set", "Give them a label, or remove them.")
    UNKNOWN_LABELS = (
        "labels of documents that are not in the label set",
        "Add them to the labels file, or take them off the documents.",
    )
    DUPLICATE_LABELS = (
        "label ids that occur more than once in the labels file",
        "Keep one line for each label.",
    )
    UNNAMED_LABELS = (
        "labels with no name",
        "Fill in their names; depl finds rare labels by their names.",
    )
    UNREADABLE = (
        "files that cannot be read to their end",
        "Copy, unpack or compress them again; check the permissions.",
        True,
    )
    MISSING_COLUMNS = (
        "files that lack a column",
        "Name the columns in the first row: docs/formats.md says which are needed.",
        True,
    )
    # Nothing says which line is the missing one, so every pair after it would be wrong.
    UNEQUAL_LENGTHS = (
        "files that belong together and differ in length",
        "Make them again from one source: line by line they must describe the same things.",
        True,
    )
    EMPTY = ("files from which nothing is left", "Fill them, or take them away.", True)

    def __init__(self, title: str, remedy: str, fatal: bool = False) -> None:
        self.title = title
        self.remedy = remedy
        self.fatal = fatal


@dataclass
class _Cases:
    """One kind of trouble: how often, with which details, and the first few."""

    count: int = 0
    details: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)


class Trouble:
    """Everything wrong with one corpus, by kind.

    Examples
    --------
    >>> trouble = Trouble()
    >>> trouble.add(Kind.UNKNOWN_LABELS, "train.jsonl:3", "'99'")
    >>> trouble.add(Kind.UNKNOWN_LABELS, "train.jsonl:8", "'99'")
    >>> print(trouble.listing(remedies=False))
    - labels of documents that are not in the label set: 2 found, 1 different
        train.jsonl:3  '99'
    """

    def __init__(self) -> None:
        self._cases: dict[Kind, _Cases] = {}

    def add(self, kind: Kind, where: str, detail: str = "") -> None:
        """Note one case; ``where`` is ``file`` or ``file:line``."""
        cases = self._cases.setdefault(kind, _Cases())
        cases.count += 1
        # The same unknown label a thousand times is one example, not five.
        again = kind is Kind.UNKNOWN_LABELS and detail in cases.details
        cases.details.add(detail)
        if not again and len(cases.examples) < EXAMPLES:
            cases.examples.append(f"{where}  {detail}" if detail else where)

    def count(self, kind: Kind) -> int:
        """How many cases of this kind were noted."""
        cases = self._cases.get(kind)
        return cases.count if cases else 0

    def __bool__(self) -> bool:
        return bool(self._cases)

    @property
    def fatal(self) -> bool:
        """Whether something was found that cannot be left out."""
        return any(kind.fatal for kind in self._cases)

    def listing(self, *, remedies: bool) -> str:
        """Kinds with counts and the first examples, in the order of ``Kind``."""
        lines = []
        for kind in Kind:
            if kind not in self._cases:
                continue
            cases = self._cases[kind]
            count = f"{cases.count} found"
            if kind is Kind.UNKNOWN_LABELS:
                count += f", {len(cases.details)} different"
            lines.append(f"- {kind.title}: {count}")
            lines += [f"    {example}" for example in cases.examples]
            if remedies:
                lines.append(f"  {kind.remedy}")
        return "\n".join(lines)
