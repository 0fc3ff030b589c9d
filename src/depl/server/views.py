"""What the service says of labels, as plain values for JSON."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import depl
from depl.evaluation.bands import BANDS, band_of
from depl.model.classifier import Classifier

_FIRST = [band.first for band in BANDS]
_BAND_NAMES = [band.name for band in BANDS]
_SHOWN_KEYWORDS = 6  # of each label in a list
_NEAREST = 8
_PRECISION = 0.8
_BAND_DEPTH = 400  # labels to look through for those of one band; the parts list no more together


@dataclass(frozen=True)
class Asked:
    """One text, and which labels are wanted for it."""

    text: str
    k: int
    threshold: float | None = None
    band: str | None = None


def suggest(model: Classifier, asked: Sequence[Asked]) -> list[list[dict[str, Any]]]:
    """The labels of every text. All are ranked together, as deep as the deepest wish."""
    depth = max(max(x.k, _BAND_DEPTH if x.band else 0) for x in asked)
    ranking = model.predict([x.text for x in asked], min(depth, len(model.labels)))
    rows = zip(asked, ranking.indices.tolist(), ranking.scores.tolist(), strict=True)
    return [_picked(model, x, indices, scores) for x, indices, scores in rows]


def _picked(
    model: Classifier, asked: Asked, indices: list[int], scores: list[float]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for position, score in zip(indices, scores, strict=True):
        if position < 0 or len(found) == asked.k:
            break
        if asked.threshold is not None and score < asked.threshold:
            break
        label = short(model, position)
        if asked.band is None or label["band"] == asked.band:
            found.append(label | {"probability": score})
    return found


def short(model: Classifier, position: int) -> dict[str, Any]:
    """Id, name, training documents and band of a label."""
    label, count = model.labels[position], int(model.train_counts[position])
    band = BANDS[bisect_right(_FIRST, count) - 1].name
    return {"id": label.id, "name": label.name, "training_documents": count, "band": band}


def whole(model: Classifier, position: int) -> dict[str, Any]:
    """All that the run knows about a label, and which others are near it."""
    card = model.card(position)
    near = model.nearest_labels(position, _NEAREST)
    return short(model, position) | {
        "alt_names": list(card.label.alt_names),
        "description": card.description,
        "keywords": [{"term": term, "weight": float(weight)} for term, weight in card.keywords],
        "nearest": [
            short(model, other) | {"similarity": float(s)}
            for other, s in near
            if other not in model.removed
        ],
    }


def present(model: Classifier) -> NDArray[np.int64]:
    """Positions of the labels that have not been removed."""
    every = np.arange(len(model.labels))
    return every[~np.isin(every, list(model.removed))]


def info(model: Classifier, *, writable: bool) -> dict[str, Any]:
    """The run as a whole."""
    bands = band_of(model.train_counts)[present(model)]
    sizes = np.bincount(bands, minlength=len(BANDS))
    return {
        "name": model.name,
        "version": depl.__version__,
        "documents": model.n_train,
        "labels": len(bands),
        "bands": {band.name: int(n) for band, n in zip(BANDS, sizes, strict=True)},
        "parts": list(model.fusion.parts_) if model.fusion is not None else ["svm"],
        "thresholds": _thresholds(model),
        "writable": writable,
    }


def _thresholds(model: Classifier) -> dict[str, float] | None:
    if model.thresholds is None:
        return None
    found = {
        f"precision {_PRECISION}": model.thresholds.for_precision(_PRECISION),
        "best F1": model.thresholds.best_f1,
    }
    return {name: p for name, p in found.items() if p is not None}  # None: out of reach


class Catalogue:
    """The labels in the orders that lists need; to be made anew when a label changes.

    Parameters
    ----------
    model : Classifier
        Whose labels are listed.
    """

    def __init__(self, model: Classifier) -> None:
        self._model = model
        self._names = ["\n".join((x.name, *x.alt_names)).casefold() for x in model.labels]
        self._band = band_of(model.train_counts)
        there = present(model)
        by_name = sorted(there.tolist(), key=self._names.__getitem__)
        self._orders = {
            "name": np.array(by_name, dtype=np.int64),
            "count": there[np.argsort(-model.train_counts[there], kind="stable")],
        }

    def listed(
        self, *, search: str, band: str | None, sort: str, offset: int, limit: int
    ) -> dict[str, Any]:
        """A page of the labels whose id is, or one of whose names contains, what is searched.

        Whole names come before words that begin so, and those before the rest.
        """
        order = self._orders[sort]
        if band:
            order = order[self._band[order] == _BAND_NAMES.index(band)]
        if search:
            close = self._closeness(search)[order]
            order = order[np.argsort(-close, kind="stable")][: np.count_nonzero(close)]
        page = order[offset : offset + limit].tolist()
        return {"total": len(order), "labels": [self._line(position) for position in page]}

    def _closeness(self, search: str) -> NDArray[np.int8]:
        """3 for an id or a whole name, 2 where a word begins so, 1 in a word, 0 for no match."""
        wanted = search.casefold()
        close = np.array([wanted in names for names in self._names], dtype=np.int8)
        begins = re.compile(r"(?<!\w)" + re.escape(wanted))
        for i in np.flatnonzero(close).tolist():
            if wanted in self._names[i].split("\n"):
                close[i] = 3
            elif begins.search(self._names[i]):
                close[i] = 2
        by_id = self._model.labels.get(search)
        if by_id >= 0:
            close[by_id] = 3
        return close

    def _line(self, position: int) -> dict[str, Any]:
        card = self._model.card(position)
        return short(self._model, position) | {
            "description": card.description,
            "keywords": [term for term, _ in card.keywords[:_SHOWN_KEYWORDS]],
        }
