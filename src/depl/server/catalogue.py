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

        A search finds labels with this id, or with a name that contains it. Whole names come first,
        then names with a word that starts with it, then the rest.
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
        """3 for an id or a whole name, 2 for the start of a word, 1 inside a word, 0 for none."""
        wanted = search.casefold()
        close = np.array([wanted in names for names in self._names], dtype=np.int8)
        begins = re.compile(r"(?<!\w)" + re.escape(wanted))
        for i in np.flatnonzero(close).tolist():
            if wanted in self._names[i].split("\n"):
                close[i] = 3
            elif begins.search(self._names[i]):
                close[i] = 2
        by_id = self._labels.get(search)
        if by_id >= 0:
            close[by_id] = 3
        return close

    def _lines(self, positions: NDArray[np.int64]) -> list[schemas.ListedLabel]:
        pairs = zip(facts(self._labels, self._counts, positions), positions.tolist(), strict=True)
        return [
            schemas.ListedLabel(
                **label,
                description=self._descriptions[position],
                keywords=[term for term, _ in self._keywords[position][:_SHOWN_KEYWORDS]],
            )
            for label, position in pairs
        ]
