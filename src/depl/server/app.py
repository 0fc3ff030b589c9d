"""The service as an ASGI application; ``depl serve RUN`` runs it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
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
    from depl.server.jobs import MOST_JOBS, Jobs
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
header `Retry-After` says in how many seconds to try again.

A service of several runs answers for the first of them. For another, put `/v1/runs/NAME` in the
place of `/v1`; `GET /v1/runs` lists the names."""

_POLICY = "Content-Security-Policy"
_ITS_STYLES = "style-src 'self' 'unsafe-inline'; img-src 'self' data:"


def create_app(
    model: Classifier | Mapping[str, Classifier],
    *,
    access: Access | None = None,
    batching: Batching | None = None,
    most_jobs: int = MOST_JOBS,
) -> FastAPI:
    """The service as an ASGI application.

    Parameters
    ----------
    model : Classifier, or mapping of str to Classifier
        Loaded; from now on only the application may use it. Several have a name each, and the first
        of them also answers where no name is given.
    access : Access or None
        Who may do what; by default everyone may read and nobody may change labels.
    batching : Batching or None
        How the texts of several requests share a batch.
    most_jobs : int
        How many files may wait to be labelled in the background, for each run.

    Returns
    -------
    FastAPI
        With the runs it serves in ``app.state.runs``.
    """
    models = {address_of(model.name): model} if isinstance(model, Classifier) else model
    access, batching = access or Access(), batching or Batching()
    metrics = Metrics()
    runs = [
        LiveModel(x, name=name, batching=batching, metrics=metrics.of_run(name))
        for name, x in models.items()
    ]
    jobs = [None if x.folder is None else Jobs(x, x.folder, most_jobs) for x in runs]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for x in (*runs, *jobs):
                if x is not None:
                    await running.enter_async_context(x.running())
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
    app.state.runs = runs
    app.add_middleware(Middleware, metrics=metrics, timeout=batching.timeout, access=access)
    if access.origins:  # around the rest: pages of other sites must be able to read any answer
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.include_router(routes.list_of_runs(runs, access), prefix="/v1")
    apis = [routes.api(run, access, x) for run, x in zip(runs, jobs, strict=True)]
    app.include_router(apis[0], prefix="/v1")
    for run, api in zip(runs, apis, strict=True):
        # The same once more, under its name; OpenAPI has all of it already.
        app.include_router(api, prefix=f"/v1/runs/{run.name}", include_in_schema=False)
        _add_files(app, PAGE, f"/runs/{run.name}/")
    _add_operations(app, runs, metrics, access)
    _add_files(app, PAGE, "/")
    # What draws the reference sets styles in its elements; scripts come from files as everywhere.
    _add_files(app, REFERENCE, "/docs", {_POLICY: f"{HEADERS[_POLICY]}; {_ITS_STYLES}"})
    for kind in (HTTPException, RequestValidationError, DeplError):
        app.add_exception_handler(kind, as_problem)
    return app


def address_of(name: str) -> str:
    """A run's name as it is in addresses.

    Examples
    --------
    >>> address_of("eurlex 57k (new)")
    'eurlex-57k-new'
    """
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "run"


def _add_operations(
    app: FastAPI, runs: Sequence[LiveModel], metrics: Metrics, access: Access
) -> None:
    """Health, metrics and the API description, for whoever runs the service."""

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        if all(run.ready for run in runs):
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
