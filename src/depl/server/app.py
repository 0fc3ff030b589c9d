"""The service as an ASGI application; ``depl serve RUN`` runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from depl.core.errors import DeplError, MissingExtraError
from depl.core.version import __version__
from depl.model.classifier import Classifier

try:
    from fastapi import Depends, FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.middleware.cors import CORSMiddleware
    from starlette.responses import JSONResponse, Response
    from starlette.staticfiles import StaticFiles

    from depl.server import routes
    from depl.server.batching import Batching
    from depl.server.examples import add_examples
    from depl.server.live_model import LiveModel
    from depl.server.metrics import Metrics
    from depl.server.middleware import Middleware
    from depl.server.problems import as_problem, problem
    from depl.server.security import HEADERS, Access
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "serve", "The service") from error

PAGE = Path(__file__).parent / "page"
REFERENCE = Path(__file__).parent / "reference"

_DESCRIPTION = """\
`POST /v1/predict` suggests labels for texts; the rest explains, browses and changes them.

A request that needs a token sends it as `Authorization: Bearer TOKEN`. Every answer with a status
of 400 or more is `{"error": {"message": ...}}`. When the queue is full the status is 503, and the
header `Retry-After` says in how many seconds to try again."""

_POLICY = "Content-Security-Policy"
_ITS_STYLES = "style-src 'self' 'unsafe-inline'; img-src 'self' data:"


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
        Loaded; from now on only the application may use it.
    run : path or None
        The folder it was loaded from, for reloading.
    access : Access or None
        Who may do what; by default everyone may read and nobody may change labels.
    batching : Batching or None
        How the texts of several requests share a batch.

    Returns
    -------
    FastAPI
        With the model it serves in ``app.state.live_model``.
    """
    access, batching = access or Access(), batching or Batching()
    metrics = Metrics()
    live = LiveModel(model, run=run, batching=batching, metrics=metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with live.running():
            yield

    app = FastAPI(
        title="depl",
        summary="Labels for documents from a very large label set.",
        description=_DESCRIPTION,
        generate_unique_id_function=lambda route: route.name,
        version=__version__,
        lifespan=lifespan,
        # FastAPI's own documentation pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.live_model = live
    app.add_middleware(Middleware, metrics=metrics, timeout=batching.timeout, access=access)
    if access.origins:  # around the rest: pages of other sites must be able to read any answer
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.include_router(routes.api(live, access))
    _add_operations(app, live, metrics, access)
    _add_files(app, PAGE, "/")
    # What draws the reference sets styles in its elements; scripts come from files as everywhere.
    _add_files(app, REFERENCE, "/docs", {_POLICY: f"{HEADERS[_POLICY]}; {_ITS_STYLES}"})
    for kind in (HTTPException, RequestValidationError, DeplError):
        app.add_exception_handler(kind, as_problem)
    return app


def _add_operations(app: FastAPI, live: LiveModel, metrics: Metrics, access: Access) -> None:
    """Health, metrics and the API description, for whoever runs the service."""

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        if live.ready:
            return JSONResponse({"status": "ready"})
        return problem(503, "The service is not ready.", {"Retry-After": "1"})

    reading = [Depends(access.check_read)]

    @app.get("/metrics", include_in_schema=False, dependencies=reading)
    async def show_metrics() -> Response:
        return Response(metrics.text(), headers={"Content-Type": metrics.content_type})

    # Open to everybody, like the files that show it: it says nothing of the run.
    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            add_examples(app.openapi())
        return app.openapi()


def _add_files(
    app: FastAPI, folder: Path, address: str, headers: Mapping[str, str] | None = None
) -> None:
    """One route per file of a folder, so that no other file can be asked for."""
    kept = {"Cache-Control": "no-cache", **(headers or {})}  # revalidate every time
    files = StaticFiles(directory=folder, check_dir=False)

    def add(path: str, name: str) -> None:
        async def file(request: Request) -> Response:
            response = await files.get_response(name, request.scope)
            response.headers.update(kept)
            return response

        app.add_api_route(path, file, methods=["GET", "HEAD"], include_in_schema=False)

    add(address, "index.html")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            add(f"{address.rstrip('/')}/{name}", name)
