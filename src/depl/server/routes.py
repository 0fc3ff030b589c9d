"""The routes of one run; ``answers`` builds what they return, ``schemas`` describes it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.security import HTTPBearer

from depl.core.corpus import Label
from depl.model.classifier import Classifier
from depl.server import (
    answers,
    extraction,
    feedback,
    hierarchy,
    job_routes,
    review,
    schemas,
    tables,
    visitor,
)
from depl.server.answers import Question
from depl.server.jobs import Jobs
from depl.server.live_model import LiveModel
from depl.server.problems import CLIENT_GONE, Responses, described
from depl.server.security import Access, token_name

T = TypeVar("T")

LabelPath = Annotated[str, Path(description="The label's id, percent-encoded.")]


def api(live: LiveModel, access: Access, jobs: Jobs | None) -> APIRouter:
    """All that one run answers; the addresses are relative to ``/v1`` or ``/v1/runs/NAME``."""
    reading = _guard(access, access.check_read, shown=access.token_for_all)
    router = APIRouter(dependencies=reading)
    router.include_router(_suggesting(live))
    router.include_router(extraction.router())
    router.include_router(tables.router(live))
    router.include_router(hierarchy.router(_problems(401, 404, 422), live))
    router.include_router(visitor.router(live, access))
    router.include_router(_browsing(live, access))
    router.include_router(_editing(live, access))
    if jobs is not None:
        troubles = _problems(400, 401, 404, 408, 409, 413, 500)
        router.include_router(job_routes.router(live, jobs, responses=troubles))
    giving = _guard(access, access.check_feedback, shown=True)
    troubles = _problems(400, 401, 403, 404, 408, 409, 413, 422)
    router.include_router(feedback.router(live, dependencies=giving, responses=troubles))
    router.include_router(review.router(live, dependencies=giving, responses=troubles))
    return router


def list_of_runs(runs: Sequence[LiveModel], access: Access) -> APIRouter:
    """``GET /runs``."""
    router = APIRouter(
        tags=["labels"],
        responses=_problems(401),
        dependencies=_guard(access, access.check_read, shown=access.token_for_all),
    )

    @router.get("/runs")
    async def list_runs() -> schemas.RunList:
        """List the runs of this service; the first also answers where no name is given."""
        entries = [await run.read(partial(answers.run_entry, name=run.name)) for run in runs]
        return schemas.RunList(runs=entries)

    return router


def _guard(access: Access, check: Any, *, shown: bool) -> list[Any]:  # noqa: ANN401
    """What a route depends on; ``shown`` makes OpenAPI mention the token."""
    bearer = [Depends(HTTPBearer(auto_error=False))] if shown and access.known else []
    return [*bearer, Depends(check)]


def _problems(*statuses: int) -> Responses:
    return described(*statuses, 422, 429, 503, 504)


def _suggesting(live: LiveModel) -> APIRouter:
    router = APIRouter(tags=["suggestions"], responses=_problems(400, 401, 408, 413, 422))

    @router.post("/predict")
    async def predict(body: schemas.PredictRequest, request: Request) -> schemas.PredictResponse:
        """Suggest labels for texts."""
        in_words = isinstance(body.threshold, str) and "k" not in body.model_fields_set
        k, least = (
            schemas.MAX_LABELS if in_words else body.k,
            live.least_probability(body.threshold),
        )
        wanted = (k, least, body.band, body.ancestors)
        questions = [Question(text, *wanted) for text in body.texts]
        run = live.version  # of before: who compares it asks once too often rather than never again
        rows = await _while_connected(request, live.suggest(questions))
        results = [schemas.Suggestions(labels=row) for row in rows]
        return schemas.PredictResponse(results=results, run=run)

    @router.post("/explain", responses=_problems(404))
    async def explain(body: schemas.ExplainRequest, request: Request) -> schemas.ExplainResponse:
        """Explain why a label is suggested for a text, or why not."""

        def explained(model: Classifier) -> schemas.ExplainResponse:
            answers.position(model, body.label)
            found = model.explain(body.text, body.label).to_json()
            return schemas.ExplainResponse.model_validate(found)

        return await _while_connected(request, live.read(explained))

    return router


def _browsing(live: LiveModel, access: Access) -> APIRouter:
    router = APIRouter(tags=["labels"], responses=_problems(401))

    @router.get("/info")
    async def info() -> schemas.Info:
        """Describe the run, and whether its labels can be changed."""
        return await live.read(lambda model: answers.info(model, writable=access.writable))

    @router.get("/labels", responses=_problems(422))
    async def list_labels(
        search: Annotated[
            str, Query(max_length=500, description="Part of a name, or a whole id.")
        ] = "",
        band: Annotated[
            schemas.AnyBand, Query(description="Only labels of this band; empty for all.")
        ] = "",
        sort: Annotated[
            schemas.Sort,
            Query(description="By name, or by number of training documents, most first."),
        ] = "name",
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=schemas.MAX_PAGE)] = 20,
    ) -> schemas.LabelList:
        """List labels, page by page."""
        return await live.listed(
            search=search.strip(), band=band, sort=sort, offset=offset, limit=limit
        )

    @router.get("/labels/{label_id:path}", responses=_problems(404))
    async def show_label(label_id: LabelPath) -> schemas.WholeLabel:
        """Show one label: description, keywords, similar labels."""
        return await live.read(
            lambda model: answers.whole_label(model, answers.position(model, label_id))
        )

    return router


def _editing(live: LiveModel, access: Access) -> APIRouter:
    writing = _guard(access, access.check_write, shown=True)
    router = APIRouter(tags=["changes"], responses=_problems(401, 403))
    bad_body = _problems(400, 408, 413, 422)

    @router.post(
        "/labels",
        status_code=201,
        responses=_problems(409) | bad_body,
        dependencies=writing,
    )
    async def add_label(body: schemas.NewLabel) -> schemas.WholeLabel:
        """Add a label; it can be suggested right away."""
        label = Label(body.id, body.name.strip(), tuple(x.strip() for x in body.alt_names))

        def added(model: Classifier) -> schemas.WholeLabel:
            if model.labels.get(label.id) >= 0:
                raise HTTPException(
                    409, f"A label with the id {label.id!r} already exists. Choose another id."
                )
            model.add_labels(
                [label],
                descriptions={label.id: _tidy(body.description)} if body.description else None,
                examples={label.id: body.examples} if body.examples else None,
            )
            return answers.whole_label(model, model.labels.index(label.id))

        return await live.change(added)

    # Before the routes with an id, which would read "undo" as one.
    @router.post("/labels/undo", responses=_problems(409), dependencies=writing)
    async def undo() -> schemas.Undone:
        """Undo the last change."""
        return schemas.Undone(undone=await live.undo())

    @router.patch(
        "/labels/{label_id:path}",
        responses=_problems(404) | bad_body,
        dependencies=writing,
    )
    async def change_label(
        label_id: LabelPath, body: schemas.LabelChange, request: Request
    ) -> schemas.WholeLabel:
        """Change what is given: name, other names, description; give further examples."""
        if not body.model_fields_set:
            raise HTTPException(
                422, "Nothing to change: give a name, alt_names, a description or examples."
            )

        def changed(model: Classifier) -> schemas.WholeLabel:
            answers.position(model, label_id)
            if body.name or body.alt_names is not None:
                model.rename_label(label_id, body.name.strip() or None, body.alt_names)
            if body.description:
                model.describe_label(label_id, _tidy(body.description))
            return answers.whole_label(model, model.labels.index(label_id))

        if body.examples:
            await feedback.keep_examples(live, label_id, body.examples, by=token_name(request))
        return await live.change(changed)

    @router.delete(
        "/labels/{label_id:path}",
        status_code=204,
        responses=_problems(404),
        dependencies=writing,
    )
    async def remove_label(label_id: LabelPath) -> None:
        """Remove a label; it is never suggested again."""

        def removed(model: Classifier) -> None:
            answers.position(model, label_id)
            model.remove_label(label_id)

        await live.change(removed)

    @router.post(
        "/reload",
        responses=_problems(500),
        dependencies=_guard(access, access.check_operator, shown=True),
    )
    async def reload() -> schemas.Reloaded:
        """Load the run from disk again; requests are answered meanwhile."""
        seconds = await live.reload_everywhere()
        labels = await live.read(lambda model: len(answers.present(model)))
        return schemas.Reloaded(labels=labels, seconds=round(seconds, 3))

    return router


def _tidy(text: str) -> str:
    return " ".join(text.split())


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, which is cancelled when the client disconnects."""
    working = asyncio.create_task(work)
    disconnected = asyncio.create_task(_disconnected(request))
    tasks: Sequence[asyncio.Task[Any]] = (working, disconnected)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise HTTPException(CLIENT_GONE, "The client closed the connection.")
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
