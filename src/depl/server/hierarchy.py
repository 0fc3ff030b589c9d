"""The route of the hierarchy: broader and narrower labels, one level at a time."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from depl.core.corpus import LabelSet
from depl.model.classifier import Classifier
from depl.readers.paths import above
from depl.server import schemas
from depl.server.answers import BAND_NAMES, facts, position, present
from depl.server.live_model import LiveModel


class TreeLabel(schemas.ShortLabel):
    """A label in the hierarchy; ``narrower`` is how many labels are directly below it.

    ``known`` is false for what is only named as broader than labels, and no label of the run.
    """

    short: Annotated[str, Field(description="The name without the path of what is above it.")]
    narrower: int
    known: bool


class Level(BaseModel):
    """A page of the labels directly below another one, or of those at the top."""

    total: Annotated[int, Field(description="Labels on all pages.")]
    alone: Annotated[int, Field(description="Labels that are neither below nor above another.")]
    above: Annotated[
        str, Field(description="Id of what is above the one asked for; empty at the top.")
    ]
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
    labels, counts = model.labels, model.train_counts
    tree = _Tree(labels, set(present(model).tolist()), (model.columns or {}).get("path") or "")
    if under and under not in tree.below:
        position(model, under)  # which says that there is no such label
    chosen = tree.below.get(under, []) if under else [x for x in tree.top if tree.below.get(x)]
    known = [x for x in chosen if x in tree.places]
    places = np.array([tree.places[x] for x in known], dtype=np.int64)
    facts_of = dict(zip(known, facts(labels, counts, places), strict=True))
    found = [
        TreeLabel(
            **facts_of.get(x, _GROUP | {"id": x, "name": x}),
            short=tree.short(facts_of[x]["name"] if x in facts_of else x, under),
            narrower=len(tree.below.get(x, ())),
            known=x in facts_of,
        )
        for x in chosen
    ]
    found.sort(key=lambda x: (x.name.casefold(), tree.places.get(x.id, -1)))
    alone = sum(not tree.below.get(x) for x in tree.top)
    parent = next(iter(tree.above(under)), "") if under else ""
    return Level(total=len(found), alone=alone, above=parent, labels=found[offset : offset + limit])


_GROUP = {"training_documents": 0, "band": BAND_NAMES[0]}


class _Tree:
    """Labels, and what is named as broader but is no label, by their ids.

    Where labels are paths, such a group has a place below another one: its path says which.
    """

    def __init__(self, labels: LabelSet, there: set[int], path: str) -> None:
        self._labels = labels
        self._path = path
        self.places = {labels[i].id: i for i in sorted(there)}
        self.below: dict[str, list[str]] = {}
        inside = set()
        todo = list(self.places)
        seen = set(todo)
        for id in todo:  # groups join while it goes on
            for parent in self.above(id):
                self.below.setdefault(parent, []).append(id)
                inside.add(id)
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        self.top = [id for id in todo if id not in inside]

    def above(self, id: str) -> list[str]:
        """What is directly above a label or a group; labels that were removed are nowhere."""
        place = self.places.get(id)
        named = [above(id, self._path)] if place is None else self._labels[place].broader
        return [x for x in named if x and (x in self.places or self._labels.get(x) < 0)]

    def short(self, name: str, under: str) -> str:
        """A name below another one, without the path that both have."""
        return name.removeprefix(under + self._path) if under and self._path else name
