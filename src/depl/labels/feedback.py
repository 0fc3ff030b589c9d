"""The feedback on a run: an append-only database of what people decided about labels of documents.

``RUN/feedback/feedback.sqlite`` has a row per document as it was seen, per decision and per undo;
no row is ever changed or deleted. A decision is on disk before ``add`` returns. Its key, which the
client chooses, makes ``add`` idempotent: the second time nothing is written.

For one document and label the latest decision that nobody has undone is in force.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from depl.core.database import Database, require_texts
from depl.core.errors import DeplError
from depl.core.hashes import id_from_digest, text_digest
from depl.labels.decisions import (
    DecidedDocument,
    Decision,
    Entry,
    Judged,
    check_decisions,
    check_encodable,
)

OPENING = 200  # characters of a text that an entry shows

_TABLES = (
    """CREATE TABLE documents (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        digest TEXT NOT NULL,
        text TEXT NOT NULL,
        source TEXT NOT NULL,
        UNIQUE (id, digest, source))""",
    """CREATE TABLE decisions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        time TEXT NOT NULL,
        document INTEGER NOT NULL REFERENCES documents,
        label TEXT NOT NULL,
        verdict TEXT NOT NULL CHECK (verdict IN ('accepted', 'rejected', 'added')),
        probability REAL,
        person TEXT NOT NULL,
        run TEXT NOT NULL)""",
    """CREATE TABLE undos (
        decision INTEGER PRIMARY KEY REFERENCES decisions,
        time TEXT NOT NULL,
        person TEXT NOT NULL)""",
    "CREATE INDEX decisions_by_document ON decisions (document)",
    "CREATE INDEX decisions_by_label ON decisions (label)",
)

_ENTRIES = f"""
    SELECT decisions.number, decisions.key, decisions.time, documents.id AS document,
        substr(documents.text, 1, {OPENING}) AS opening, documents.source, label, verdict,
        probability, decisions.person AS "by", run, undos.time AS undone,
        undos.person AS undone_by
    FROM decisions JOIN documents ON documents.number = decisions.document
    LEFT JOIN undos ON undos.decision = decisions.number"""


class KeyTakenError(DeplError):
    """A key was used again, for another decision."""


class NoSuchDecisionError(DeplError):
    """There is no decision with a number."""


class FeedbackStore:
    """The feedback on one run.

    Parameters
    ----------
    run : Path
        The run folder; the feedback is in ``feedback/``, from the first decision on.
    version : str
        The version of the run that decisions are made with; see ``Run.version``.
    """

    def __init__(self, run: Path, version: str = "") -> None:
        self._database = Database(run / "feedback" / "feedback.sqlite", _TABLES, version=1)
        self._version = version

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def share(self) -> None:
        """Let processes of several machines use it; see ``Database.share``."""
        self._database.share()

    def add(
        self,
        text: str,
        decisions: Sequence[Decision],
        *,
        id: str | None = None,
        source: str = "",
        by: str = "",
    ) -> list[Entry]:
        """Store decisions about one document, all or none; they are on disk when this returns.

        Parameters
        ----------
        text : str
            The document.
        decisions : sequence of Decision
            A decision whose key is known is not stored again.
        id : str, optional
            The document's id; by default one that is made from its text.
        source : str
            Where the document comes from.
        by : str
            Who decided.

        Returns
        -------
        list of Entry
            One per decision, in their order.
        """
        check_decisions(text, decisions)
        check_encodable(text, id or "", source, by)
        digest = text_digest(text)
        id = id or id_from_digest(digest)
        with self._database.writing() as connection:
            document = _document(connection, id, digest, text, source)
            return [self._stored(connection, document, id, x, by) for x in decisions]

    def _stored(
        self, connection: sqlite3.Connection, document: int, id: str, decision: Decision, by: str
    ) -> Entry:
        """The entry of a decision, which is inserted unless its key is known."""
        known = next(_entries(connection, "WHERE decisions.key = ?", decision.key), None)
        if known is not None:
            if (known.document, known.label, known.verdict) != (
                id,
                decision.label,
                decision.verdict,
            ):
                raise KeyTakenError(
                    f"The key {decision.key!r} belongs to another decision, entry {known.number} "
                    f"({known.label} {known.verdict} for {known.document}). Nothing was kept; "
                    f"give every decision a key of its own."
                )
            return known
        cursor = connection.execute(
            "INSERT INTO decisions (key, time, document, label, verdict, probability, person, run)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                decision.key,
                _now(),
                document,
                decision.label,
                decision.verdict,
                decision.probability,
                by,
                self._version,
            ),
        )
        return next(_entries(connection, "WHERE decisions.number = ?", cursor.lastrowid))

    def undo(self, number: int, *, by: str = "") -> Entry:
        """Revoke a decision; undoing it again changes nothing."""
        with self._database.writing() as connection:
            if not connection.execute(
                "SELECT 1 FROM decisions WHERE number = ?", (number,)
            ).fetchone():
                raise NoSuchDecisionError(
                    f"There is no decision {number}. `depl feedback RUN list` lists all."
                )
            connection.execute(
                "INSERT OR IGNORE INTO undos (decision, time, person) VALUES (?, ?, ?)",
                (number, _now(), by),
            )
            return next(_entries(connection, "WHERE decisions.number = ?", number))

    def last(self) -> Entry | None:
        """The latest decision that nobody has undone."""
        with self._database.reading() as connection:
            if connection is None:
                return None
            latest = "WHERE undos.decision IS NULL ORDER BY decisions.number DESC LIMIT 1"
            return next(_entries(connection, latest), None)

    def history(
        self,
        *,
        document: str | None = None,
        label: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """Decisions, undone ones included, the latest first.

        Parameters
        ----------
        document, label : str, optional
            Only those about the document, or the label, with this id.
        before : int, optional
            Only those with a lower number: the next page.
        limit : int, optional
            At most so many.
        """
        where, values = _conditions(document, label)
        if before is not None:
            where, values = [*where, "decisions.number < ?"], [*values, before]
        with self._database.reading() as connection:
            if connection is None:
                return []
            clause = f"{_where(where)} ORDER BY decisions.number DESC LIMIT ?"
            return list(_entries(connection, clause, *values, -1 if limit is None else limit))

    def count(self, *, document: str | None = None, label: str | None = None) -> int:
        """How many decisions there are, undone ones included."""
        where, values = _conditions(document, label)
        with self._database.reading() as connection:
            if connection is None:
                return 0
            found: int = connection.execute(
                "SELECT count(*) FROM decisions JOIN documents ON documents.number = document "
                + _where(where),
                values,
            ).fetchone()[0]
            return found

    def changes(self) -> int:
        """How many decisions and undos there are: the number grows with every change."""
        with self._database.reading() as connection:
            if connection is None:
                return 0
            query = "SELECT (SELECT count(*) FROM decisions) + (SELECT count(*) FROM undos)"
            found: int = connection.execute(query).fetchone()[0]
            return found

    def judged(self) -> dict[str, Judged]:
        """By document, the labels whose suggestion was accepted or rejected.

        Only people who have done both count: those who only ever accept may have ignored wrong
        suggestions. A label that was added was no suggestion.
        """
        in_force = "number NOT IN (SELECT decision FROM undos)"
        with self._database.reading() as connection:
            if connection is None:
                return {}
            rows = connection.execute(
                "WITH shown AS (SELECT document, label, verdict, person FROM decisions"
                f" WHERE probability IS NOT NULL AND verdict != 'added' AND {in_force})"
                " SELECT id, label, person IN (SELECT person FROM decisions"
                f" WHERE verdict = 'added' AND {in_force})"
                " FROM shown JOIN documents ON documents.number = document"
                " WHERE person IN (SELECT person FROM shown GROUP BY person"
                " HAVING count(DISTINCT verdict) = 2)"
            ).fetchall()
        labels: dict[str, set[str]] = {}
        for id, label, _ in rows:
            labels.setdefault(id, set()).add(label)
        completed = {id for id, _, adds in rows if adds}
        return {id: Judged(said, id in completed) for id, said in labels.items()}

    def documents(self) -> list[DecidedDocument]:
        """Every document with a decision in force, as it was last seen, in order of appearance."""
        with self._database.reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT id, document, label, verdict FROM decisions"
                " JOIN documents ON documents.number = document"
                " WHERE decisions.number NOT IN (SELECT decision FROM undos)"
                " ORDER BY decisions.number"
            ).fetchall()
            seen = {id: number for id, number, _, _ in rows}  # the last of each
            found = {}
            for id, number in seen.items():
                query = "SELECT text, digest FROM documents WHERE number = ?"
                text, digest = connection.execute(query, (number,)).fetchone()
                if text_digest(text) != digest:
                    raise ValueError(f"the text of the document {id!r:.60} is not what it was")
                found[id] = DecidedDocument(id, text)
        for id, _, label, verdict in rows:
            wins, loses = found[id].carried, found[id].rejected
            if verdict == "rejected":
                wins, loses = loses, wins
            wins.add(label)
            loses.discard(label)
        return list(found.values())

    def check(self) -> None:
        """Refuse a damaged file."""
        self._database.check()


def _document(connection: sqlite3.Connection, id: str, digest: str, text: str, source: str) -> int:
    """The number of a document, which is inserted if it is new."""
    connection.execute(
        "INSERT OR IGNORE INTO documents (id, digest, text, source) VALUES (?, ?, ?, ?)",
        (id, digest, text, source),
    )
    query = "SELECT number FROM documents WHERE id = ? AND digest = ? AND source = ?"
    found: int = connection.execute(query, (id, digest, source)).fetchone()[0]
    return found


def _entries(connection: sqlite3.Connection, clause: str, *values: object) -> Iterator[Entry]:
    cursor = connection.execute(f"{_ENTRIES} {clause}", values)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        entry = Entry(**dict(zip(names, row, strict=True)))
        require_texts(entry.key, entry.time, entry.document, entry.opening, entry.source)
        require_texts(entry.label, entry.verdict, entry.by, entry.run)
        yield entry


def _conditions(document: str | None, label: str | None) -> tuple[list[str], list[object]]:
    wanted = {"documents.id = ?": document, "label = ?": label}
    chosen = {test: value for test, value in wanted.items() if value is not None}
    return list(chosen), list(chosen.values())


def _where(tests: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(tests)}" if tests else ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
