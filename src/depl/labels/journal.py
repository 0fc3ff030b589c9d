"""The durable record of edits of a run's labels.

``RUN/labels/journal.jsonl`` has one line per edit and is append-only. A line is on disk before the
edit counts; a line left incomplete by a kill or a power cut is ignored, and removed by the next
write. Undoing is an edit, too: it cancels the last one that is still in force.

Writers hold a lock; readers never wait for it. Reading goes on where it ended, so that neither an
edit nor a look for those of other processes costs more when there are many.

The last field of a line, ``check``, is a hash of all before it, so that a letter that has changed
on the disk is noticed. Lines of earlier versions have none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from depl.core.corpus import Label
from depl.core.errors import RunError
from depl.core.lines import LineFile
from depl.core.locks import locked
from depl.labels.computed import ComputedLog

Edit = Literal["add", "describe", "rename", "remove", "undo"]
_EDITS = get_args(Edit)

_NAMED = 3  # labels that a summary names before it counts the rest
_WAIT = 5.0  # seconds for another process to finish its edit; most take milliseconds


class NothingToUndoError(RunError):
    """No edit is in force that could be undone."""


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
        Its data: ``labels`` of an add (each with ``id``, ``name``, ``alt_names``, ``description``,
        ``broader`` and ``examples``); ``id`` and ``text``, or ``name``, ``before`` and perhaps
        ``alt_names``, of the others; ``of``, the entry that is cancelled, of an undo.
    digest : str
        Hash of its line.
    """

    number: int
    time: str
    edit: Edit
    content: Mapping[str, Any]
    digest: str = ""

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
            return _renamed(c)
        if self.edit == "remove":
            return f"removed {c['before']!r} ({c['id']})"
        return f"undid entry {c['of']}"

    def labels(self) -> list[Label]:
        """The labels of an add."""
        return [
            Label(
                x["id"],
                x["name"],
                tuple(x["alt_names"]),
                x.get("description", ""),
                tuple(x.get("broader", ())),
            )
            for x in self.content["labels"]
        ]

    def renamed(self, label: Label) -> Label:
        """A label with the names of a rename."""
        names = self.content.get("alt_names", label.alt_names)
        return replace(label, name=self.content["name"], alt_names=tuple(names))


