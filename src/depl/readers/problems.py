"""What is wrong with the input: counted while it is read, and passed on at once where wanted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

EXAMPLES = 5
_LONGEST_DETAIL = 300  # characters; a detail may quote a field or a cell of any length
_LONGEST_LISTING = 1_500  # characters, to which the name of the corpus and advice are added


class Kind(Enum):
    """The kinds of problems: what it is, what to do about it, and whether rows can be left out."""

    BROKEN_JSON = (
        "broken JSON",
        "Every line must be one JSON object. Correct or remove these lines.",
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
        "Name the encoding of a table, such as --encoding cp1252, or convert the file, for example "
        "with: iconv -f latin1 -t utf-8 OLD > NEW",
    )
    DUPLICATE_DOCUMENTS = (
        "document ids that occur more than once in a split",
        "Give every document an id of its own, or remove the copies.",
    )
    NO_DOCUMENT = (
        "files without a text that can be read",
        "Save them as PDF, .docx, HTML or plain text; install what depl[documents] needs.",
    )
    NO_RECORD = (
        "records that are no MARC records",
        "Export them again, or repair them.",
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
    CIRCLES = (
        "broader labels that lead in a circle",
        "No label can be broader than itself: remove one link of each circle.",
    )
    TOO_LONG = (
        "lines longer than 64 MiB",
        "No document is this long: line breaks are missing. Correct or remove these lines.",
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
    EMPTY = ("files from which nothing is left", "Fill them, or remove them.", True)

    def __init__(self, title: str, remedy: str, fatal: bool = False) -> None:
        self.title = title
        self.remedy = remedy
        self.fatal = fatal


# Of the other kinds the detail says enough, and there always is one.
_IN_ONE_ROW = {
    Kind.BROKEN_JSON: "broken JSON",
    Kind.WRONG_ENCODING: "not UTF-8",
    Kind.NO_TEXT: "no text",
}


class Problem(NamedTuple):
    """One problem, and its place: ``file``, or ``file:line``."""

    kind: Kind
    where: str
    detail: str

    @property
    def reason(self) -> str:
        """What is wrong, without the place.

        Examples
        --------
        >>> Problem(Kind.WRONG_ENCODING, "new.txt:3", "byte 7 is 0xe4").reason
        'not UTF-8: byte 7 is 0xe4'
        """
        return ": ".join(filter(None, (_IN_ONE_ROW.get(self.kind), self.detail)))


class Problems:
    """Everything that is wrong with one input, by kind.

    Parameters
    ----------
    tell : callable, optional
        Called with each ``Problem`` as soon as it is found. What it raises ends the reading.

    Examples
    --------
    >>> problems = Problems()
    >>> problems.add(Kind.UNKNOWN_LABELS, "train.jsonl:3", "'99'")
    >>> problems.add(Kind.UNKNOWN_LABELS, "train.jsonl:8", "'99'")
    >>> print(problems.listing(remedies=False))
    - labels of documents that are not in the label set: 2 found, 1 different
        train.jsonl:3  '99'
    """

    def __init__(self, tell: Callable[[Problem], None] | None = None) -> None:
        self._tell = tell
        self._counts: Counter[Kind] = Counter()
        self._examples: dict[Kind, list[str]] = defaultdict(list)
        self._unknown_labels: set[str] = set()

    def add(self, kind: Kind, where: str, detail: str = "") -> None:
        """Note one problem; ``where`` is ``file`` or ``file:line``."""
        if len(detail) > _LONGEST_DETAIL:
            detail = f"{detail[: _LONGEST_DETAIL - 1]}…"
        self._counts[kind] += 1
        again = False
        if kind is Kind.UNKNOWN_LABELS:
            # The same unknown label a thousand times is one example, not five.
            again = detail in self._unknown_labels
            self._unknown_labels.add(detail)
        if not again and len(self._examples[kind]) < EXAMPLES:
            self._examples[kind].append(f"{where}  {detail}" if detail else where)
        if self._tell is not None:
            self._tell(Problem(kind, where, detail))

    def count(self, kind: Kind) -> int:
        """How many problems of this kind were noted."""
        return self._counts[kind]

    def __bool__(self) -> bool:
        return bool(self._counts)

    @property
    def kinds(self) -> set[Kind]:
        """The kinds that were found."""
        return set(self._counts)

    @property
    def fatal(self) -> bool:
        """Whether something was found that cannot be left out."""
        return any(kind.fatal for kind in self._counts)

    def listing(self, *, remedies: bool) -> str:
        """Kinds with counts and the first examples, in the order of ``Kind``.

        Where that is long, fewer examples and no remedies are given.
        """
        for examples, told in ((EXAMPLES, remedies), (2, remedies), (1, remedies), (1, False)):
            text = self._listing(examples, told)
            if len(text) <= _LONGEST_LISTING:
                break
        return text

    def _listing(self, examples: int, remedies: bool) -> str:
        lines = []
        for kind in filter(self._counts.__contains__, Kind):
            count = f"{self._counts[kind]} found"
            if kind is Kind.UNKNOWN_LABELS:
                count += f", {len(self._unknown_labels)} different"
            lines.append(f"- {kind.title}: {count}")
            lines += [f"    {example}" for example in self._examples[kind][:examples]]
            if remedies:
                lines.append(f"  {kind.remedy}")
        return "\n".join(lines)
