"""What the service answers about texts and labels, built from the model.

Functions take the model once and read from it what they need at their start, so that one answer
describes one state of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from fastapi import HTTPException
from numpy.typing import NDArray

from depl.core.corpus import LabelSet
from depl.core.version import __version__
from depl.evaluation.bands import BANDS, band_of, labels_per_band
from depl.fusion.thresholds import Thresholds
from depl.model.classifier import Classifier
from depl.readers.spellings import are_codes
from depl.server import schemas

BAND_NAMES = [band.name for band in BANDS]

_NEAREST = 8
_PRECISION = 0.8
_DEPTH = 400  # labels to look through for those of one band; the parts list no more together


@dataclass(frozen=True)
class Question:
    """One text, and which labels are wanted for it."""

    text: str
    k: int
    threshold: float | None = None
    band: str | None = None
    ancestors: bool = True


def suggest(model: Classifier, questions: Sequence[Question]) -> list[list[schemas.SuggestedLabel]]:
    """The labels of every text. All texts are ranked together, to the greatest depth asked for."""
    labels, counts = model.labels, model.train_counts
    depth = max(max(q.k, _DEPTH if q.band or not q.ancestors else 0) for q in questions)
    ranking = model.predict([q.text for q in questions], min(depth, len(labels)))
    found = []
    for question, positions, scores in zip(questions, ranking.indices, ranking.scores, strict=True):
        chosen = _chosen(question, positions, scores, counts)
        if not question.ancestors:
            listed = positions[chosen].tolist()
            chosen = chosen[labels.hierarchy.without_ancestors(listed, question.k)]
        chosen = chosen[: question.k]
        pairs = zip(facts(labels, counts, positions[chosen]), scores[chosen].tolist(), strict=True)
        found.append([schemas.SuggestedLabel(**label, probability=score) for label, score in pairs])
    return found


def _chosen(
    question: Question,
    positions: NDArray[np.integer],
    scores: NDArray[np.floating],
    counts: NDArray[np.int64],
) -> NDArray[np.intp]:
    wanted = positions >= 0  # a row that is too short is filled up with -1
    if question.threshold is not None:
        wanted &= scores >= question.threshold
    if question.band is not None:
        wanted &= band_of(counts[positions]) == BAND_NAMES.index(question.band)
    return np.flatnonzero(wanted)


def facts(
    labels: LabelSet, counts: NDArray[np.int64], positions: NDArray[np.integer]
) -> list[dict[str, Any]]:
    """The fields of a ``ShortLabel`` for the labels at these positions."""
    some = counts[positions]
    rows = zip(positions.tolist(), some.tolist(), band_of(some).tolist(), strict=True)
    return [
        {
            "id": labels[position].id,
            "name": labels[position].name,
            "training_documents": count,
            "band": BAND_NAMES[band],
        }
        for position, count, band in rows
    ]


def position(model: Classifier, label_id: str) -> int:
    """Where the label with this id is; 404 if there is none (any more)."""
    found = model.labels.get(label_id)
    if found < 0 or found in model.removed:
        raise HTTPException(
            404, f"There is no label with the id {label_id!r}. /v1/labels lists all labels."
        )
    return found


def whole_label(model: Classifier, position: int) -> schemas.WholeLabel:
    """All that the run knows about a label, and which others are similar."""
    labels, counts, card = model.labels, model.train_counts, model.card(position)
    near = model.nearest_labels(position, _NEAREST)
    others = np.array([other for other, _ in near], dtype=np.int64)
    (own,) = facts(labels, counts, np.array([position]))
    return schemas.WholeLabel(
        **own,
        alt_names=list(card.label.alt_names),
        definition=card.label.description,
        broader=[schemas.LabelName(id=x.id, name=x.name) for x in card.broader],
        narrower=[schemas.LabelName(id=x.id, name=x.name) for x in card.narrower],
        description=card.description,
        keywords=[schemas.Keyword(term=term, weight=float(w)) for term, w in card.keywords],
        nearest=[
            schemas.NearLabel(**other, similarity=similarity)
            for other, (_, similarity) in zip(facts(labels, counts, others), near, strict=True)
        ],
    )


def present(model: Classifier) -> NDArray[np.int64]:
    """Positions of the labels that have not been removed."""
    every = np.arange(len(model.labels))
    return every[~np.isin(every, list(model.removed))]


def run_entry(model: Classifier, *, name: str) -> schemas.RunEntry:
    """A run in the list of runs."""
    return schemas.RunEntry(
        name=name,
        path=f"/v1/runs/{name}",
        documents=model.n_train,
        labels=len(present(model)),
    )


def info(model: Classifier, *, writable: bool) -> schemas.Info:
    """The run as a whole."""
    sizes = labels_per_band(model.train_counts[present(model)])
    lasts = [following.first - 1 for _, following in pairwise(BANDS)]
    return schemas.Info(
        name=model.name,
        version=__version__,
        run=model.version,
        documents=model.n_train,
        labels=sum(sizes.values()),
        bands=[
            schemas.BandInfo(name=band.name, first=band.first, last=last, labels=sizes[band.name])
            for band, last in zip(BANDS, [*lasts, None], strict=True)
        ],
        parts=list(model.fusion.parts_) if model.fusion is not None else ["svm"],
        thresholds=None if model.thresholds is None else _thresholds(model.thresholds),
        codes=are_codes(model.labels[i].id for i in present(model).tolist()),
        writable=writable,
    )


def _thresholds(thresholds: Thresholds) -> dict[str, float]:
    found = {
        f"precision {_PRECISION}": thresholds.for_precision(_PRECISION),
        "best F1": thresholds.best_f1,
    }
    return {name: p for name, p in found.items() if p is not None}  # None: the run never reaches it