def _renamed(content: Mapping[str, Any]) -> str:
    before, now, others = content["before"], content["name"], content.get("alt_names")
    also = "" if others is None else f"gave {content['id']} the other names {', '.join(others)}"
    if others is not None and not others:
        also = f"took the other names of {content['id']} away"
    if also and before == now:
        return also
    return f"renamed {content['id']} from {before!r} to {now!r}" + (f" and {also}" if also else "")


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
        self.computed = ComputedLog(self.folder)
        self._file = LineFile(self.folder / "journal.jsonl")
        self._n = 0  # entries that were read

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def locked(self, wait: float = _WAIT) -> AbstractContextManager[None]:
        """Keep others from editing these labels; wait so many seconds if somebody does."""
        return locked(
            self.folder / ".lock",
            busy=f"Another process is editing the labels of {self.folder.parent}",
            remedy=f"Nothing was changed after {wait:g} s of waiting. Try again when it is done.",
            wait=wait,
        )

    def entries(self) -> list[Entry]:
        """All complete entries, including undone ones and undos."""
        self.rewind()
        return self.read_on()[1]

    def changed(self) -> bool:
        """Whether there may be something new to read; next to no work."""
        return self._file.changed()

    def rewind(self) -> None:
        """Let the next reading begin with the first entry."""
        self._file.rewind()

    def read_on(self) -> tuple[bool, list[Entry]]:
        """Entries that were not read before, and whether they start with the first one."""
        # Before the entries are read: others may be adding to both files meanwhile.
        made = self.computed.last_entry() if self._file.changed() else 0
        from_start, lines = self._file.read_on()
        first = 1 if from_start else self._n + 1
        try:
            entries = [self._parsed(line, number) for number, line in enumerate(lines, first)]
            self._n = first - 1 + len(entries)
            if from_start:
                self._check_complete(made)
        except RunError:
            self.rewind()
            raise
        return from_start, entries

    def draft(self, edit: Edit, content: Mapping[str, Any]) -> tuple[Entry, bytes]:
        """The entry that comes next, and its line. The lock must be held, and all be read."""
        number, now = self._n + 1, datetime.now(UTC).isoformat(timespec="seconds")
        line = {"entry": number, "time": now, "edit": edit, **content}
        raw = _with_check(json.dumps(line, ensure_ascii=False).encode("utf-8"))
        return Entry(number, now, edit, content, _digest(raw)), raw + b"\n"

    def append(self, entry: Entry, line: bytes) -> None:
        """Write what ``draft`` gave; when this returns, it is on disk."""
        self._file.append(line)
        self._n = entry.number

    def undo(self) -> Entry:
        """Cancel the last edit that is in force; returns that edit. The lock must be held."""
        standing = in_force(self.entries())
        if not standing:
            raise self.nothing_to_undo()
        entry, line = self.draft("undo", {"of": standing[-1].number})
        self.computed.append(entry.number, entry.digest, None)
        self.append(entry, line)
        return standing[-1]

    def nothing_to_undo(self) -> NothingToUndoError:
        """What to raise when no edit is in force."""
        return NothingToUndoError(
            f"There is nothing to undo: the labels of {self.folder.parent} are as they were "
            f"fitted. `depl labels {self.folder.parent} history` lists what was done."
        )

    def _check_complete(self, made: int) -> None:
        """Refuse a journal from which entries have vanished at the end, or all of them."""
        emptied = made and not self._n and self.path.exists() and not self.path.stat().st_size
        if emptied or made > self._n + 1:  # a kill may come between the two files
            least = max(1, made - 1)
            raise RunError(
                f"{self.path} has {self._n:,} entries, but at least {least:,} were made: the "
                f"others are lost. Put the file back from a copy or, to do without them, delete "
                f"{self.computed.path}."
            )

    def _parsed(self, line: bytes, number: int) -> Entry:
        try:
            value = json.loads(line)
            _compare_check(line, value)
            entry = Entry(
                value.pop("entry"), value.pop("time"), value.pop("edit"), value, _digest(line)
            )
            if entry.number != number or entry.edit not in _EDITS:
                raise ValueError(f"entry {entry.number} with the edit {entry.edit!r}")
            _check(entry)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RunError(
                f"{self.path}:{number} is damaged ({error!r:.300}). Put the file back from a copy, "
                f"or cut it before this line and delete {self.computed.path}: the edits above it "
                f"stay."
            ) from error
        return entry


def _check(entry: Entry) -> None:
    """Refuse an entry that lacks a field of its kind, or has another type there."""
    c = entry.content
    if entry.edit == "add":
        for label in c["labels"]:
            texts = [*label["alt_names"], *label.get("examples", ()), label.get("description", "")]
            texts += label.get("broader", ())
            _check_texts(label["id"], label["name"], *texts)
    elif entry.edit == "undo":
        if not isinstance(c["of"], int):
            raise TypeError(f"undo of {c['of']!r}")
    else:
        fields = {"describe": ["text"], "rename": ["name", "before"], "remove": ["before"]}
        others = c.get("alt_names", []) if entry.edit == "rename" else []
        _check_texts(c["id"], *(c[field] for field in fields[entry.edit]), *others)


def _check_texts(*values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} where a text should be")


_CHECK = b', "check": "%s"}'
_FIELDS = {"entry", "time", "edit", "labels", "id", "text", "name", "before", "of"}


def _with_check(raw: bytes) -> bytes:
    """A line with the hash of all before it as its last field."""
    return raw[:-1] + _CHECK % _digest(raw).encode()


def _compare_check(line: bytes, value: dict[str, Any]) -> None:
    """Refuse a line that is not what its last field says, and take that field out.

    A line without it is older, unless it has a field that no older one has: what has changed may
    be the name of the field.
    """
    check = value.pop("check", None)
    if check is None:
        strange = value.keys() - _FIELDS
        if strange:
            raise ValueError(f"a field {min(strange)!r} that no edit has")
        return
    ending = _CHECK % str(check).encode()
    if not line.endswith(ending) or _digest(line[: -len(ending)] + b"}") != check:
        raise ValueError("it is not what its check says: something in it has changed")


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:32]


def in_force(entries: Sequence[Entry]) -> list[Entry]:
    """The edits that no later entry has undone, in order."""
    undone = {entry.content["of"] for entry in entries if entry.edit == "undo"}
    return [x for x in entries if x.edit != "undo" and x.number not in undone]
