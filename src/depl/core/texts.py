"""Texts as callers give them: lists, arrays, a pandas Series, a DataFrame of one column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import CorpusError

FEW = 1 << 28  # characters of texts that are kept in memory
_SCATTERED = 65_536  # texts in no order that are read together


class TextsOnDisk(Sequence[str]):
    """Texts that are read when they are asked for, portion by portion.

    Parameters
    ----------
    sizes : sequence of int
        How many texts are in each portion.
    read : function
        Gives the texts of a portion.
    places : array of int, optional
        Which of these texts there are, in this order; all when not given.

    Examples
    --------
    >>> texts = TextsOnDisk([2, 1], [["wine", "oil"], ["milk"]].__getitem__)
    >>> len(texts), texts[1], texts[::2], list(texts)
    (3, 'oil', ['wine', 'milk'], ['wine', 'oil', 'milk'])
    >>> list(texts.take(np.array([2, 0])))
    ['milk', 'wine']
    """

    def __init__(
        self,
        sizes: Sequence[int],
        read: Callable[[int], list[str]],
        places: NDArray[np.int64] | None = None,
    ) -> None:
        self._sizes = sizes
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._read = read
        n = int(self._ends[-1]) if len(self._ends) else 0
        self._places = np.arange(n) if places is None else places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        places = self._places[position]
        if isinstance(position, slice):
            return self._at(places)
        return self._at(np.array([places]))[0]

    def __iter__(self) -> Iterator[str]:
        for some in self.portions():
            yield from some

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)  # what is on this machine's disk is on no other's

    def take(self, rows: NDArray[np.integer]) -> TextsOnDisk:
        """The texts at these positions, in this order, on disk as they are."""
        return TextsOnDisk(self._sizes, self._read, self._places[rows])

    def portions(self) -> Iterator[list[str]]:
        """All texts, some of them at a time."""
        portion_of = np.searchsorted(self._ends, self._places, side="right")
        changes = np.flatnonzero(np.diff(portion_of)) + 1
        if len(changes) < 2 * len(self._ends):
            for places in np.split(self._places, changes):
                yield self._at(places)
        else:  # in no order: a portion would be read for every text
            for first in range(0, len(self), _SCATTERED):
                yield self._at(self._places[first : first + _SCATTERED])

    def _at(self, places: NDArray[np.int64]) -> list[str]:
        found = [""] * len(places)
        portion_of = np.searchsorted(self._ends, places, side="right")
        for portion in np.unique(portion_of).tolist():
            texts = self._read(portion)
            first = int(self._ends[portion]) - len(texts)
            for i in np.flatnonzero(portion_of == portion).tolist():
                found[i] = texts[int(places[i]) - first]
        return found


def as_texts(given: Any) -> list[str]:  # noqa: ANN401 - whatever holds texts
    """A list of strings, or an error that says what was given instead.

    Nothing is guessed: a table of several columns, a missing value or a number is refused, because
    a wrong text would be answered without a word.

    Parameters
    ----------
    given : sequence of str
        A list, a tuple, an array, a pandas Series, or a table of one column.

    Examples
    --------
    >>> as_texts(np.array([["sparkling wine"], ["olive oil"]]))
    ['sparkling wine', 'olive oil']
    >>> as_texts("sparkling wine")
    Traceback (most recent call last):
    depl.core.errors.CorpusError: A list of texts is needed; got a single text. Put it in [ ].
    """
    if type(given) is list and all(type(text) is str for text in given):
        return given
    if isinstance(given, str):
        raise CorpusError("A list of texts is needed; got a single text. Put it in [ ].")
    texts = _column(given)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise CorpusError(
                f"Every text must be a string; number {position + 1} of {len(texts)} is "
                f"{_said(text)}. Leave such documents out, or give them an empty text."
            )
    return [str(text) for text in texts]


def checked_texts(given: Any) -> Sequence[str]:  # noqa: ANN401
    """As ``as_texts``, but what is on disk stays there."""
    return given if isinstance(given, TextsOnDisk) else as_texts(given)


def title_of(text: str) -> str:
    r"""The first line of a text of several lines, which mostly is its title; "" without others.

    Examples
    --------
    >>> title_of("The wine market\n\nA survey of vineyards."), title_of("A survey of vineyards.")
    ('The wine market', '')
    """
    first, _, others = text.strip().partition("\n")
    return first.rstrip() if others else ""


def is_table(given: object) -> bool:
    """Whether something has named columns, as a DataFrame of pandas or polars has."""
    return hasattr(given, "columns") and hasattr(given, "shape")


def _column(given: Any) -> list[Any]:  # noqa: ANN401
    """The values of a sequence or of the only column of a table."""
    if is_table(given):
        names = [str(name) for name in given.columns]
        if len(names) != 1:
            raise CorpusError(
                f"A list of texts is needed; got a table of {len(names)} columns "
                f"({', '.join(names[:5])}). Give the column with the texts, such as "
                f"df[{_longest(given, names)!r}]."
            )
        return list(np.asarray(given, dtype=object).ravel())
    if isinstance(given, np.ndarray) or hasattr(given, "__array__"):
        values = np.asarray(given, dtype=object)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values.ravel()
        if values.ndim != 1:
            raise CorpusError(
                f"A list of texts is needed; got an array of shape {values.shape}. Give one text "
                f"for each document."
            )
        return list(values)
    if isinstance(given, dict | bytes) or not hasattr(given, "__iter__"):
        raise CorpusError(
            f"A list of texts is needed; got {_said(given)}. Give one string for each document."
        )
    return list(given)


def _longest(table: Any, names: list[str]) -> str:  # noqa: ANN401
    """The column with the longest cell in the first row, which is likely to be the text."""
    row = np.asarray(table[:1], dtype=object).ravel()
    return max(
        zip(names, row, strict=False), key=lambda cell: len(str(cell[1])), default=("text",)
    )[0]


def _said(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, float) and value != value:
        return "NaN, a missing value"
    return f"{value!r:.40} of type {type(value).__name__}"
