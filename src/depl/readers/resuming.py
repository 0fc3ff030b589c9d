"""An output file that survives an interruption.

While an output is being made, there is a log beside it: ``OUT.resume.jsonl``. Its first line says
what the output is made from. After every chunk of documents comes a line with how many are done, a
hash of them, and how much of the output was written. To resume is to cut the output back to the
last such point that it still holds, to skip the documents that are done, and to continue. Chunks
begin where they would have begun anyway, so the result has the same bytes. At the end the log is
deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from depl.core.errors import ConfigError, RunError, explain_os_errors
from depl.core.locks import locked
from depl.core.storage import flush
from depl.readers.document import Document
from depl.readers.stores import open_store
from depl.readers.suggestions import PLAIN, Form, Suggested


class _Point(NamedTuple):
    """A line of the log: how many documents are done, their hash, how much was written."""

    documents: int
    digest: str
    reach: int


_START = _Point(0, "", 0)


class SuggestionFile:
    """Suggested labels in a file that can be continued after an interruption.

    Parameters
    ----------
    path : Path
        ``.jsonl``, ``.csv``, ``.tsv`` (compressed or not), ``.parquet``, ``.xlsx`` or MARC.
    resume : bool
        Continue what is there; where there is nothing, begin.
    overwrite : bool
        Replace what is there, as soon as there is something to replace it with.
    form : Form
        How the suggestions are written.

    Attributes
    ----------
    complete : bool
        Whether there is nothing to resume: the output is there, and finished.
    done : int
        How many documents are finished.
    passing_over : bool
        Whether ``rest_of`` is still skipping the documents that were finished before.
    """

    def __init__(self, path: Path, *, resume: bool, overwrite: bool, form: Form = PLAIN) -> None:
        if resume and path.suffix.lower() == ".xlsx":
            raise ConfigError(
                f"{path} cannot be resumed: an Excel file is written in one go. Begin again with "
                f"--overwrite, or write a .csv file."
            )
        self.path = path
        self.complete = False
        self.passing_over = False
        self._store = open_store(path, form)
        self._log_path = path.with_name(f"{path.name}.resume.jsonl")
        self._lock_path = path.with_name(f".{path.name}.lock")
        self._held = ExitStack()
        self._log: BinaryIO | None = None
        self._log_size = 0
        self._hash = hashlib.sha256()
        self._begun: dict[str, Any] | None = None
        self._last = _START
        if resume and self._log_path.exists():
            self._read_log()
        elif not overwrite:
            self._refuse_existing(resume)
            self.complete = self._store.exists()
        self.done = self._last.documents

    def __enter__(self) -> SuggestionFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._log is not None:
            self._log.close()
            self._held.close()
            self._lock_path.unlink(missing_ok=True)

    def begin(self, made_from: Mapping[str, object]) -> None:
        """Say what the suggestions come from; a file begun with something else is refused."""
        begun = made_from if self._begun is None else self._begun
        differing = [
            f"{key} {begun.get(key)}, now {made_from.get(key)}"
            for key in sorted({*begun, *made_from})
            if begun.get(key) != made_from.get(key)
        ]
        if differing:
            raise RunError(
                f"{self.path} cannot be resumed: it was begun with {'; '.join(differing)}. Give "
                f"the command that began it, or begin again with --overwrite."
            )
        self._begun = dict(made_from)

    def rest_of(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Skip the documents that are done, after a check that they are the same."""
        self.passing_over = True
        seen = 0
        while seen < self.done and (document := next(documents, None)) is not None:
            self._add(document)
            seen += 1
        self.passing_over = False
        if seen < self.done or (seen and self._hash.hexdigest() != self._last.digest):
            raise RunError(
                f"{self.path} cannot be resumed: the first {self.done:,} documents of this input "
                f"are not those that were finished. Give the input that it was begun with, or "
                f"begin again with --overwrite."
            )
        yield from documents

    def append(self, documents: Sequence[Document], rows: Sequence[Suggested]) -> None:
        """Write the suggestions of a chunk; when this returns, they are safe."""
        with explain_os_errors(self.path):
            log = self._log or self._start()
            for document in documents:
                self._add(document)
            reach = self._store.append(documents, rows)
            self.done += len(documents)
            self._write(log, _Point(self.done, self._hash.hexdigest(), reach))

    def finish(self) -> None:
        """Complete the output and delete what only a resumption needs."""
        if not self.done:
            return
        with explain_os_errors(self.path):
            if self._log is None:
                self._start()
            self._store.finish()
            self._log_path.unlink()
            self._store.clear()

    def _refuse_existing(self, resume: bool) -> None:
        if self._log_path.exists():
            raise RunError(
                f"{self.path} is the unfinished output of an earlier command. Continue with "
                f"--resume, or begin again with --overwrite."
            )
        if self._store.exists() and not resume:
            raise RunError(
                f"{self.path} exists. Replace it with --overwrite, or name another file."
            )

    def _read_log(self) -> None:
        """Find what the output was begun with, and the last point that it still holds."""
        # The last piece has no line feed: it is empty, or torn.
        first, *lines = self._log_path.read_bytes().split(b"\n")[:-1] or [b""]
        if not first:
            return
        try:
            self._begun = json.loads(first)
            if not isinstance(self._begun, dict):
                raise ValueError("its first line is no object")
            points = [_Point(*json.loads(line)) for line in lines]
            if any(list(map(type, point)) != [int, str, int] for point in points):
                raise ValueError("a line is no point")
        except (ValueError, TypeError, RecursionError) as error:
            raise RunError(
                f"{self._log_path} is damaged ({error}): it does not say what is done. Begin "
                f"again with --overwrite."
            ) from error
        held = [i for i, point in enumerate(points) if self._store.holds(point.reach)]
        if held:
            self._last = points[held[-1]]
            self._log_size = sum(len(line) + 1 for line in [first, *lines[: held[-1] + 1]])

    def _start(self) -> BinaryIO:
        """Cut off what came after the last point, or start over."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._log = self._log_path.open("ab")
        busy = f"Another process is writing {self.path} right now"
        self._held.enter_context(
            locked(self._lock_path, busy=busy, remedy="Wait for it, or name another file.")
        )
        self._log.truncate(self._log_size)
        if not self._log_size:
            self._write(self._log, self._begun)
        self._store.cut(self._last.reach)
        return self._log

    @staticmethod
    def _write(log: BinaryIO, value: object) -> None:
        log.write(json.dumps(value).encode() + b"\n")
        flush(log)

    def _add(self, document: Document) -> None:
        for part in (document.id, document.text):
            raw = part.encode("utf-8", "surrogatepass")
            self._hash.update(len(raw).to_bytes(8, "little") + raw)
