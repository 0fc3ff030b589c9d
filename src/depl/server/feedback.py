"""The routes of feedback: what people decide about suggestions.

Whoever has the role for it may give feedback and read it; it holds documents and names of people.
Disk work is done in threads of its own, so that suggestions never wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from depl.labels.decisions import Decision, Entry
from depl.model.classifier import Classifier
from depl.server import answers, schemas
from depl.server.live_model import LiveModel
from depl.server.security import token_name

_LARGEST = 2**63 - 1  # that SQLite can compare


def router(
    live: LiveModel, *, dependencies: Sequence[Any], responses: dict[int | str, dict[str, Any]]
) -> APIRouter:
    """All routes under ``/feedback``."""
    made = APIRouter(tags=["feedback"], dependencies=list(dependencies), responses=responses)

    @made.post("/feedback", status_code=201)
    async def give_feedback(body: schemas.NewFeedback, request: Request) -> schemas.KeptFeedback:
        """Keep decisions about the labels of a document; sent again, they count once."""
        decisions = [Decision(x.label, x.verdict, x.probability, x.key) for x in body.decisions]

        def checked(model: Classifier) -> Classifier:
            for decision in decisions:
                answers.position(model, decision.label)
            return model

        feedback = (await live.read(checked)).feedback
        kept = await asyncio.to_thread(
            feedback.keep,
            body.text,
            decisions,
            id=body.id,
            source=body.source or "",
            by=body.by or token_name(request),
        )
        return schemas.KeptFeedback(decisions=[_kept(entry) for entry in kept])

    @made.get("/feedback")
    async def list_feedback(
        document: Annotated[
            str | None, Query(max_length=500, description="Only about the document with this id.")
        ] = None,
        label: Annotated[
            str | None, Query(max_length=500, description="Only about the label with this id.")
        ] = None,
        before: Annotated[
            int | None,
            Query(ge=1, le=_LARGEST, description="Only decisions with a lower number."),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=schemas.MAX_PAGE)] = 20,
    ) -> schemas.FeedbackList:
        """List decisions, undone ones included, the latest first, page by page."""
        store = (await live.read(lambda model: model)).feedback.store

        def page() -> schemas.FeedbackList:
            wanted = {"document": document, "label": label}
            found = store.history(**wanted, before=before, limit=limit + 1)
            shown, more = found[:limit], len(found) > limit
            return schemas.FeedbackList(
                total=store.count(**wanted),
                decisions=[_kept(entry) for entry in shown],
                next=shown[-1].number if more else None,
            )

        return await asyncio.to_thread(page)

    @made.delete("/feedback/{number}")
    async def undo_feedback(
        request: Request,
        number: Annotated[int, Path(ge=1, le=_LARGEST, description="Of the decision.")],
        by: Annotated[str, Query(max_length=500, description="Who undoes it.")] = "",
    ) -> schemas.KeptDecision:
        """Undo a decision; it stays in the history, marked as undone."""
        store = (await live.read(lambda model: model)).feedback.store
        return _kept(await asyncio.to_thread(store.undo, number, by=by or token_name(request)))

    return made


async def keep_examples(live: LiveModel, label_id: str, texts: Sequence[str], *, by: str) -> None:
    """Keep documents that have a label, for `depl learn`."""

    def checked(model: Classifier) -> Classifier:
        answers.position(model, label_id)
        return model

    store = (await live.read(checked)).feedback.store

    def keep() -> None:
        for text in texts:
            store.add(text, [Decision(label_id, "added")], by=by)

    await asyncio.to_thread(keep)


def _kept(entry: Entry) -> schemas.KeptDecision:
    return schemas.KeptDecision(**asdict(entry))
