"""How objects show themselves in a line and in a notebook: small tables, all in them escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

_CELL = 120  # characters of a cell that are shown
_NAMES = 20  # of a list of names, how many are shown


def shortened(text: str, length: int = _CELL) -> str:
    """The beginning of a text, in one line.

    Examples
    --------
    >>> shortened("sparkling wine  and oil", 12)
    'sparkling w…'
    """
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def listing(names: Sequence[str]) -> str:
    """Names between commas, each shortened, the first of them if there are many.

    Examples
    --------
    >>> listing(["id", "text"]), listing(list("abcdefghijklmnopqrstuvwxyz"))[-14:]
    ('id, text', 't and 6 others')
    """
    shown = ", ".join(shortened(name, 50) for name in islice(names, _NAMES))
    rest = len(names) - _NAMES
    return f"{shown} and {rest:,} others" if rest > 0 else shown


def count(n: int, singular: str, plural: str | None = None) -> str:
    """A number and what it counts; by default the plural is the singular and an s.

    Examples
    --------
    >>> count(1, "document"), count(1200, "label"), count(2, "row was", "rows were")
    ('1 document', '1,200 labels', '2 rows were')
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title and a table; cells are text, whatever they hold.

    Examples
    --------
    >>> html_table("a < b", ["x"], [["<script>"]])
    '<p><b>a &lt; b</b></p><table><tr><th>x</th></tr><tr><td>&lt;script&gt;</td></tr></table>'
    """
    lines = ["".join(f"<th>{escape(name)}</th>" for name in header)]
    for row in rows:
        lines.append("".join(f"<td>{escape(shortened(str(cell)))}</td>" for cell in row))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<p><b>{escape(title)}</b></p><table>{body}</table>"
