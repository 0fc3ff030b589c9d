"""The documents of a run that people are to look at, and how far they have come.

``RUN/review/queue.sqlite`` has a row per document with its suggestions, per mark (done, skipped, or
open again) and per document that somebody is looking at just now. What people decide about labels
is feedback and kept there; a mark says only that a document needs no further look.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from depl.core.database import Database, require_texts
from depl.core.errors import CorpusError, DeplError
from depl.core.hashes import FROM_TEXT, id_from_digest, text_digest

State = Literal["open", "done", "skipped"]
STATES: tuple[State, ...] = get_args(State)

Suggested = Sequence[tuple[str, float]]
"""Ids of labels, and the probabilities that they are suggested with."""

Terms = Sequence[tuple[str, float]]
"""Terms of a text, and their weights."""

LOOKING = 15 * 60.0  # seconds for which a document is kept for whoever looks at it

_TABLES = (
    """CREATE TABLE documents (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        digest TEXT NOT NULL,
        text TEXT NOT NULL,
        source TEXT NOT NULL,
        suggested TEXT NOT NULL,
        terms TEXT NOT NULL,
        UNIQUE (id, digest))""",
    """CREATE TABLE marks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        state TEXT NOT NULL CHECK (state IN ('open', 'done', 'skipped')),
        person TEXT NOT NULL,
        time TEXT NOT NULL)""",
    """CREATE TABLE looks (
        document INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
        person TEXT NOT NULL,
        until REAL NOT NULL)""",
    "CREATE INDEX marks_by_document ON marks (document)",
)

# The last mark of each document is in force.
_STATES = """
    LEFT JOIN (SELECT document, state, person, max(number) FROM marks GROUP BY document) AS last
        ON last.document = documents.number
    LEFT JOIN looks ON looks.document = documents.number AND looks.until > ?"""


class NotInQueueError(DeplError):
    """There is no document with a number."""


@dataclass(frozen=True)
class NewDocument:
    """A document for the queue; without an id it gets one that is made from its text."""

    text: str
    id: str = ""
    source: str = ""
    suggested: Suggested = ()
    terms: Terms = ()


class _Called:
    id: str
    source: str

    @property
    def called(self) -> str:
        """What people call it: its id or, where that is made from the text, where it is from."""
        return self.source if self.source and self.id.startswith(FROM_TEXT) else self.id


@dataclass(frozen=True)
class Waiting(_Called):
    """A document of the queue, without its text; ``free`` if it waits for somebody."""

    number: int
    id: str
    source: str
    suggested: Suggested
    terms: Terms
    state: State
    free: bool


@dataclass(frozen=True)
class Queued(_Called):
    """A document of the queue, who dealt with it, and who is looking at it."""

    number: int
    id: str
    text: str
    source: str
    suggested: Suggested
    state: State
    by: str
    looking: str


@dataclass(frozen=True)
class Progress:
    """How many documents there are, are done and skipped; and how many are done by whom."""

    total: int = 0
    done: int = 0
    skipped: int = 0
    by: Mapping[str, int] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """How many wait for somebody to look at them."""
        return self.total - self.done - self.skipped


class ReviewQueue:
    """The queue of one run.

    Parameters
    ----------
    run : Path
        The run folder; the queue is in ``review/``, from the first document on.
    """

    def __init__(self, run: Path) -> None:
        self._database = Database(run / "review" / "queue.sqlite", _TABLES, version=1)

    def share(self) -> None:
        """Let processes of several machines use it; see ``Database.share``."""
        self._database.share()

    def add(self, documents: Iterable[NewDocument]) -> int:
        """Put documents into the queue; returns how many of them were not in it before."""
        with self._database.writing() as connection:
            before = connection.total_changes
            for document in documents:
                if not document.text.strip():
                    raise CorpusError("A document is empty. Nothing was put into the queue.")
                digest = text_digest(document.text)
                connection.execute(
                    "INSERT OR IGNORE INTO documents (id, digest, text, source, suggested, terms)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        document.id or id_from_digest(digest),
                        digest,
                        document.text,
                        document.source,
                        json.dumps(document.suggested),
                        json.dumps(document.terms, ensure_ascii=False),
                    ),
                )
            return connection.total_changes - before

    def renew(self, found: Mapping[int, tuple[Suggested, Terms]]) -> None:
        """Replace what there is to learn from documents, by their numbers: the run has changed."""
        with self._database.writing() as connection:
            connection.executemany(
                "UPDATE documents SET suggested = ?, terms = ? WHERE number = ?",
                [
                    (json.dumps(suggested), json.dumps(terms, ensure_ascii=False), number)
                    for number, (suggested, terms) in found.items()
                ],
            )

    def texts(self) -> dict[int, str]:
        """The texts of the documents that are open, by their numbers."""
        with self._database.reading() as connection:
            if connection is None:
                return {}
            query = f"SELECT documents.number, text FROM documents {_STATES}"
            open_ = f"{query} WHERE coalesce(state, 'open') = 'open'"
            found: dict[int, str] = dict(connection.execute(open_, (time.time(),)))
            require_texts(*found.values())
            return found

    def waiting(self, *, by: str | None = None) -> list[Waiting]:
        """All documents in the order in which they came.

        Parameters
        ----------
        by : str, optional
            Who asks: what this person is looking at is free for them. By default it is for all.
        """
        with self._database.reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT documents.number, id, source, suggested, terms, coalesce(state, 'open'),"
                f" looks.person FROM documents {_STATES} ORDER BY documents.number",
                (time.time(),),
            )
            return [
                Waiting(
                    number,
                    id,
                    source,
                    _pairs(suggested),
                    # In earlier versions they had the number of documents as well.
                    [(term, float(weight)) for term, weight, *_ in json.loads(terms)],
                    state,
                    state == "open" and (by is None or looking in (None, by)),
                )
                for number, id, source, suggested, terms, state, looking in rows
            ]

    def document(self, number: int) -> Queued:
        """One document; an error if there is none with this number."""
        with self._database.reading() as connection:
            row = None if connection is None else _row(connection, number)
            if row is None:
                raise _missing(number)
            number, id, text, source, suggested, state, by, looking = row
            require_texts(id, text, source, by, looking)
            return Queued(number, id, text, source, _pairs(suggested), state, by, looking)

    def look(self, number: int, *, by: str, seconds: float = LOOKING) -> bool:
        """Keep a document for whoever looks at it; whether nobody else was looking already."""
        now = time.time()
        with self._database.writing() as connection:
            if _row(connection, number) is None:
                raise _missing(number)
            other = "SELECT 1 FROM looks WHERE document = ? AND person != ? AND until > ?"
            if connection.execute(other, (number, by, now)).fetchone():
                return False
            # Whoever looks at one document looks at no other.
            connection.execute("DELETE FROM looks WHERE person = ?", (by,))
            connection.execute(
                "INSERT OR REPLACE INTO looks (document, person, until) VALUES (?, ?, ?)",
                (number, by, now + seconds),
            )
        return True

    def mark(self, number: int, state: State, *, by: str = "") -> None:
        """Say that a document is done, skipped or open again."""
        if state not in STATES:
            raise CorpusError(f"A document is {', '.join(STATES)}; got {state!r}.")
        with self._database.writing() as connection:
            if _row(connection, number) is None:
                raise _missing(number)
            connection.execute(
                "INSERT INTO marks (document, state, person, time) VALUES (?, ?, ?, ?)",
                (number, state, by, datetime.now(UTC).isoformat(timespec="milliseconds")),
            )
            connection.execute("DELETE FROM looks WHERE document = ?", (number,))

    def progress(self) -> Progress:
        """How far people have come."""
        with self._database.reading() as connection:
            if connection is None:
                return Progress()
            rows = connection.execute(
                "SELECT coalesce(state, 'open'), coalesce(last.person, ''), count(*)"
                f" FROM documents {_STATES} GROUP BY 1, 2",
                (time.time(),),
            ).fetchall()
        sizes = {state: sum(n for x, _, n in rows if x == state) for state in STATES}
        by = {person: n for state, person, n in rows if state == "done"}
        return Progress(sum(sizes.values()), sizes["done"], sizes["skipped"], by)

    def clear(self) -> int:
        """Empty the queue; returns how many documents were in it. Feedback stays as it is."""
        with self._database.writing() as connection:
            return connection.execute("DELETE FROM documents").rowcount

    def check(self) -> None:
        """Refuse a damaged file."""
        self._database.check()


def _row(connection: sqlite3.Connection, number: int) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = connection.execute(
        "SELECT documents.number, id, text, source, suggested, coalesce(state, 'open'),"
        f" coalesce(last.person, ''), coalesce(looks.person, '') FROM documents {_STATES}"
        " WHERE documents.number = ?",
        (time.time(), number),
    ).fetchone()
    return found


def _pairs(suggested: str) -> list[tuple[str, float]]:
    return [(label, float(p)) for label, p in json.loads(suggested)]


def _missing(number: int) -> NotInQueueError:
    return NotInQueueError(
        f"There is no document {number} in the queue. `depl review RUN` lists what is in it."
    )
