"""Which format a corpus has, by the files of its folder."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from depl.core.errors import CorpusError
from depl.readers import annif, attentionxml, bag_of_words, jsonl, lf_json, pecos, table
from depl.readers.checks import Format, Layout
from depl.readers.files import DOCUMENTS, SUFFIXES, find_splits, format_named, format_of, named

READERS: dict[str, Format] = {
    "jsonl": jsonl,
    "table": table,
    "pecos": pecos,
    "attentionxml": attentionxml,
    "lf-json": lf_json,
    "annif": annif,
}

TABLES = tuple(format for format in SUFFIXES if format not in DOCUMENTS)
"""The formats of a table: of one with all documents, or of each split."""
_SPLIT_FILES = named("{}", *SUFFIXES)

FORMATS = {name: reader.DESCRIPTION for name, reader in READERS.items()}
"""Every format's name, as ``read`` takes it, with a line that describes it."""


def split_names(path: str | os.PathLike[str], format: str | None = None) -> list[str]:
    """The splits that a corpus has; one table has only "train"."""
    folder = Path(path)
    if folder.is_file() or (format is None and is_table(folder)):
        return ["train"]
    return list(find_layout(folder, format)[1].splits)


def find_layout(folder: Path, format: str | None) -> tuple[str, Layout]:
    """The format of a folder, the one that is named or the only one that fits, and its files."""
    return _recognised(folder) if format is None else _named(folder, format)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a corpus is one table with all documents: a file, or the only one in its folder."""
    return Path(path).is_file() or (Path(path).is_dir() and only_table(Path(path)) is not None)


def only_table(folder: Path) -> Path | None:
    """The only file of a folder, if it is a table; hidden files do not count."""
    files = [p for p in folder.iterdir() if not p.name.startswith(".")]
    alone = len(files) == 1 and files[0].is_file() and not find_splits(folder, *_SPLIT_FILES)
    return files[0] if alone and format_of(files[0]) in TABLES else None


def check_path(path: Path) -> None:
    """Refuse a path where nothing is, with the name that may have been meant."""
    if path.exists():
        return
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, siblings, 1)
    hint = f" Did you mean {path.parent / close[0]}?" if close else " Check the path."
    raise CorpusError(f"There is no file or folder {path}.{hint}")


def known_format(format: str | None) -> str | None:
    """The format by its name, or by a suffix of its files."""
    format = format and format_named(format)
    if format is None or format in READERS or format in TABLES:
        return format
    close = get_close_matches(format.lower().lstrip("."), [*READERS, *TABLES], 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise CorpusError(
        f"There is no format {format!r}.{hint} The formats are:\n{_listing()}\n"
        f"and those of tables: {', '.join(TABLES)}."
    )


def _named(folder: Path, format: str) -> tuple[str, Layout]:
    name = format if format in READERS else "table"
    layout = READERS[name].look(folder)
    if layout is None:
        raise CorpusError(
            f"{folder} is not in the format {format!r}. Looked for: {READERS[name].FILES}. "
            f"{_found(folder)} Name another format, or none to have it recognised."
        )
    return name, layout


def _recognised(folder: Path) -> tuple[str, Layout]:
    """The one format whose files are there."""
    looked = {name: reader.look(folder) for name, reader in READERS.items()}
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
            + "\n".join(f"  {name}: {reader.FILES}" for name, reader in READERS.items())
            + f"\n{_found(folder)} Rename the files, or convert them: docs/formats.md shows how."
        )
    return layouts.popitem()


def _listing() -> str:
    return "\n".join(f"  {name}: {description}" for name, description in FORMATS.items())


def _found(folder: Path) -> str:
    names = sorted(p.name + "/" * p.is_dir() for p in folder.iterdir())
    rest = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"Found there: {', '.join(names[:10])}{rest}." if names else "The folder is empty."
