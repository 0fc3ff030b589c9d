"""The routes of a review: documents that people look at one by one, those that teach most first.

Whoever may give feedback may review. Several people may do so at once, each with a token: a
document that somebody is looking at is kept for them for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from depl.labels.review_queue import NewDocument, Queued, ReviewQueue, State
from depl.model.classifier import Classifier
from depl.model.review import following, labels_per_document, lessons, missing, reasons
from depl.server import schemas
from depl.server.answers import facts
from depl.server.live_model import LiveModel
from depl.server.security import token_name

MAX_DOCUMENTS = 256  # that are put into the queue by one request

_LARGEST = 2**63 - 1  # that SQLite can compare
_REASONS = 3

Number = Annotated[int, Path(ge=1, le=_LARGEST, description="Of the document in the queue.")]


class ReviewText(schemas._Body):
    """A document for the queue."""

    text: schemas.Text
    id: Annotated[
        schemas.LabelId | None, Field(description="By default one that is made from the text.")
    ] = None
    source: Annotated[schemas.Name | None, Field(description="Where it comes from.")] = None


class ReviewTexts(schemas._Body):
    """Documents for the queue."""

    documents: Annotated[list[ReviewText], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class ReviewMark(schemas._Body):
    """What became of a document."""

    state: Annotated[State, Field(description="done, skipped, or open: to be looked at again.")]


class Reviewer(BaseModel):
    """Whose token it is, and how many documents they have done."""

    name: str
    done: int


class ReviewProgress(BaseModel):
    """How far the review has come; ``you`` is whose token asks."""

    total: int
    done: int
    skipped: int
    left: int
    by: list[Reviewer]
    you: str


class AddedToReview(ReviewProgress):
    """How many documents were new to the queue, and its progress."""

    added: int


class ReviewReason(schemas.ShortLabel):
    """An uncertain label, whose decision teaches something; ``rare``: few documents have it."""

    probability: float
    rare: bool


class ReviewDocument(BaseModel):
    """A document of the queue; ``looking`` is who else looks at it just now."""

    number: int
    id: str
    text: str
    source: str
    state: State
    by: Annotated[str, Field(description="Who dealt with it.")]
    looking: str
    missing: Annotated[
        float, Field(description="How many of its labels are expected not to be suggested.")
    ]
    reasons: list[ReviewReason]


class NextDocument(BaseModel):
    """The document that teaches most, unless none is left; and how far the review has come."""

    document: ReviewDocument | None
    progress: ReviewProgress


def router(
    live: LiveModel, *, dependencies: Sequence[Any], responses: dict[int | str, dict[str, Any]]
) -> APIRouter:
    """All routes under ``/v1/review``."""
    made = APIRouter(tags=["review"], dependencies=list(dependencies), responses=responses)

    async def queue() -> ReviewQueue:
        return (await live.read(lambda model: model)).review

    @made.get("/review")
    async def show_progress(request: Request) -> ReviewProgress:
        """Say how far the review has come."""
        return await asyncio.to_thread(_progress, await queue(), token_name(request))

    @made.post("/review/documents", status_code=201)
    async def add_documents(body: ReviewTexts, request: Request) -> AddedToReview:
        """Put documents into the queue; those that are in it already stay where they are."""
        texts = [document.text for document in body.documents]
        found = await live.read(lambda model: lessons(model, texts))
        new = [
            NewDocument(x.text, x.id or "", x.source or "", *row)
            for x, row in zip(body.documents, found, strict=True)
        ]
        own = await queue()
        added = await asyncio.to_thread(own.add, new)
        progress = await asyncio.to_thread(_progress, own, token_name(request))
        return AddedToReview(added=added, **progress.model_dump())

    @made.post("/review/next")
    async def next_document(request: Request) -> NextDocument:
        """Give the document that teaches most of those that nobody else is looking at."""
        own, person = await queue(), token_name(request)
        while True:
            waiting = await asyncio.to_thread(own.waiting, by=person)
            best = await live.read(partial(following, waiting=waiting))
            progress = await asyncio.to_thread(_progress, own, person)
            if best is None:
                return NextDocument(document=None, progress=progress)
            number = best.number
            if await asyncio.to_thread(own.look, number, by=person):
                break  # and otherwise somebody else has just taken it
        return NextDocument(document=await shown(own, number, person), progress=progress)

    @made.get("/review/{number}")
    async def show_document(number: Number, request: Request) -> ReviewDocument:
        """Show a document of the queue."""
        return await shown(await queue(), number, token_name(request))

    @made.post("/review/{number}")
    async def mark_document(number: Number, body: ReviewMark, request: Request) -> ReviewProgress:
        """Say that a document is done, skipped, or open again."""
        own, person = await queue(), token_name(request)
        await asyncio.to_thread(own.mark, number, body.state, by=person)
        return await asyncio.to_thread(_progress, own, person)

    async def shown(own: ReviewQueue, number: int, person: str) -> ReviewDocument:
        found = await asyncio.to_thread(own.document, number)
        if found.looking == person:  # whoever asks knows that
            found = replace(found, looking="")
        return await live.read(lambda model: _document(model, found))

    return made


def _document(model: Classifier, found: Queued) -> ReviewDocument:
    labels, counts = model.labels, model.train_counts
    which = reasons(found.suggested, labels, counts)[:_REASONS]
    names = facts(labels, counts, np.array([i for i, _, _ in which], dtype=np.int64))
    return ReviewDocument(
        number=found.number,
        id=found.id,
        text=found.text,
        source=found.source,
        state=found.state,
        by=found.by,
        looking=found.looking,
        missing=round(missing(found.suggested, labels_per_document(model)), 2),
        reasons=[
            ReviewReason(**name, probability=p, rare=rare)
            for name, (_, p, rare) in zip(names, which, strict=True)
        ],
    )


def _progress(own: ReviewQueue, you: str) -> ReviewProgress:
    found = own.progress()
    return ReviewProgress(
        total=found.total,
        done=found.done,
        skipped=found.skipped,
        left=found.left,
        by=[Reviewer(name=name, done=n) for name, n in sorted(found.by.items())],
        you=you,
    )
