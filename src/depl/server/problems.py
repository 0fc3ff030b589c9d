"""Answers that say what went wrong: one shape for all, and the status that fits."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from depl.core.errors import BusyError, RunError, without_middle
from depl.labels.feedback import KeyTakenError, NoSuchDecisionError
from depl.labels.journal import NothingToUndoError
from depl.labels.review_queue import NotInQueueError
from depl.server.batching import QueueFullError, TooLateError
from depl.server.schemas import ProblemResponse

CLIENT_GONE = 499  # only seen in the log and the metrics

Responses = dict[int | str, dict[str, Any]]

_SHOWN_TROUBLES = 5

# What is wrong with a field, by pydantic's name for it, in fewer and plainer words than its own.
_PHRASES = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must contain readable text and no control characters",
    "list_type": "must be a list",
    "too_short": "must have at least {min_length} entry",
    "too_long": "must have at most {max_length} entries",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "threshold": "must be a number, precision=P with P above 0 and at most 1, or f1",
    "model_attributes_type": "must be a JSON object",
}


def described(*statuses: int) -> Responses:
    """What OpenAPI is to say of statuses of a route, and of 422: the answer is a problem.

    One of them brings the model, the others refer to it: preparing it again for every status of
    every route took most of the time in which a service starts.
    """
    reference = {"$ref": f"#/components/schemas/{ProblemResponse.__name__}"}
    problems: Responses = {
        x: {"content": {"application/json": {"schema": reference}}} for x in statuses
    }
    return problems | {422: {"model": ProblemResponse}}


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An answer that says what is wrong, in at most 2,000 characters whatever it quotes."""
    # Bad input that is quoted may hold what cannot be sent: half a surrogate pair.
    readable = without_middle(message).encode("utf-8", "replace").decode()
    return JSONResponse({"error": {"message": readable}}, status, headers)


def as_problem(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in an error."""
    if isinstance(error, RequestValidationError):
        return problem(422, _troubles(request, error))
    if isinstance(error, HTTPException):
        # Only what has no message needs a phrase: 499 is none that Python knows.
        message = error.detail or HTTPStatus(error.status_code).phrase
        if message == HTTPStatus.NOT_FOUND.phrase:  # starlette's own; others say what is missing
            message = f"There is nothing at {request.url.path}. /docs lists all requests."
        return problem(error.status_code, message, dict(error.headers or {}))
    if isinstance(error, (QueueFullError, BusyError)):
        return problem(503, str(error), {"Retry-After": "1"})
    if isinstance(error, TooLateError):
        return problem(504, str(error))
    if isinstance(error, (NothingToUndoError, KeyTakenError)):
        return problem(409, str(error))
    if isinstance(error, (NoSuchDecisionError, NotInQueueError)):
        return problem(404, str(error))
    return problem(500 if isinstance(error, RunError) else 422, str(error))


def _troubles(request: Request, error: RequestValidationError) -> str:
    """What is wrong with a request, without repeating what may be megabytes."""
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        where = found[0]["loc"][-1]
        return f"The request is not valid JSON: {found[0]['ctx']['error']} at character {where}."
    if isinstance(error.body, bytes):
        kind = request.headers.get("content-type") or "no such header"
        return f"Send JSON with the header 'Content-Type: application/json'; got {kind}."
    sentences = [_sentence(trouble) for trouble in found[:_SHOWN_TROUBLES]]
    if len(found) > _SHOWN_TROUBLES:
        sentences.append(f"And {len(found) - _SHOWN_TROUBLES} more.")
    return " ".join(sentences)


def _sentence(trouble: dict[str, Any]) -> str:
    place = ".".join(str(x) for x in trouble["loc"] if x not in ("body", "query"))
    phrase = _PHRASES.get(trouble["type"])
    if phrase is None:
        return f"{place or 'The request'}: {trouble['msg']}."
    return f"{place or 'The request'} {phrase.format(**trouble.get('ctx', {}))}."
