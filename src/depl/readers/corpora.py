"""Reading a corpus folder: which format it has, which splits are wanted, what is wrong with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from depl.core.corpus import Dataset
from depl.core.errors import CorpusError
from depl.readers import annif, attentionxml, bag_of_words, jsonl, lf_json, pecos, table
from depl.readers.checks import Format, Layout, assemble
from depl.readers.files import SPLIT_NAMES
from depl.readers.problems import Problems

_logger = logging.getLogger("depl.readers")

_FORMATS: dict[str, Format] = {
    "jsonl": jsonl,
    "table": table,
    "pecos": pecos,
    "attentionxml": attentionxml,
    "lf-json": lf_json,
    "annif": annif,
}

FORMATS = {name: reader.DESCRIPTION for name, reader in _FORMATS.items()}
"""Every format's name, as ``read`` takes it, with a line that describes it."""


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    splits: Collection[str] | None = None,
) -> Dataset:
    """Read a corpus folder.

    Parameters
    ----------
    path : path
        A folder in one of the ``FORMATS``.
    format : str, optional
        The name of the format; recognised from the files when not given.
    on_error : {"stop", "skip"}
        What to do about bad rows. "stop" reads everything and raises one error that lists what
        is wrong; "skip" leaves bad rows out and logs a warning with the same list. Missing or
        damaged files, files that differ in length and splits with no document raise either way.
    splits : collection of str, optional
        The splits to read, such as ``["train"]``; all that are there when not given.

    Returns
    -------
    Dataset
        The label set, in the order of the labels file, and the splits.

    Raises
    ------
    CorpusError
        The folder cannot be read, or holds what it should not.
    """
    if on_error not in ("stop", "skip"):
        raise CorpusError(f"on_error is either 'stop' or 'skip'; got {on_error!r}.")
    folder = Path(path)
    _check_folder(folder)
    name, layout = _recognise(folder) if format is None else _forced(folder, format)
    wanted = _wanted(layout, splits)
    problems = Problems()
    dataset = assemble(layout, _FORMATS[name].load(layout, wanted, problems), problems)
    if problems.fatal or (problems and on_error == "stop"):
        raise CorpusError(_refusal(folder, problems))
    if problems:
        kept = ", ".join(f"{split} {len(corpus)}" for split, corpus in dataset.splits.items())
        listing = problems.listing(remedies=False)
        _logger.warning("Left out while reading %s:\n%s\nKept: %s.", folder, listing, kept)
    return dataset


def _refusal(folder: Path, problems: Problems) -> str:
    advice = (
        "This cannot be skipped: correct the files and read them again."
        if problems.fatal
        else "To leave these rows out and use the rest: --on-error skip "
        '(in Python: on_error="skip").'
    )
    return f"{folder} cannot be read as it is:\n{problems.listing(remedies=True)}\n{advice}"


def _check_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.exists():
        raise CorpusError(
            f"{folder} is a file; a corpus is a folder. Give the folder that holds the files, "
            f"perhaps {folder.parent}."
        )
    siblings = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
    close = get_close_matches(folder.name, siblings, 1)
    hint = f" Did you mean {folder.parent / close[0]}?" if close else " Check the path."
    raise CorpusError(f"There is no folder {folder}.{hint}")


def _forced(folder: Path, format: str) -> tuple[str, Layout]:
    if format not in _FORMATS:
        close = get_close_matches(format.lower(), FORMATS, 1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise CorpusError(f"There is no format {format!r}.{hint} The formats are:\n{_listing()}")
    layout = _FORMATS[format].look(folder)
    if layout is None:
        raise CorpusError(
            f"{folder} is not in the format {format!r}. Looked for: {_FORMATS[format].FILES}. "
            f"{_found(folder)} Name another format, or none to have it recognised."
        )
    return format, layout


def _recognise(folder: Path) -> tuple[str, Layout]:
    """The one format whose files are there."""
    looked = {name: reader.look(folder) for name, reader in _FORMATS.items()}
    layouts = {name: layout for name, layout in looked.items() if layout is not None}
    # Annif's files and depl's own have the same names and differ in what is in them.
    if "annif" in layouts and annif.is_annif(layouts["annif"]):
        layouts.pop("jsonl", None)
        layouts.pop("table", None)
    else:
        layouts.pop("annif", None)
    if len(layouts) > 1:
        raise CorpusError(
            f"{folder} holds files of several formats: {', '.join(layouts)}. Name the one to "
            f"read (--format, in Python format=...), or move the other files away."
        )
    if not layouts:
        bag_of_words.refuse(folder, _listing())
        raise CorpusError(
            f"{folder} is in no format that depl knows. Looked for:\n"
            + "\n".join(f"  {name}: {reader.FILES}" for name, reader in _FORMATS.items())
            + f"\n{_found(folder)} Rename the files, or convert them: docs/formats.md shows how."
        )
    return layouts.popitem()


def _listing() -> str:
    return "\n".join(f"  {name}: {description}" for name, description in FORMATS.items())


def _found(folder: Path) -> str:
    names = sorted(p.name + "/" * p.is_dir() for p in folder.iterdir())
    rest = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"Found there: {', '.join(names[:10])}{rest}." if names else "The folder is empty."


def _wanted(layout: Layout, splits: Collection[str] | None) -> list[str]:
    """The splits to read, in the order train, dev, test."""
    if splits is None:
        return [split for split in SPLIT_NAMES if split in layout.splits]
    names = [splits] if isinstance(splits, str) else splits
    split_of = {name: split for split, aliases in SPLIT_NAMES.items() for name in aliases}
    wanted = {split_of.get(name, name) for name in names}
    missing = [name for name in wanted if name not in layout.splits]
    if missing:
        there = ", ".join(path.name for path in layout.splits.values())
        raise CorpusError(
            f"{layout.folder} has no {' and no '.join(sorted(missing))} split; the files of "
            f"splits there are: {there}. Add the file, or ask for another split."
        )
    if not wanted:
        raise CorpusError("No split was asked for; name at least one of train, dev and test.")
    return [split for split in SPLIT_NAMES if split in wanted]
