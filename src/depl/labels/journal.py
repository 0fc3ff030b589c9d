"""The durable record of edits of a run's labels.

``RUN/labels/journal.jsonl`` has one line per edit and is append-only. A line is on disk before the
edit counts; a line left incomplete by a kill or a power cut is ignored, and removed by the next
write. Undoing is an edit, too: it cancels the last one that is still in force.

What was computed for an edit is kept next to the journal, in a folder named by the entry's number.
It is written before the line, and can be computed again from the line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from depl.core.errors import RunError
from depl.core.storage import append, explain_os_errors, flush, locked

Edit = Literal["add", "describe", "rename", "remove", "undo"]

_NAMED = 3  # labels that a summary names before it counts the rest


@dataclass(frozen=True)
class Entry:
    """One edit.

    Parameters
    ----------
    number : int
        Its position in the journal, from 1.
    time : str
        When, in ISO 8601, UTC.
    edit : str
        What was done: add, describe, rename, remove or undo.
    content : mapping
        Its data: ``labels`` of an add (each with ``id``, ``name``, ``alt_names``, ``description``
        and ``examples``); ``id`` and ``text``, or ``name`` and ``before``, of the others; ``of``,
        the entry that is cancelled, of an undo.
    """

    number: int
    time: str
    edit: Edit
    content: Mapping[str, Any]

    def summary(self) -> str:
        """What was done, in words.

        Examples
        --------
        >>> labels = [{"id": "x-1", "name": "carbon border levy", "examples": ["Levy on ..."]}]
        >>> Entry(1, "2026-01-31T12:00:00+00:00", "add", {"labels": labels}).summary()
        "added 'carbon border levy' (x-1) with 1 example"
        """
        c = self.content
        if self.edit == "add":
            return _added(c["labels"])
        if self.edit == "describe":
            return f"described {c['id']} as {c['text']!r}"
        if self.edit == "rename":
            return f"renamed {c['id']} from {c['before']!r} to {c['name']!r}"
        if self.edit == "remove":
            return f"removed {c['before']!r} ({c['id']})"
        return f"undid entry {c['of']}"


def _added(labels: Sequence[Mapping[str, Any]]) -> str:
    some = ", ".join(f"{x['name']!r} ({x['id']})" for x in labels[:_NAMED])
    more = f" and {len(labels) - _NAMED:,} more" if len(labels) > _NAMED else ""
    examples = sum(len(x.get("examples", ())) for x in labels)
    with_them = f" with {examples:,} example{'s' * (examples > 1)}" if examples else ""
    return f"added {some}{more}{with_them}"


class Journal:
    """The journal of one run.

    Parameters
    ----------
    run : Path
        The run folder; the journal is in ``labels/``, from the first edit on.
    """

    def __init__(self, run: Path) -> None:
        self.folder = run / "labels"
        self.path = self.folder / "journal.jsonl"

    def exists(self) -> bool:
        """Whether there was any edit."""
        return self.path.exists()

    def locked(self) -> AbstractContextManager[None]:
        """Wait until no other process or thread edits these labels, and lock them out."""
        return locked(self.folder / ".lock")

    def entries(self) -> list[Entry]:
        """All complete entries, including undone ones and undos."""
        lines = self._whole().split(b"\n")[:-1]
        return [self._parsed(line, number) for number, line in enumerate(lines, start=1)]

    def append(self, edit: Edit, content: Mapping[str, Any]) -> Entry:
        """Write one entry; when this returns, it is on disk. The lock must be held."""
        whole = self._whole()
        number = whole.count(b"\n") + 1
        entry = Entry(number, datetime.now(UTC).isoformat(timespec="seconds"), edit, content)
        line = {"entry": number, "time": entry.time, "edit": edit, **content}
        raw = json.dumps(line, ensure_ascii=False).encode("utf-8") + b"\n"
        append(self.path, raw, after=len(whole))
        if number == 1:  # the file is new in its folder, and the folder may be
            with explain_os_errors(self.path):
                flush(self.folder)
                flush(self.folder.parent)
        return entry

    def undo(self) -> Entry:
        """Cancel the last edit that is in force; returns that edit. The lock must be held."""
        standing = in_force(self.entries())
        if not standing:
            raise RunError(
                f"There is nothing to undo: no edit of the labels of {self.folder.parent} is in "
                f"force. `depl labels {self.folder.parent} history` lists what was done."
            )
        self.append("undo", {"of": standing[-1].number})
        return standing[-1]

    def computed(self, number: int) -> Path:
        """Where what was computed for an entry is kept."""
        return self.folder / f"{number:06d}"

    def _whole(self) -> bytes:
        """The journal without an incomplete last line."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be read ({error.strerror}). Check permissions and the disk."
            ) from error
        return raw[: raw.rfind(b"\n") + 1]

    def _parsed(self, line: bytes, number: int) -> Entry:
        try:
            value = json.loads(line)
            entry = Entry(value.pop("entry"), value.pop("time"), value.pop("edit"), value)
            if entry.number != number or entry.edit not in get_args(Edit):
                raise ValueError(f"entry {entry.number} with the edit {entry.edit!r}")
            entry.summary()  # reads every field that an edit of this kind must have
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{self.path}:{number} is damaged ({error!r}). Put the file back from a copy, or "
                f"cut it before this line: the edits above it stay."
            ) from error
        return entry


def in_force(entries: Sequence[Entry]) -> list[Entry]:
    """The edits that no later entry has undone, in order."""
    undone = {entry.content["of"] for entry in entries if entry.edit == "undo"}
    return [x for x in entries if x.edit != "undo" and x.number not in undone]
