"""The route that turns a table into documents, so that a browser can label every row of it."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from depl.core.errors import CorpusError, MissingExtraError
from depl.readers.columns import Columns
from depl.readers.documents import Documents
from depl.server.extraction import FILE_BODY
from depl.server.live_model import LiveModel
from depl.server.problems import described
from depl.server.schemas import MAX_CHARACTERS

MAX_ROWS = 5_000

# What people do about columns that nothing tells: on a page there are no options.
_ON_THE_COMMAND_LINE = "give --text NAME (in Python: text=)."
_HERE = "call the column “text” in the file, and open it again."

_SAID = 20  # rows that were left out, of which the reason is told


class TableRow(BaseModel):
    """A row as a document."""

    id: str
    text: str
    numbered: Annotated[
        bool, Field(description="Whether the id is only the number of the row, for lack of one.")
    ]


class TableResponse(BaseModel):
    """The documents of a table, and how they were taken from it."""

    documents: list[TableRow]
    described: Annotated[str, Field(description="What the file is: separator, encoding, sheet.")]
    text: Annotated[list[str], Field(description="The columns that were taken as text.")]
    left_out: Annotated[int, Field(description="Rows without a usable text.")]
    reasons: Annotated[list[str], Field(description=f"Why, for the first {_SAID} of them.")]
    cut: Annotated[bool, Field(description=f"Whether there are more than {MAX_ROWS:,} rows.")]


def router(live: LiveModel) -> APIRouter:
    """``POST /v1/table``; who may read may use it."""
    troubles = described(401, 408, 413, 422, 429, 501, 503, 504)
    made = APIRouter(tags=["suggestions"], responses=troubles)

    @made.post("/table", openapi_extra=FILE_BODY)
    async def read_table(
        request: Request,
        name: Annotated[
            str, Query(max_length=500, description="The file's name; its suffix tells the format.")
        ] = "table.csv",
        text: Annotated[
            str | None,
            Query(max_length=2_000, description="Columns of the text, separated by commas."),
        ] = None,
    ) -> TableResponse:
        """Give the rows of a CSV, TSV, Excel, JSON, JSON lines, Parquet or MARC file."""
        raw = await request.body()
        kept = await live.read(lambda model: model.columns)
        try:
            return await run_in_threadpool(_read, raw, name, text, kept)
        except MissingExtraError as error:
            raise HTTPException(501, f"{error} (where the service runs).") from None

    return made


def _read(raw: bytes, name: str, text: str | None, kept: dict[str, Any] | None) -> TableResponse:
    """Read through a file, as the command line does: some formats are read from the end."""
    left_out: list[str] = []
    taken: list[tuple[str, tuple[str, ...]]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, PurePath(name.replace("\\", "/")).name.lstrip(".") or "table.csv")

        def said(message: str) -> str:
            about_file, _, _ = message.partition(" What was written to --output")
            return about_file.replace(f"{folder}/", "").replace(_ON_THE_COMMAND_LINE, _HERE)

        try:
            path.write_bytes(raw)
            documents = Documents(
                [str(path)],
                left_out=lambda place, why: left_out.append(said(f"{place}: {why}")),
                columns=Columns.asked(text),
                kept=None if kept is None else Columns.from_json(kept),
                tell=lambda _, described, columns: taken.append((described, columns.text)),
            )
            found = list(islice(documents, MAX_ROWS + 1))
        except (OSError, ValueError) as error:  # a name that no file can have
            raise HTTPException(422, f"A file cannot be called {name!r:.100}.") from error
        except CorpusError as error:
            raise HTTPException(422, said(str(error))) from None
    described, columns = taken[0] if taken else ("", ())
    return TableResponse(
        documents=[
            TableRow(
                id=x.id.removeprefix(f"{folder}/"),
                text=x.text[:MAX_CHARACTERS],
                numbered=x.numbered,
            )
            for x in found[:MAX_ROWS]
        ],
        described=described,
        text=list(columns),
        left_out=len(left_out),
        reasons=left_out[:_SAID],
        cut=len(found) > MAX_ROWS,
    )
