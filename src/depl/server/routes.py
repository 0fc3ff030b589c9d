"""The addresses of the service. What they say is in ``views``, what they take in ``schemas``."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.security import HTTPBearer

from depl.core.corpus import Label
from depl.model.classifier import Classifier
from depl.server import schemas, views
from depl.server.schemas import Band
from depl.server.security import Access
from depl.server.service import Service
from depl.server.views import Asked

T = TypeVar("T")

_CLIENT_GONE = 499  # nobody will read it, but the log and the metrics will

LabelPath = Annotated[str, Path(description="The label's id, percent-encoded.")]
Responses = dict[int | str, dict[str, Any]]


def api(service: Service, access: Access) -> APIRouter:
    """All of ``/v1``."""
    reading = _guard(access, access.check_read, shown=access.token_for_all)
    router = APIRouter(dependencies=reading)
    router.include_router(_asking(service))
    router.include_router(_looking(service, access))
    router.include_router(_changing(service, access))
    return router


def _guard(access: Access, check: Any, *, shown: bool) -> list[Any]:  # noqa: ANN401
    """What a route depends on; OpenAPI tells of the token where it is needed."""
    bearer = [Depends(HTTPBearer(auto_error=False))] if shown and access.token else []
    return [*bearer, Depends(check)]


def _problems(*statuses: int) -> Responses:
    return {status: {"model": schemas.ProblemResponse} for status in (*statuses, 503, 504)}


def _asking(service: Service) -> APIRouter:
    router = APIRouter(tags=["suggestions"], responses=_problems(400, 401, 408, 413, 422))

    @router.post("/v1/predict", response_model=schemas.PredictResponse)
    async def predict(body: schemas.PredictRequest, request: Request) -> dict[str, Any]:
        """Suggest labels for texts."""
        asked = [Asked(text, body.k, body.threshold, body.band) for text in body.texts]
        rows = await _while_connected(request, service.suggest(asked))
        return {"results": [{"labels": row} for row in rows]}

    @router.post("/v1/explain", response_model=schemas.ExplainResponse, responses=_problems(404))
    async def explain(body: schemas.ExplainRequest, request: Request) -> dict[str, Any]:
        """Tell why a label is suggested for a text, or is not."""

        def explained(model: Classifier) -> dict[str, Any]:
            _position(model, body.label)
            found: dict[str, Any] = model.explain(body.text, body.label).to_json()
            return found

        return await _while_connected(request, service.read(explained))

    return router


def _looking(service: Service, access: Access) -> APIRouter:
    router = APIRouter(tags=["labels"], responses=_problems(401))

    @router.get("/v1/info", response_model=schemas.Info)
    async def info() -> dict[str, Any]:
        """Tell what the service knows and allows."""
        return await service.read(lambda model: views.info(model, writable=access.writable))

    @router.get("/v1/labels", response_model=schemas.LabelList, responses=_problems(422))
    async def list_labels(
        search: Annotated[
            str, Query(max_length=500, description="Part of a name, or a whole id.")
        ] = "",
        band: Annotated[Band | Literal[""], Query()] = "",
        sort: Annotated[
            schemas.Sort, Query(description="By name, or by training documents, most first.")
        ] = "name",
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=schemas.MAX_PAGE)] = 20,
    ) -> dict[str, Any]:
        """List labels, page by page."""
        return await service.listed(
            search=search.strip(), band=band, sort=sort, offset=offset, limit=limit
        )

    @router.get(
        "/v1/labels/{label_id:path}", response_model=schemas.WholeLabel, responses=_problems(404)
    )
    async def show_label(label_id: LabelPath) -> dict[str, Any]:
        """Show one label: description, keywords, nearest labels."""
        return await service.read(lambda model: views.whole(model, _position(model, label_id)))

    return router


def _changing(service: Service, access: Access) -> APIRouter:
    writing = _guard(access, access.check_write, shown=True)
    router = APIRouter(tags=["changes"], responses=_problems(401, 403))
    bad_body = _problems(400, 408, 413, 422)

    @router.post(
        "/v1/labels",
        status_code=201,
        response_model=schemas.WholeLabel,
        responses=_problems(409) | bad_body,
        dependencies=writing,
    )
    async def add_label(body: schemas.NewLabel) -> dict[str, Any]:
        """Add a label; it can be suggested at once."""
        label = Label(body.id, body.name.strip(), tuple(x.strip() for x in body.alt_names))

        def added(model: Classifier) -> dict[str, Any]:
            if model.labels.get(label.id) >= 0:
                raise HTTPException(
                    409, f"There is a label with the id {label.id!r} already. Take another id."
                )
            model.add_labels(
                [label],
                descriptions={label.id: _tidy(body.description)} if body.description else None,
                examples={label.id: body.examples} if body.examples else None,
            )
            return views.whole(model, model.labels.index(label.id))

        return await service.change(added)

    # Before the routes with an id, which would take it for one.
    @router.post(
        "/v1/labels/undo",
        response_model=schemas.Undone,
        responses=_problems(409),
        dependencies=writing,
    )
    async def undo() -> dict[str, str]:
        """Take back the last change."""
        return {"undone": await service.undo()}

    @router.patch(
        "/v1/labels/{label_id:path}",
        response_model=schemas.WholeLabel,
        responses=_problems(404) | bad_body,
        dependencies=writing,
    )
    async def change_label(label_id: LabelPath, body: schemas.LabelChange) -> dict[str, Any]:
        """Rename or describe a label."""
        if not body.name and not body.description:
            raise HTTPException(422, "Nothing to change: give a name, a description, or both.")

        def changed(model: Classifier) -> dict[str, Any]:
            _position(model, label_id)
            if body.name:
                model.rename_label(label_id, body.name.strip())
            if body.description:
                model.describe_label(label_id, _tidy(body.description))
            return views.whole(model, model.labels.index(label_id))

        return await service.change(changed)

    @router.delete(
        "/v1/labels/{label_id:path}",
        status_code=204,
        responses=_problems(404),
        dependencies=writing,
    )
    async def remove_label(label_id: LabelPath) -> None:
        """Remove a label; it is no longer suggested."""

        def removed(model: Classifier) -> None:
            _position(model, label_id)
            model.remove_label(label_id)

        await service.change(removed)

    @router.post(
        "/v1/reload",
        response_model=schemas.Reloaded,
        responses=_problems(500),
        dependencies=_guard(access, access.check_operator, shown=True),
    )
    async def reload() -> dict[str, Any]:
        """Load the run anew; requests go on meanwhile."""
        seconds = await service.reload()
        labels = await service.read(lambda model: len(views.present(model)))
        return {"labels": labels, "seconds": round(seconds, 3)}

    return router


def _position(model: Classifier, label_id: str) -> int:
    position = model.labels.get(label_id)
    if position < 0 or position in model.removed:
        raise HTTPException(
            404, f"There is no label with the id {label_id!r}. GET /v1/labels lists all."
        )
    return position


def _tidy(text: str) -> str:
    return " ".join(text.split())


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, which is given up when the client goes away."""
    working = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    tasks: Sequence[asyncio.Task[Any]] = (working, gone)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise HTTPException(_CLIENT_GONE, "The client closed the connection.")
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
