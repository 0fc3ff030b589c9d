"""The routes that turn a table into documents, so that a browser can label every row of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from depl.core.errors import CorpusError, MissingExtraError
from depl.readers.columns import Columns
from depl.readers.documents import Documents
from depl.readers.preview import preview
from depl.readers.problems import Problems
from depl.server.extraction import FILE_BODY
from depl.server.live_model import LiveModel
from depl.server.problems import described
from depl.server.schemas import MAX_CHARACTERS

MAX_ROWS = 5_000

# What people do about columns that nothing tells: on a page there are no options.
_ON_THE_COMMAND_LINE = "give --text NAME (in Python: text=)."
_HERE = "choose it."

_SAID = 20  # rows that were left out, of which the reason is told


class TableRow(BaseModel):
    """A row as a document."""

    id: str
    text: str
    numbered: Annotated[
        bool, Field(description="Whether the id is only the number of the row, for lack of one.")
    ]


class Column(BaseModel):
    """A column of a table."""

    name: str
    example: Annotated[str, Field(description="How its first filled cell begins.")]


class TableContents(BaseModel):
    """What there is to choose from in a table, and what is taken unless somebody chooses."""

    described: Annotated[str, Field(description="What the file is: separator, encoding, sheet.")]
    sheet: Annotated[str, Field(description="The sheet; empty where the file has none.")]
    sheets: Annotated[list[str], Field(description="All sheets that are not empty.")]
    columns: Annotated[
        list[Column], Field(description="The columns; none in a file without them, such as MARC.")
    ]
    text: Annotated[list[str], Field(description="The columns of the text; none if it is unclear.")]
    id: Annotated[str | None, Field(description="The column of the id, if there is one.")]


class TableResponse(BaseModel):
    """The documents of a table, and how they were taken from it."""

    documents: list[TableRow]
    described: Annotated[str, Field(description="What the file is: separator, encoding, sheet.")]
    text: Annotated[list[str], Field(description="The columns that were taken as text.")]
    id: Annotated[str | None, Field(description="The column that was taken as id, if any.")]
    left_out: Annotated[int, Field(description="Rows without a usable text.")]
    reasons: Annotated[list[str], Field(description=f"Why, for the first {_SAID} of them.")]
    cut: Annotated[bool, Field(description=f"Whether there are more than {MAX_ROWS:,} rows.")]


TableName = Annotated[
    str, Query(max_length=500, description="The file's name; its suffix tells the format.")
]
SheetName = Annotated[
    str | None,
    Query(max_length=200, description="The sheet of an Excel or OpenDocument file."),
]


def router(live: LiveModel) -> APIRouter:
    """``POST /v1/table`` and ``/v1/table/columns``; who may read may use them."""
    troubles = described(401, 408, 413, 422, 429, 501, 503, 504)
    made = APIRouter(tags=["suggestions"], responses=troubles)

    async def kept_columns() -> Columns | None:
        kept = await live.read(lambda model: model.columns)
        return None if kept is None else Columns.from_json(kept)

    @made.post("/table", openapi_extra=FILE_BODY)
    async def read_table(
        request: Request,
        name: TableName = "table.csv",
        text: Annotated[
            list[str] | None,
            Query(
                max_length=100,
                description="Columns of the text: the parameter once for each, or names separated "
                "by commas.",
            ),
        ] = None,
        id: Annotated[
            str | None,
            Query(max_length=500, description="The column of the id; empty: rows are numbered."),
        ] = None,
        sheet: SheetName = None,
    ) -> TableResponse:
        """Give the rows of a CSV, TSV, Excel, JSON, JSON lines, Parquet or MARC file."""
        raw = await request.body()
        asked = Columns(text=tuple(filter(str.strip, text or ())), id=id, sheet=sheet)
        kept = await kept_columns()
        try:
            return await run_in_threadpool(_read, raw, name, asked, kept)
        except MissingExtraError as error:
            raise HTTPException(501, f"{error} (where the service runs).") from None

    @made.post("/table/columns", openapi_extra=FILE_BODY)
    async def read_columns(
        request: Request, name: TableName = "table.csv", sheet: SheetName = None
    ) -> TableContents:
        """Give the sheets and columns of a table, to choose from."""
        raw = await request.body()
        kept = await kept_columns()
        try:
            return await run_in_threadpool(_look, raw, name, sheet, kept)
        except MissingExtraError as error:
            raise HTTPException(501, f"{error} (where the service runs).") from None

    return made


def _read(raw: bytes, name: str, asked: Columns, kept: Columns | None) -> TableResponse:
    """Read through a file, as the command line does: some formats are read from the end."""
    left_out: list[str] = []
    taken: list[tuple[str, Columns]] = []
    with _as_file(raw, name) as (path, said):
        documents = Documents(
            [str(path)],
            left_out=lambda place, why: left_out.append(said(f"{place}: {why}")),
            columns=asked,
            kept=kept,
            tell=lambda _, described, columns: taken.append((described, columns)),
        )
        found = list(islice(documents, MAX_ROWS + 1))
    described, columns = taken[0] if taken else ("", Columns())
    return TableResponse(
        documents=[
            TableRow(
                id=x.id.removeprefix(f"{path.parent}/"),
                text=x.text[:MAX_CHARACTERS],
                numbered=x.numbered,
            )
            for x in found[:MAX_ROWS]
        ],
        described=described,
        text=list(columns.text),
        id=columns.id,
        left_out=len(left_out),
        reasons=left_out[:_SAID],
        cut=len(found) > MAX_ROWS,
    )


def _look(raw: bytes, name: str, sheet: str | None, kept: Columns | None) -> TableContents:
    """What there is to choose from in a file."""
    with _as_file(raw, name) as (path, _):
        problems = Problems()
        found = preview(path, sheet=sheet, kept=kept, problems=problems)
        if problems.fatal:
            raise CorpusError(f"{path.name} cannot be read:\n{problems.listing(remedies=True)}")
    if found is None:
        return TableContents(described="", sheet="", sheets=[], columns=[], text=[], id=None)
    return TableContents(
        described=found.described,
        sheet=found.sheet,
        sheets=list(found.sheets),
        columns=[Column(name=column, example=example) for column, example in found.columns],
        text=list(found.text),
        id=found.id,
    )


@contextmanager
def _as_file(raw: bytes, name: str) -> Iterator[tuple[Path, Callable[[str], str]]]:
    """A file with these bytes while the block runs, and what messages about it are to say.

    An error about the file becomes an answer, without the service's folders.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, PurePath(name.replace("\\", "/")).name.lstrip(".") or "table.csv")

        def said(message: str) -> str:
            about_file, _, _ = message.partition(" What was written to --output")
            return about_file.replace(f"{folder}/", "").replace(_ON_THE_COMMAND_LINE, _HERE)

        try:
            path.write_bytes(raw)
            yield path, said
        except (OSError, ValueError) as error:  # a name that no file can have
            raise HTTPException(422, f"A file cannot be called {name!r:.100}.") from error
        except CorpusError as error:
            raise HTTPException(422, said(str(error))) from None
