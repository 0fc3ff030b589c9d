"""The label set as lists: sorted, searched, by frequency band, page by page."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from depl.evaluation.bands import band_of
from depl.model.classifier import Classifier
from depl.server import schemas
from depl.server.answers import BAND_NAMES, facts, present

_SHOWN_KEYWORDS = 6  # of each label in a list
_BETWEEN = re.compile(r"[\s.-]")  # the parts of a code
_WHOLE = 6  # how close a label is whose name, or id, is what is searched


class Catalogue:
    """The labels in the orders that lists need, as they are when this is made.

    Make a new one when a label changes.

    Parameters
    ----------
    model : Classifier
        Whose labels are listed.
    """

    def __init__(self, model: Classifier) -> None:
        self._labels, self._counts = model.labels, model.train_counts
        self._descriptions, self._keywords = model.descriptions, model.keywords
        there = present(model)
        self._names = ["\n".join((x.name, *x.alt_names)).casefold() for x in self._labels]
        self._ids = [_BETWEEN.sub("", x.id.casefold()) for x in self._labels]
        self._band = band_of(self._counts)
        by_name = sorted(there.tolist(), key=self._names.__getitem__)
        self._orders = {
            "name": np.array(by_name, dtype=np.int64),
            "count": there[np.argsort(-self._counts[there], kind="stable")],
        }

    def listed(
        self, *, search: str, band: str, sort: schemas.Sort, offset: int, limit: int
    ) -> schemas.LabelList:
        """A page of the labels, all or those that a search finds.

        A search finds labels with this id, or whose names contain all of its words. Whole names
        come first, then names that begin with it, then those with a word that does; other names
        count for less than a label's own. A search with a digit in it also finds the codes, or
        other ids, that begin with it.
        """
        order = self._orders[sort]
        if band:
            order = order[self._band[order] == BAND_NAMES.index(band)]
        if search:
            close = self._closeness(search)[order]
            order = order[np.argsort(-close, kind="stable")][: np.count_nonzero(close)]
        return schemas.LabelList(
            total=len(order), labels=self._lines(order[offset : offset + limit])
        )

    def _closeness(self, search: str) -> NDArray[np.int8]:
        """How close the names of each label are to what is searched; 0 where they lack a word."""
        wanted = " ".join(search.casefold().split())
        words = wanted.split()
        close = np.array([all(word in x for word in words) for x in self._names], dtype=np.int8)
        begins = re.compile(r"(?<!\w)" + re.escape(wanted))
        for i in np.flatnonzero(close).tolist():
            own, *others = self._names[i].split("\n")
            if own == wanted:
                close[i] = _WHOLE
            elif wanted in others:
                close[i] = _WHOLE - 1
            elif own.startswith(wanted):
                close[i] = _WHOLE - 2
            elif begins.search(own):
                close[i] = _WHOLE - 3
            elif any(map(begins.search, others)):
                close[i] = _WHOLE - 4
        code = _BETWEEN.sub("", wanted)
        if any(map(str.isdigit, code)):
            close = np.maximum(close, [id.startswith(code) for id in self._ids])
        by_id = self._labels.get(search)
        if by_id >= 0:
            close[by_id] = _WHOLE
        return close

    def _lines(self, positions: NDArray[np.int64]) -> list[schemas.ListedLabel]:
        pairs = zip(facts(self._labels, self._counts, positions), positions.tolist(), strict=True)
        return [
            schemas.ListedLabel(
                **label,
                alt_names=list(self._labels[position].alt_names),
                description=self._descriptions[position],
                keywords=[term for term, _ in self._keywords[position][:_SHOWN_KEYWORDS]],
            )
            for label, position in pairs
        ]
