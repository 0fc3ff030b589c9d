"""What separates the cells of a delimited file, found from its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ANNOUNCED = re.compile(r'"?sep=(.)"?\s*$')  # Excel writes and reads such a first line


class Dialect(NamedTuple):
    """What separates cells, whether quotes hold them together, and lines before the header."""

    delimiter: str
    quoted: bool = True
    skipped: int = 0

    @property
    def in_words(self) -> str:
        """Such as "separated by semicolons"."""
        name = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        return f"separated by {name}" + ("" if self.quoted else ", without quotes")

    def cells(self, texts: Sequence[str]) -> list[list[str]]:
        """The rows of these lines that are not blank; a line must end in its line feed."""
        found = []
        with suppress(csv.Error):  # where even the best cannot be made of it
            for row in self.reader(texts):
                found.append(row)
        return [row for row in found if any(map(str.strip, row))]

    def reader(self, texts: Iterable[str], *, strict: bool = False) -> Iterator[list[str]]:
        """The rows of these lines, one by one; strictly, or making the best of broken quotes."""
        if self.quoted:
            return csv.reader(texts, delimiter=self.delimiter, strict=strict)
        return csv.reader(texts, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)


def sniff(texts: Sequence[str], usual: str) -> Dialect:
    r"""The dialect in which the rows have as many cells as the header, and the most.

    Parameters
    ----------
    texts : sequence of str
        The first lines of the file, without their ends.
    usual : str
        The delimiter where nothing speaks for another, such as in a table of one column.

    Examples
    --------
    >>> sniff(["Titel;Jahr", "Wein, Bier;1999"], ",").in_words
    'separated by semicolons'
    >>> sniff(["sep=|", "a,b|c"], ",").delimiter
    '|'
    >>> sniff(['text\tlabels', '"Wine" and oil\ta'], "\t").quoted
    False
    """
    announced = _ANNOUNCED.match(texts[0]) if texts else None
    if announced:
        return Dialect(announced[1], skipped=1)
    lines = [f"{text}\n" for text in texts]
    others = [delimiter for delimiter in DELIMITERS if delimiter != usual]
    # max keeps the first of equals: the usual one.
    best = max([Dialect(usual), *map(Dialect, others)], key=lambda d: _fit(d.cells(lines)))
    return best._replace(quoted=best.delimiter != "\t" or _quotes_cells(lines))


def _fit(rows: Sequence[Sequence[str]]) -> tuple[float, int]:
    """How many rows have as many cells as the header, roughly, and how many cells that is."""
    if not rows or len(rows[0]) < 2:
        return 0.0, 0
    # The last row may have been cut off within quotes.
    body = rows[1:-1] or rows[1:]
    alike = sum(len(row) == len(rows[0]) for row in body)
    return (round(alike / len(body), 1) if body else 1.0), len(rows[0])


def _quotes_cells(lines: Sequence[str]) -> bool:
    """Whether quotes hold cells together in a file with tabs; many programs never write any."""
    rows = Dialect("\t", quoted=False).cells(lines)
    width = len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows):
        return True
    opened = [cell for row in rows for cell in row if cell.startswith('"')]
    closed = [cell for cell in opened if re.fullmatch(r'"(?:[^"]|"")*"', cell)]
    return 2 * len(closed) >= len(opened)
