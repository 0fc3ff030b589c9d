"""The route that tells a client what it may do here, so that a page can say so before it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, Field

from depl.server.live_model import LiveModel
from depl.server.security import Access, token_name

May = Literal["yes", "token", "no"]


class Visitor(BaseModel):
    """Who asks, and what they may do: "token" means with a token that they have not sent yet."""

    name: Annotated[str, Field(description="Whose token it is; empty without one.")]
    feedback: May
    edit: May
    why_not: Annotated[
        Literal["", "read-only", "closed", "elsewhere", "role"],
        Field(
            description="Why labels cannot be edited: the service is read-only; it was started "
            "without any way to write; only its own machine may; the token's role is too low."
        ),
    ]
    undo: Annotated[
        str | None, Field(description="The change of labels that would be undone, if there is one.")
    ]


def router(live: LiveModel, access: Access) -> APIRouter:
    """``GET /v1/visitor``; who may read may use it."""
    made = APIRouter(tags=["labels"])

    @made.get("/visitor")
    async def show_visitor(request: Request) -> Visitor:
        """Say what the client may do."""
        feedback = _may(access.check_feedback, request)
        edit = _may(access.check_write, request)
        return Visitor(
            name=token_name(request),
            feedback=feedback,
            edit=edit,
            why_not=_why_not(access) if edit == "no" else "",
            undo=await live.read(lambda model: model.last_edit),
        )

    return made


def _may(check: Callable[[Request], None], request: Request) -> May:
    try:
        check(request)
    except HTTPException as error:
        return "token" if error.status_code == 401 else "no"
    return "yes"


def _why_not(access: Access) -> Literal["read-only", "closed", "elsewhere", "role"]:
    if access.read_only:
        return "read-only"
    if access.known:
        return "role"
    return "elsewhere" if access.local_writes else "closed"
