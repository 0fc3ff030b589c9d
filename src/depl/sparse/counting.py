"""Counts of word forms in many texts, by worker processes, in memory or on disk."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.executor import Executor, LocalExecutor
from depl.core.progress import track
from depl.core.scratch import GrowingMatrix
from depl.core.workers import cores
from depl.sparse.words import Counter

_CHUNK = 1_000  # documents a worker takes at a time
_AHEAD = 4  # chunks per worker that are on their way to it
_SERIAL_BELOW = 8_000  # documents; for fewer, starting workers costs more than it saves


def count_forms(
    counter: Counter, texts: Sequence[str], jobs: int | None = None
) -> tuple[list[str], csr_array]:
    """Distinct forms in a reproducible order, and counts (texts x forms).

    ``jobs`` are the processes; None means one per core.
    """
    position: defaultdict[str, int] = defaultdict(count().__next__)
    parts = list(_counted(counter, texts, len(texts), position, jobs))
    shapes = [(part.shape[0], len(position)) for part in parts]
    arrays = [(part.data, part.indices, part.indptr) for part in parts]
    parts = [csr_array(x, shape=shape) for x, shape in zip(arrays, shapes, strict=True)]
    return list(position), csr_array(vstack(parts, format="csr"))


def forms_in_order(
    counter: Counter, texts: Sequence[str], jobs: int | None = None
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct forms; where the words of each text end; and the form of every word.

    The counter leaves words in their order. ``jobs`` as in ``count_forms``.
    """
    position: defaultdict[str, int] = defaultdict(count().__next__)
    lengths, words = [], []
    for column, counts in _read(counter, texts, len(texts), position, jobs):
        lengths.append(np.diff(counts.indptr))
        words.append(column[counts.indices])
    ends = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    return list(position), ends, np.concatenate(words)


def count_on_disk(
    counter: Counter,
    texts: Iterable[str],
    total: int,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> tuple[list[str], csr_array]:
    """As ``count_forms``, for so many texts in total; the counts are on disk, and mapped."""
    position: defaultdict[str, int] = defaultdict(count().__next__)
    counts = GrowingMatrix(passing=True)
    for part in _counted(counter, texts, total, position, jobs, executor):
        counts.append(part)
    return list(position), counts.whole(len(position))


def _counted(
    counter: Counter,
    texts: Iterable[str],
    total: int,
    position: Mapping[str, int],
    jobs: int | None,
    executor: Executor | None = None,
) -> Iterator[csr_array]:
    """The counts of some texts after the others; a form that is new gets the next position."""
    for column, counts in _read(counter, texts, total, position, jobs, executor):
        yield add_columns(counts, column, len(position))


def _read(
    counter: Counter,
    texts: Iterable[str],
    total: int,
    position: Mapping[str, int],
    jobs: int | None,
    executor: Executor | None = None,
) -> Iterator[tuple[NDArray[np.int64], csr_array]]:
    """What the counter makes of some texts after the others, and the position of each form."""
    jobs = min(jobs or cores(), max(1, -(-total // _CHUNK)))
    executor = executor or LocalExecutor(jobs if total >= _SERIAL_BELOW else 1)
    chunks = _chunks(texts)
    done = executor.map(operator.call, counter, chunks, compiled=False, ahead=_AHEAD)
    for forms, counts in track(done, "words", total=total, step=_CHUNK):
        yield np.fromiter(map(position.__getitem__, forms), np.int64, len(forms)), counts


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """What workers take, one after the other; an empty one where there is no text."""
    rest = iter(texts)
    yield list(islice(rest, _CHUNK))
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk


def add_columns(counts: csr_array, column: NDArray[np.int64], n_columns: int) -> csr_array:
    """Map each column to a new one; columns mapped to the same one are added."""
    # What another machine has counted cannot be written to, and columns are added in place.
    data, indptr = (np.require(x, requirements="W") for x in (counts.data, counts.indptr))
    indices = column[counts.indices].astype(np.int32)
    moved = csr_array((data, indices, indptr), shape=(counts.shape[0], n_columns))
    moved.sum_duplicates()
    return moved


def over_terms(terms: Sequence[str], counts: csr_array, columns: Mapping[str, int]) -> csr_array:
    """Counts of forms, which belong to these terms, as counts of the terms that have a column."""
    places = np.array([columns.get(term.casefold(), -1) for term in terms], dtype=np.int64)
    known = np.flatnonzero(places >= 0)
    return add_columns(csr_array(counts[:, known]), places[known], len(columns))


def commonest_spellings(terms: Sequence[str], weights: NDArray[Any]) -> list[str]:
    """Each term, or the one with the largest weight among those that are equal by case folding."""
    total: defaultdict[str, float] = defaultdict(float)
    for term, weight in zip(terms, weights.tolist(), strict=True):
        total[term] += weight
    best: dict[str, str] = {}
    for term in sorted(total, key=lambda term: (-total[term], term)):
        best.setdefault(term.casefold(), term)
    return [best[term.casefold()] for term in terms]
