"""The service: suggestions, explanations and label editing over HTTP, and a page for people.

``create_app(model)`` gives an ASGI application; ``depl serve RUN`` runs it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import depl
from depl.core.errors import DeplError, MissingExtraError, RunError
from depl.model.classifier import Classifier

try:
    from fastapi import Depends, FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, Response
    from starlette.staticfiles import StaticFiles

    from depl.server import routes
    from depl.server.batching import Batching, QueueFullError, TooLateError
    from depl.server.edge import Edge, problem
    from depl.server.metrics import Metrics
    from depl.server.security import Access
    from depl.server.service import NothingToUndoError, Service
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "serve", "The service") from error

PAGE = Path(__file__).parent / "page"

_SHOWN_TROUBLES = 5
_UNREADABLE = "There is nothing to read in it, or a control character"


def create_app(
    model: Classifier,
    *,
    run: Path | None = None,
    access: Access | None = None,
    batching: Batching | None = None,
) -> FastAPI:
    """The service as an ASGI application.

    Parameters
    ----------
    model : Classifier
        Loaded; from now on the application alone may use it.
    run : path or None
        Its folder, for reloading.
    access : Access or None
        Who may do what; by default everybody may read and nobody may write.
    batching : Batching or None
        How requests are put together.

    Returns
    -------
    FastAPI
        With the service in ``app.state.service``.
    """
    access, batching = access or Access(), batching or Batching()
    metrics = Metrics()
    service = Service(model, run=run, batching=batching, metrics=metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="depl",
        summary="Labels for documents from a very large label set.",
        version=depl.__version__,
        lifespan=lifespan,
        # The usual documentation pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.add_middleware(Edge, metrics=metrics, timeout=batching.timeout)
    app.include_router(routes.api(service, access))
    _add_operations(app, service, metrics, access)
    _add_page(app)
    for kind in (HTTPException, RequestValidationError, DeplError):
        app.add_exception_handler(kind, _as_problem)
    return app


def _add_operations(app: FastAPI, service: Service, metrics: Metrics, access: Access) -> None:
    """What those who run the service ask it."""

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        if service.ready:
            return JSONResponse({"status": "ready"})
        return problem(503, "The service is not ready.", {"Retry-After": "1"})

    reading = [Depends(access.check_read)]

    @app.get("/metrics", include_in_schema=False, dependencies=reading)
    async def show_metrics() -> Response:
        return Response(metrics.text(), headers={"Content-Type": metrics.content_type})

    @app.get("/openapi.json", include_in_schema=False, dependencies=reading)
    async def openapi() -> dict[str, Any]:
        return app.openapi()


def _add_page(app: FastAPI) -> None:
    """A route for every file of the page, and no other: they hide no address of the service."""
    files = StaticFiles(directory=PAGE, check_dir=False)

    def add(path: str, name: str) -> None:
        async def file(request: Request) -> Response:
            response = await files.get_response(name, request.scope)
            response.headers["Cache-Control"] = "no-cache"  # ask, and get a short "not modified"
            return response

        app.add_api_route(path, file, methods=["GET", "HEAD"], include_in_schema=False)

    add("/", "index.html")
    for path in sorted(PAGE.rglob("*")):
        if path.is_file():
            name = path.relative_to(PAGE).as_posix()
            add(f"/{name}", name)


def _as_problem(request: Request, error: Exception) -> Response:
    """Every refusal in one shape, with the status it deserves."""
    if isinstance(error, RequestValidationError):
        return problem(422, _troubles(request, error))
    if isinstance(error, HTTPException):
        message = error.detail or HTTPStatus(error.status_code).phrase
        return problem(error.status_code, message, dict(error.headers or {}))
    if isinstance(error, QueueFullError):
        return problem(503, str(error), {"Retry-After": "1"})
    if isinstance(error, TooLateError):
        return problem(504, str(error))
    if isinstance(error, NothingToUndoError):
        return problem(409, str(error))
    return problem(500 if isinstance(error, RunError) else 422, str(error))


def _troubles(request: Request, error: RequestValidationError) -> str:
    """What is wrong with a request, in words, without repeating what may be megabytes."""
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        return f"The body is not valid JSON: {found[0]['ctx']['error']} at {found[0]['loc'][-1]}."
    if isinstance(error.body, bytes):
        kind = request.headers.get("content-type") or "none"
        return f"Send JSON with the header 'Content-Type: application/json'; the header is {kind}."
    lines = []
    for trouble in found[:_SHOWN_TROUBLES]:
        place = ".".join(str(x) for x in trouble["loc"] if x not in ("body", "query"))
        message = _UNREADABLE if trouble["type"] == "string_pattern_mismatch" else trouble["msg"]
        lines.append(f"{place or 'The body'}: {message}.")
    if len(found) > _SHOWN_TROUBLES:
        lines.append(f"And {len(found) - _SHOWN_TROUBLES} more.")
    return " ".join(lines)
