"""SQLite databases in a run folder: what was committed survives a kill and a power cut.

Each use opens the file and closes it again, so any number of threads and processes may share it.
Between uses a database is one file; while it is used, SQLite keeps ``-wal`` and ``-shm`` beside it,
or ``-journal`` where it is shared by several machines.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from depl.core.errors import BusyError, RunError, explain_os_errors
from depl.core.locks import locked
from depl.core.storage import flush

_WAIT = 5.0  # seconds for another process to finish its transaction; most take milliseconds


class Database:
    """One database.

    Parameters
    ----------
    path : Path
        The file, in a folder of its own; both are made by the first transaction.
    schema : sequence of str
        The statements that make the tables.
    version : int
        Of the schema, from 1.
    """

    def __init__(self, path: Path, schema: Sequence[str], *, version: int) -> None:
        self.path = path
        self._schema = schema
        self._version = version

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection that sees one state of the database; None while there is nothing in it.

        Rows that the block cannot make sense of are damage.
        """
        with self._explained():
            if not self.path.exists():
                yield None
                return
            with closing(self._connect()) as connection:
                if self._found_version(connection) == 0:  # a kill came while it was made
                    yield None
                    return
                connection.execute("BEGIN")
                try:
                    yield connection
                except (TypeError, ValueError, LookupError) as error:
                    # SQLite has no checksums; most of what is not as it was written ends here.
                    raise self._damaged(f"{error!s:.200}") from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when the block ends, or undone if the block fails."""
        with self._explained(), self._made() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except TypeError as error:
                connection.execute("ROLLBACK")
                raise self._damaged(error) from error
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def check(self) -> None:
        """Refuse a damaged database."""
        with self.reading() as connection:
            if connection is None:
                return
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise self._damaged(found)

    def share(self) -> None:
        """Let processes of several machines use the file, from now on; it is made if need be.

        What SQLite keeps in ``-shm`` is memory that the processes of one machine share. Without it
        writers keep readers waiting, for the milliseconds of a transaction.
        """
        with self._explained(), self._made() as connection:
            (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        if mode != "delete":
            raise BusyError(
                f"Another process uses {self.path}, so it cannot be prepared for several machines. "
                f"Try again when that is done."
            )

    @contextmanager
    def _made(self) -> Iterator[sqlite3.Connection]:
        """A connection to the database, which is made if it is missing or was left half made."""
        if not self.path.exists():
            self._make()
        with closing(self._connect()) as connection:
            if self._found_version(connection) == 0:
                self._make()
            yield connection

    def _connect(self) -> sqlite3.Connection:
        for path in (self.path.parent, self.path):
            if path.is_symlink():  # a run from elsewhere must not have another file changed
                raise RunError(f"{path} is a link. Put the file itself there.")
        uri = f"{self.path.absolute().as_uri()}?mode=rwc"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
        connection.execute("PRAGMA trusted_schema = OFF")  # what others wrote runs no functions
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a commit waits for the disk
        return connection

    def _make(self) -> None:
        """Make file and tables, once however many processes try at the same time."""
        lock = locked(
            self.path.parent / ".lock",
            busy=f"Another process is making {self.path}",
            remedy="Nothing was changed. Try again when it is done.",
            wait=_WAIT,
        )
        with lock, closing(self._connect()) as connection:
            if self._found_version(connection) > 0:
                return
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in self._schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {self._version:d}")
            connection.execute("COMMIT")
            with explain_os_errors(self.path):  # the file is new in its folder, and that may be
                flush(self.path.parent)
                flush(self.path.parent.parent)

    def _found_version(self, connection: sqlite3.Connection) -> int:
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if found > self._version:
            raise RunError(
                f"{self.path} was written by a later version of depl. Install it: "
                f"pip install --upgrade depl"
            )
        return found

    def _damaged(self, what: object) -> RunError:
        return RunError(f"{self.path} is damaged ({what}). Put the file back from a copy.")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into those that say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:  # Python's own: a text is no UTF-8
                raise self._damaged(f"{error!s:.200}") from error
            if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(
                    f"Another process is writing to {self.path}. Nothing was changed after "
                    f"{_WAIT:g} s of waiting. Try again when it is done."
                ) from error
            raise RunError(
                f"{self.path} cannot be read or written ({error}). Nothing was changed: free some "
                f"space or fix the permissions, and try again."
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # of SQLite's own message
            raise self._damaged(error) from error


def require_texts(*values: object) -> None:
    """Raise if one is no text: SQLite does not enforce the types of columns."""
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a text is missing")
