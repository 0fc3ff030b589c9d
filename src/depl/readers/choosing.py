"""Choosing the columns of a table: those asked for, or by their names, or by what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn

from depl.core.display import listing, shortened
from depl.core.errors import CorpusError
from depl.readers.column_names import Role, role_of
from depl.readers.columns import Columns
from depl.readers.fields import LIST, MARKS, WrongFieldError, as_names, is_mark
from depl.readers.paths import find_path_separator
from depl.readers.spellings import sameness
from depl.readers.tables import Table, same_names

SEPARATORS = (";", "|", "\n", ",")  # that a cell of labels may have, the surest first
_PROSE = 8  # words in a cell, on average, from which on a column without a telling name is text
_NAME = 4  # words in a label, on average, up to which a column without a telling name has labels
_OFTEN = 0.05  # share of the cells that must have a separator
_COMMAS = 0.25  # and for a comma, which names may have


def choose(
    name: str,
    table: Table,
    asked: Columns,
    *,
    kept: Columns | None = None,
    labelled: bool = True,
) -> Columns:
    """The columns of a table to take documents from.

    Parameters
    ----------
    name : str
        What messages call the table.
    table : Table
        Its header, and its first rows.
    asked : Columns
        What was asked for; these columns must be there.
    kept : Columns, optional
        What was taken before, such as by the run; used as far as it is there.
    labelled : bool
        Whether labels are needed, too.
    """
    find = _Finder(name, table)
    kept = kept or Columns()
    id = find.given((asked.id,), "--id")[0] if asked.id else None
    # Labels that are not needed keep their columns from being taken for text.
    given = find.given(asked.labels, "--labels") if labelled else find.there(asked.labels)
    labels = given or find.there(kept.labels)
    text = find.given(asked.text, "--text") or find.there(kept.text)
    if asked.text and (both := [column for column in text if column in given]):
        raise CorpusError(
            f"The column {both[0]!r} is asked for as text and as labels; a text that holds its "
            f"labels teaches nothing. Name another column of {name} for one of them."
        )
    if not labels and labelled:
        labels = find.labels({*text, *filter(None, [id])})
    known = {*labels, *filter(None, [id]), *find.there([kept.id])}
    if not text:
        text = find.text(known)
    elif not asked.text and len(text) < len(kept.text):
        # Some are called otherwise here: what the names tell is better than half of the text.
        named = find.named_text(known)
        text = named if set(text) < set(named) else text
    if id is None and asked.id != "":
        id = next(iter(find.there([kept.id])), None) or find.id({*labels, *text}, text)
    separator = asked.separator
    if separator is None and labels == find.there(kept.labels):
        separator = kept.separator
    if separator is None and labelled:
        separator = find.separator(labels)
    merge, sheet = asked.merge and kept.merge, asked.sheet or kept.sheet
    return Columns(text, labels if labelled else (), id, separator, merge, sheet, asked.path)


class _Finder:
    """Looks for columns in the header and the first rows of one table."""

    def __init__(self, name: str, table: Table) -> None:
        in_sheet = f", {table.described}" if table.described.startswith("sheet ") else ""
        self._name = name + in_sheet
        self._header = list(table.header)
        self._known = same_names(table.header)
        self._sample = table.sample
        self._rows: Sequence[dict[str, object]] | None = None

    def given(self, names: Sequence[str], option: str) -> tuple[str, ...]:
        """The columns of these names, each of which may be several between commas."""
        found: list[str] = []
        for name in names:
            whole = self._known.get(sameness(name))
            parts = [name] if whole else list(filter(str.strip, name.split(",")))
            found += [
                self._known.get(sameness(part)) or self._lacks(part, option) for part in parts
            ]
        return tuple(dict.fromkeys(found))

    def there(self, names: Iterable[str | None]) -> tuple[str, ...]:
        """Those of these columns that the table has."""
        found = (self._known.get(sameness(name)) for name in names if name)
        return tuple(column for column in found if column)

    def id(self, taken: set[str], text: Sequence[str]) -> str | None:
        """A column that is called like an id, and has no value in rows of different texts.

        A table may hold a row twice, or once for each of its labels.
        """
        for column in self._of("id"):
            found = {(str(row[column]), _text_of(row, text)) for row in self._filled(column)}
            if column not in taken and found and len({id for id, _ in found}) == len(found):
                return column
        return None

    def text(self, taken: set[str]) -> tuple[str, ...]:
        """Title and text by their names; without a name for the text, what has most words."""
        free = [c for c in self._header if c not in taken]
        titles, bodies = self._titles_and_bodies(taken)
        if not bodies:
            words = {c: self._words(c) for c in free if role_of(c) is None}
            longest = max(words, key=words.__getitem__, default=None)
            if longest is not None and words[longest] >= (_PROSE if titles else 2):
                bodies = [longest]
        if not titles and not bodies:
            self._unclear("the text", "--text")
        return (*titles, *bodies)

    def named_text(self, taken: set[str]) -> tuple[str, ...]:
        """Title and text by their names alone."""
        titles, bodies = self._titles_and_bodies(taken)
        return (*titles, *bodies)

    def _titles_and_bodies(self, taken: set[str]) -> tuple[list[str], list[str]]:
        titles, bodies = ([c for c in self._of(r) if c not in taken] for r in ("title", "text"))
        return titles, bodies

    def labels(self, taken: set[str]) -> tuple[str, ...]:
        """Columns that are called like labels; or else one whose cells hold short names again."""
        named = [c for c in self._of("labels") if c not in taken]
        if named:
            # Keyword 1, Keyword 2, ... belong together; of others, one with several in a cell.
            best = max(named, key=lambda c: (self._many(c) > 1.2, -self._header.index(c)))
            return tuple(c for c in named if _numbered(c) == _numbered(best))
        rest = [c for c in self._header if c not in taken and role_of(c) is None]
        likely = {c: self._many(c) for c in rest if self._has_names(c)}
        if likely:
            return (max(likely, key=likely.__getitem__),)
        marked = tuple(c for c in rest if self._is_marked([c]))
        if len(marked) < 2:
            self._unclear("the labels", "--labels")
        return marked

    def separator(self, columns: Sequence[str]) -> str:
        """What separates the labels of a cell in these columns; empty where nothing does."""
        values = [value for column in columns for value in self._values(column)]
        cells = [value for value in values if isinstance(value, str)]
        if len(columns) > 1 and self._is_marked(columns):
            return MARKS
        if not cells:
            return LIST if any(isinstance(value, list) for value in values) else ""
        if sum(cell.lstrip().startswith("[") for cell in cells) > len(cells) / 2:
            return LIST
        for separator in SEPARATORS:
            share = sum(separator in cell.strip() for cell in cells) / len(cells)
            # The steps of a path have commas, as in Clothing, Shoes > Shirts.
            often = share >= (_COMMAS if separator == "," else _OFTEN)
            if often and (separator != "," or not _within_paths(cells)):
                return separator
        return ""

    def _of(self, role: Role) -> list[str]:
        return [column for column in self._header if role_of(column) == role]

    def _filled(self, column: str) -> list[dict[str, object]]:
        """The rows in which a column is not blank."""
        if self._rows is None:
            self._rows = self._sample()
        there = ((row, row.get(column)) for row in self._rows)
        return [row for row, v in there if v is not None and (not isinstance(v, str) or v.strip())]

    def _values(self, column: str) -> list[object]:
        """What is in the cells of a column that are not blank."""
        return [row[column] for row in self._filled(column)]

    def _words(self, column: str) -> float:
        """Words in a cell, on average; 0 where there are none."""
        texts = [v for v in self._values(column) if isinstance(v, str)]
        return sum(len(text.split()) for text in texts) / len(texts) if texts else 0.0

    def _items(self, column: str) -> list[list[str]]:
        separator = self.separator([column])
        try:
            return [as_names(value, column, separator) for value in self._values(column)]
        except WrongFieldError:
            return []

    def _many(self, column: str) -> float:
        """Labels in a cell, on average."""
        items = self._items(column)
        return sum(map(len, items)) / len(items) if items else 0.0

    def _has_names(self, column: str) -> bool:
        """Whether the cells hold short names, some of them again and again."""
        names = [name for items in self._items(column) for name in items]
        words = [name for name in names if re.search(r"[^\W\d_]{2}", name)]
        if 2 * len(words) <= len(names):
            return False
        short = sum(len(name.split()) for name in words) / len(words) <= _NAME
        return short and len(set(names)) < 0.9 * len(names)

    def _is_marked(self, columns: Sequence[str]) -> bool:
        """Whether the cells hold 0 and 1 only, which are no names of labels."""
        values = [value for column in columns for value in self._values(column)]
        return bool(values) and all(map(is_mark, values))

    def _lacks(self, column: str, option: str) -> NoReturn:
        close = get_close_matches(sameness(column), self._known, 1)
        hint = f" Did you mean {self._known[close[0]]!r}?" if close else ""
        raise CorpusError(
            f"{self._name} has no column {column.strip()!r}, which {option} (in Python: "
            f"{option.lstrip('-')}=) asks for.{hint} "
            f"{self._listing()}"
        )

    def _unclear(self, what: str, option: str) -> NoReturn:
        if self._header and not any(self._filled(column) for column in self._header):
            raise CorpusError(
                f"There is no record in {self._name}: below the names of its columns "
                f"({listing(self._header)}) it has no row with anything in it."
            )
        raise CorpusError(
            f"Which column of {self._name} has {what}? Neither names nor contents show it: "
            f"give {option} NAME (in Python: {option.lstrip('-')}=). {self._listing()}"
        )

    def _listing(self) -> str:
        if not self._header:
            return "It has no columns at all."
        if len(self._header) == 1:
            only = shortened(self._header[0])
            return f"Its only column is {only!r}; the first row must name the columns."
        return f"Its columns are: {listing(self._header)}."


def _within_paths(cells: Sequence[str]) -> bool:
    """Whether these cells are paths, and no paths any more where they are split at commas."""
    if not find_path_separator(set(cells)):
        return False
    return not find_path_separator({item for cell in cells for item in cell.split(",")})


def _text_of(row: dict[str, object], columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row.get(column)) for column in columns)


def _numbered(column: str) -> str:
    """A column's name without a number at its end."""
    return re.sub(r"[\W_]*\d*$", "", sameness(column))
