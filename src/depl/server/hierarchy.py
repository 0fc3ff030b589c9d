"""The route of the hierarchy: broader and narrower labels, one level at a time."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from depl.model.classifier import Classifier
from depl.server import schemas
from depl.server.answers import facts, position, present
from depl.server.live_model import LiveModel


class TreeLabel(schemas.ShortLabel):
    """A label in the hierarchy; ``narrower`` is how many labels are directly below it."""

    narrower: int


class Level(BaseModel):
    """A page of the labels directly below another one, or of those at the top."""

    total: Annotated[int, Field(description="Labels on all pages.")]
    alone: Annotated[int, Field(description="Labels that are neither below nor above another.")]
    labels: list[TreeLabel]


def router(responses: dict[int | str, dict[str, Any]], live: LiveModel) -> APIRouter:
    """``GET /v1/hierarchy``; who may read may use it."""
    made = APIRouter(tags=["labels"], responses=responses)

    @made.get("/v1/hierarchy")
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
    has_parent = {x for group in below.values() for x in group}
    top = [i for i in there if i not in has_parent]
    chosen = below[position(model, under)] if under else [i for i in top if below[i]]
    chosen.sort(key=lambda i: (labels[i].name.casefold(), i))
    shown = chosen[offset : offset + limit]
    named = facts(labels, counts, np.array(shown, dtype=np.int64))
    return Level(
        total=len(chosen),
        alone=sum(not below[i] for i in top),
        labels=[
            TreeLabel(**label, narrower=len(below[i]))
            for label, i in zip(named, shown, strict=True)
        ],
    )
