"""Texts as the terms of their words in order, without the words of grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UNKNOWN, SILENT = -1, -2  # in place of a term: of a word that is none; of one that is passed over


@dataclass(frozen=True)
class Sequences:
    """The terms of some texts.

    Parameters
    ----------
    ends : array of shape (n_texts + 1,)
        The words of text i are those from ``ends[i]`` to ``ends[i + 1]``.
    terms : array of shape (n_words,)
        The term of every word; ``UNKNOWN`` where it is none.
    """

    ends: NDArray[np.int64]
    terms: NDArray[np.int32]

    @classmethod
    def of(cls, ends: NDArray[np.int64], terms: NDArray[np.int32]) -> Sequences:
        """Words whose term is ``SILENT`` are left out, so that their neighbours are in a row."""
        spoken = terms != SILENT
        before = np.append(0, np.cumsum(spoken))
        return cls(before[ends], terms[spoken])

    @classmethod
    def none(cls, n: int) -> Sequences:
        """So many texts without a word."""
        return cls(np.zeros(n + 1, np.int64), np.empty(0, np.int32))

    @classmethod
    def concatenate(cls, some: Sequence[Sequences]) -> Sequences:
        """The texts of all of these, in their order."""
        lengths = np.concatenate([np.diff(x.ends) for x in some])
        ends = np.append(0, np.cumsum(lengths)).astype(np.int64)
        return cls(ends, np.concatenate([x.terms for x in some]))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def take(self, rows: NDArray[np.int64]) -> Sequences:
        """These texts, in this order."""
        lengths = np.diff(self.ends)[rows]
        ends = np.append(0, np.cumsum(lengths)).astype(np.int64)
        places = np.repeat(self.ends[:-1][rows] - ends[:-1], lengths) + np.arange(ends[-1])
        return Sequences(ends, self.terms[places])
