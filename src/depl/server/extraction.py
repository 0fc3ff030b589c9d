"""The route that turns a file into text, so that a browser can label PDF, Word and HTML files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from depl.core.errors import MissingExtraError
from depl.readers.extraction import extract
from depl.readers.files import html_by_name
from depl.readers.plain_text import NoDocumentError
from depl.server.problems import described
from depl.server.schemas import MAX_CHARACTERS

FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ExtractResponse(BaseModel):
    """What is in a file."""

    text: Annotated[str, Field(description="The text, as much of it as can be labelled.")]
    title: Annotated[str, Field(description="The title that the file gives itself, or nothing.")]
    cut: Annotated[bool, Field(description="Whether the text was longer than can be labelled.")]


def router() -> APIRouter:
    """``POST /extract``; who may read may use it."""
    troubles = described(401, 408, 413, 422, 429, 501, 503, 504)
    found = APIRouter(tags=["suggestions"], responses=troubles)

    @found.post("/extract", openapi_extra=FILE_BODY)
    async def extract_text(
        request: Request,
        name: Annotated[
            str, Query(max_length=500, description="The file's name; its suffix tells HTML.")
        ] = "",
    ) -> ExtractResponse:
        """Give the text of a PDF, Word, HTML or text file, sent as the body of the request."""
        raw = await request.body()
        try:
            text, title = await run_in_threadpool(extract, raw, html=html_by_name(name))
        except NoDocumentError as error:
            raise HTTPException(422, f"{name or 'The file'} is not a document: {error}.") from None
        except MissingExtraError as error:
            raise HTTPException(501, f"{error} (where the service runs).") from None
        return ExtractResponse(
            text=text[:MAX_CHARACTERS], title=title[:500], cut=len(text) > MAX_CHARACTERS
        )

    return found
