"""The routes of jobs: files of documents that are labelled in the background."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse

from depl.fusion.aims import parse_threshold
from depl.server import schemas
from depl.server.extraction import FILE_BODY
from depl.server.job_files import Job, JobState, Output, Wish
from depl.server.jobs import MAX_REASONS, Jobs
from depl.server.live_model import LiveModel
from depl.server.problems import CLIENT_GONE


class JobStatus(BaseModel):
    """A file to label, and how far it is."""

    id: Annotated[str, Field(description="Whoever knows it can read and delete the job.")]
    name: Annotated[str, Field(description="The file's name.")]
    state: JobState
    documents: Annotated[int, Field(description="How many are labelled.")]
    progress: Annotated[float, Field(description="The share of the file that is done, 0 to 1.")]
    left_out: Annotated[int, Field(description="Rows without a usable text.")]
    reasons: Annotated[list[str], Field(description=f"Why, for the first {MAX_REASONS} of them.")]
    error: Annotated[str | None, Field(description="Why it failed, if it did.")]
    created: str
    finished: str | None


_FILE_NAME = Query(max_length=200, description="The file's name; its suffix tells the format.")


def router(
    live: LiveModel, jobs: Jobs, *, responses: Mapping[int | str, dict[str, Any]]
) -> APIRouter:
    """All routes under ``/jobs``."""
    made = APIRouter(tags=["jobs"], responses=dict(responses))

    @made.post("/jobs", status_code=202, openapi_extra=FILE_BODY)
    async def start_job(
        request: Request,
        name: Annotated[str, _FILE_NAME] = "documents.csv",
        output: Annotated[Output, Query(description="The format of the result.")] = "csv",
        k: Annotated[int | None, Query(ge=1, le=schemas.MAX_LABELS)] = None,
        threshold: Annotated[
            str | None, Query(max_length=40, description="A number, precision=P or f1.")
        ] = None,
        text: Annotated[
            str | None,
            Query(max_length=2_000, description="Columns of the text, separated by commas."),
        ] = None,
        id: Annotated[str | None, Query(max_length=500, description="Column of the id.")] = None,
        wide: Annotated[
            bool, Query(description="A row a document, with the columns of the file.")
        ] = False,
    ) -> JobStatus:
        """Label the documents of a file, sent as the body of the request, in the background."""
        if wide and output == "parquet":
            raise HTTPException(422, "wide is for csv, tsv, xlsx and jsonl, not for parquet.")
        aim = None if threshold is None else parse_threshold(threshold)
        wish = Wish(
            name=PurePath(name.replace("\\", "/")).name.lstrip(".") or "documents.csv",
            output=output,
            k=k or (schemas.MAX_LABELS if isinstance(aim, str) else 5),
            threshold=live.least_probability(aim),
            text=text,
            id=id,
            wide=wide,
        )
        key, folder = await jobs.new_folder()
        try:
            await _receive(request, folder / wish.name)
            return _status(await jobs.add(key, wish))
        except BaseException:  # a client that has gone, too
            await jobs.drop_folder(key)
            raise

    @made.get("/jobs/{job_id}")
    async def show_job(job_id: str) -> JobStatus:
        """How far a job is."""
        return _status(await _found(job_id))

    @made.get(
        "/jobs/{job_id}/result",
        response_class=FileResponse,
        responses={200: {"content": FILE_BODY["requestBody"]["content"]}},
    )
    async def job_result(job_id: str) -> FileResponse:
        """The labels of all documents, once the job is finished."""
        job = await _found(job_id)
        if job.state != "finished":
            raise HTTPException(409, _why_not(job))
        return FileResponse(
            jobs.result(job), media_type="application/octet-stream", filename=job.result_name
        )

    @made.delete("/jobs/{job_id}", status_code=204)
    async def delete_job(job_id: str) -> None:
        """Cancel a job, or delete its result."""
        await jobs.remove(await _found(job_id))

    async def _found(job_id: str) -> Job:
        job = await jobs.get(job_id)
        if job is None:
            raise HTTPException(404, "There is no job with this id. Its result may be deleted.")
        return job

    return made


async def _receive(request: Request, path: Path) -> None:
    """Write the body of a request to a file, piece by piece."""
    try:
        with path.open("wb") as file:
            async for piece in request.stream():
                await asyncio.to_thread(file.write, piece)
    except ClientDisconnect:
        raise HTTPException(CLIENT_GONE, "The client closed the connection.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno in (errno.ENAMETOOLONG, errno.EINVAL):
            raise HTTPException(422, f"A file cannot be called {path.name!r:.100}.") from error
        reason = error.strerror or error
        raise HTTPException(500, f"The file could not be kept: {reason}.") from error
    if not path.stat().st_size:
        raise HTTPException(422, "The file is empty. Send it as the body of the request.")


def _why_not(job: Job) -> str:
    if job.state == "failed":
        return f"The job has failed: {job.error}"
    return f"The job is not finished: {job.progress:.0%} of the file is done. Ask again later."


def _status(job: Job) -> JobStatus:
    return JobStatus(
        id=job.id,
        name=job.wish.name,
        state=job.state,
        documents=job.documents,
        progress=round(job.progress, 3),
        left_out=job.left_out,
        reasons=list(job.reasons),
        error=job.error,
        created=job.created,
        finished=job.finished,
    )
