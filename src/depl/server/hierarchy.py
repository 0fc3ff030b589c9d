"""The route of the hierarchy: broader and narrower labels, one level at a time."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from depl.core.corpus import LabelSet
from depl.model.classifier import Classifier
from depl.server import schemas
from depl.server.answers import BAND_NAMES, facts, position, present
from depl.server.live_model import LiveModel


class TreeLabel(schemas.ShortLabel):
    """A label in the hierarchy; ``narrower`` is how many labels are directly below it.

    ``known`` is false for what is only named as broader than labels, and no label of the run.
    """

    narrower: int
    known: bool


class Level(BaseModel):
    """A page of the labels directly below another one, or of those at the top."""

    total: Annotated[int, Field(description="Labels on all pages.")]
    alone: Annotated[int, Field(description="Labels that are neither below nor above another.")]
    labels: list[TreeLabel]


def router(responses: dict[int | str, dict[str, Any]], live: LiveModel) -> APIRouter:
    """``GET /v1/hierarchy``; who may read may use it."""
    made = APIRouter(tags=["labels"], responses=responses)

    @made.get("/hierarchy")
    async def show_level(
        under: Annotated[
            str, Query(max_length=200, description="Id of a label; empty for the top.")
        ] = "",
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=schemas.MAX_PAGE)] = schemas.MAX_PAGE,
    ) -> Level:
        """List the labels below one, or those at the top of the hierarchy, by name."""
        return await live.read(lambda model: level(model, under, offset, limit))

    return made


def level(model: Classifier, under: str, offset: int, limit: int) -> Level:
    """One page of one level; labels that were removed are passed over."""
    labels, counts, tree = model.labels, model.train_counts, model.labels.hierarchy
    there = set(present(model).tolist())
    below = {i: [x for x in tree.narrower[i] if x in there] for i in there}
    groups = _groups(labels, there)
    inside = {x for group in (*below.values(), *groups.values()) for x in group}
    top = [i for i in there if i not in inside]
    if not under:
        chosen, named = [i for i in top if below[i]], list(groups)
    else:
        chosen = groups[under] if under in groups else below[position(model, under)]
        named = []
    known = sorted(chosen, key=lambda i: (labels[i].name.casefold(), i))
    known_facts = facts(labels, counts, np.array(known, dtype=np.int64))
    found = [
        *(
            TreeLabel(**x, narrower=len(below[i]), known=True)
            for x, i in zip(known_facts, known, strict=True)
        ),
        *(_group(name, len(groups[name])) for name in named),
    ]
    found.sort(key=lambda x: x.name.casefold())
    alone = sum(not below[i] for i in top)
    return Level(total=len(found), alone=alone, labels=found[offset : offset + limit])


def _groups(labels: LabelSet, there: set[int]) -> dict[str, list[int]]:
    """What is named as broader but no label, with the labels directly below it."""
    found: dict[str, list[int]] = {}
    for i in sorted(there):
        for parent in labels[i].broader:
            if labels.get(parent) < 0:
                found.setdefault(parent, []).append(i)
    return found


def _group(name: str, narrower: int) -> TreeLabel:
    return TreeLabel(
        id=name,
        name=name,
        training_documents=0,
        band=BAND_NAMES[0],
        narrower=narrower,
        known=False,
    )
