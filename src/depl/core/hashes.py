"""Hashes: whether a file still is what was written, and ids that are made from texts.

SHA-256 where the processor has instructions for it reads about 1 GB/s on one core, more than twice
as much as BLAKE2b, and comes with Python. It is meant for accidents and for files that were mixed
up; whoever may write to a folder can change the hashes in it, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

FROM_TEXT = "text-"  # the prefix of ids that are made from a text


class FileRecord(NamedTuple):
    """What is remembered of a file."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileRecord:
        """Read a file."""
        with path.open("rb") as file:
            return cls(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())

    @classmethod
    def from_json(cls, value: Any) -> FileRecord:  # noqa: ANN401 - JSON is what it is
        """What ``_asdict`` and JSON made of a record."""
        return cls(int(value["bytes"]), str(value["sha256"]))


def records(folder: Path) -> dict[str, FileRecord]:
    """Every file below a folder, by its path relative to the folder; sorted."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): FileRecord.of(path) for path in files}


def difference(path: Path, record: FileRecord, within: Path) -> str | None:
    """What is wrong with a file, in words; None where it is what was written.

    Parameters
    ----------
    path : Path
        The file.
    record : FileRecord
        As it was written.
    within : Path
        The folder that it must not lead out of, through a link or otherwise.
    """
    try:
        if not path.resolve(strict=True).is_relative_to(within.resolve()):
            return "is a link that leads out of the run folder"
        size = path.stat().st_size
        if size != record.bytes:
            return f"is damaged (it has {size:,} bytes instead of {record.bytes:,})"
        if FileRecord.of(path) != record:
            return "is damaged (its contents are not what was written)"
    except FileNotFoundError:
        return "is missing"
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return None


def first_difference(
    folder: Path, files: Mapping[str, FileRecord], within: Path
) -> tuple[str, str] | None:
    """The first file below a folder that is not what was written, and what is wrong with it."""
    for name, record in files.items():
        wrong = difference(folder / name, record, within)
        if wrong is not None:
            return name, wrong
    return None


def text_digest(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal."""
    # Anything but a str, as from a damaged database, is a TypeError.
    return hashlib.sha256(str.encode(text, "utf-8", "replace")).hexdigest()


def id_from_digest(digest: str) -> str:
    """The id of a document that was given without one.

    Examples
    --------
    >>> id_from_digest(text_digest("wine"))
    'text-32c4feed996880bc'
    """
    return f"{FROM_TEXT}{digest[:16]}"
