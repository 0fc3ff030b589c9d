"""Reading a corpus folder: which format it has, which splits are wanted, what is wrong with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from depl.core.corpus import Dataset, Label
from depl.core.errors import CorpusError
from depl.readers import annif, attentionxml, bag_of_words, jsonl, lf_json, pecos, records, table
from depl.readers.checks import Format, Layout, assemble
from depl.readers.columns import Columns
from depl.readers.encodings import known as known_encoding
from depl.readers.files import (
    DOCUMENTS,
    SPLIT_NAMES,
    SUFFIXES,
    Source,
    find_splits,
    format_named,
    format_of,
    named,
)
from depl.readers.frames import read_frames
from depl.readers.problems import Problems
from depl.readers.records import Taken, single_table
from depl.readers.rows import open_table
from depl.readers.tables import Table
from depl.readers.vocabularies import Vocabulary, match, read_vocabulary

_logger = logging.getLogger("depl.readers")

_FORMATS: dict[str, Format] = {
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

FORMATS = {name: reader.DESCRIPTION for name, reader in _FORMATS.items()}
"""Every format's name, as ``read`` takes it, with a line that describes it."""


def read(
    path: str | os.PathLike[str] | Any,  # noqa: ANN401 - whatever holds rows
    *,
    format: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    splits: Collection[str] | None = None,
    text: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | None = None,
    id: str | None = None,
    label_separator: str | None = None,
    merge_spellings: bool = True,
    vocabulary: str | os.PathLike[str] | Vocabulary | None = None,
    language: str | None = None,
    encoding: str | None = None,
) -> Dataset:
    """Read a corpus: a folder, or one table with all documents, in a file or in memory.

    Parameters
    ----------
    path : path, DataFrame, Dataset or iterable of dicts
        A folder in one of the ``FORMATS``; or a CSV, TSV, JSON lines, JSON, Parquet, Excel or MARC
        file, whose documents are the split "train"; or a table in memory: a DataFrame, a Hugging
        Face ``Dataset`` or ``DatasetDict``, a list of dicts, a mapping with one for each split.
    format : str, optional
        The name of the format; recognised from the files when not given.
    on_error : {"stop", "skip"}
        What to do about bad rows. "stop" reads everything and raises one error that lists what
        is wrong; "skip" leaves bad rows out and logs a warning with the same list. Missing or
        damaged files, files that differ in length and splits with no document raise either way.
    splits : collection of str, optional
        The splits to read, such as ``["train"]``; all that are there when not given.
    text, labels : str or sequence of str, optional
        The columns of a table with the text, and with the names of the labels; found from the
        names and contents of the columns when not given.
    id : str, optional
        The column with the ids of the documents.
    label_separator : str, optional
        What separates labels in a cell; found from the cells when not given.
    merge_spellings : bool
        Whether names of labels that differ only in white space, case or Unicode form are one label.
    vocabulary : path or Vocabulary, optional
        A vocabulary in SKOS, or a table of labels: all its concepts are labels, and the labels of
        the documents are matched to them by id, URI, notation or name.
    language : str, optional
        The language of the vocabulary's names, such as "de"; others are other names.
    encoding : str, optional
        That of CSV and TSV files, such as "cp850"; found from their bytes when not given.

    Returns
    -------
    Dataset
        The label set, in the order of the labels file, and the splits.

    Raises
    ------
    CorpusError
        The corpus cannot be read, or holds what it should not.

    Examples
    --------
    >>> rows = [
    ...     {"title": "Sparkling wine", "subjects": ["wine"]},
    ...     {"title": "Olive oil and wine", "subjects": ["oil", "Wine"]},
    ... ]
    >>> corpus = read(rows, text="title", labels="subjects").train
    >>> corpus.labels.names, corpus.texts
    (['Wine', 'oil'], ['Sparkling wine', 'Olive oil and wine'])
    """
    columns = Columns(
        (text,) if isinstance(text, str) else tuple(text or ()),
        (labels,) if isinstance(labels, str) else tuple(labels or ()),
        id,
        label_separator,
        merge_spellings,
    )
    if isinstance(vocabulary, str | os.PathLike):
        vocabulary = read_vocabulary(Path(vocabulary), language)
    elif language is not None:
        raise CorpusError("language is that of a vocabulary's names: give the vocabulary, too.")
    if not isinstance(path, str | os.PathLike):
        if format is not None:
            raise CorpusError(f"A table in memory has no format; got format={format!r}.")
        _check_on_error(on_error)
        problems = Problems()
        dataset, taken = read_frames(path, columns, problems, splits, vocabulary)
        _settle(problems, on_error, "the table", dataset)
        _warn_of_unmatched(taken)
        _logger.info("text: %s; labels: %s", taken.columns.text_said, taken.columns.labels_said)
        return dataset
    dataset, own = read_records(
        path,
        columns,
        vocabulary=vocabulary,
        format=format,
        on_error=on_error,
        splits=splits,
        encoding=encoding,
    )
    _warn_of_unmatched(own)
    return dataset


def read_records(
    path: str | os.PathLike[str],
    columns: Columns,
    *,
    kept: Columns | None = None,
    known: Iterable[Label] = (),
    vocabulary: Vocabulary | None = None,
    format: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    splits: Collection[str] | None = None,
    encoding: str | None = None,
) -> tuple[Dataset, Taken | None]:
    """Read a corpus as ``read`` does; and what was taken from a table of somebody's own.

    Parameters
    ----------
    path, format, on_error, splits, encoding
        As of ``read``.
    columns : Columns
        Which columns are asked for.
    kept : Columns, optional
        Which were taken before, such as by a run; used where they are there.
    known : iterable of Label
        The labels of the run, which names in a table may mean.
    vocabulary : Vocabulary, optional
        The concepts that labels of the documents may mean.
    """
    _check_on_error(on_error)
    folder = Path(path)
    _check_path(folder)
    format = _known_format(format)
    one = folder if folder.is_file() else _only_table(folder) if format is None else None
    problems = Problems()
    taken = None
    if one is not None:
        name, layout = "table", single_table(one)
    else:
        name, layout = _recognise(folder) if format is None else _forced(folder, format)
    wanted = _wanted(layout, splits)
    encoding = known_encoding(encoding)
    own = name in ("jsonl", "table") and (
        one is not None or encoding is not None or _chosen(layout, columns, kept)
    )
    if own:
        rows = format if format in SUFFIXES else None
        contents, taken = records.load(
            layout,
            wanted,
            problems,
            asked=columns,
            kept=kept,
            known=known,
            format=rows,
            encoding=encoding,
        )
    elif columns != Columns() or encoding is not None:
        raise CorpusError(
            f"{folder} is in the format {name!r}, whose columns and encoding are fixed: --text, "
            f"--labels and the like (in Python: text=...) are for tables."
        )
    else:
        contents = _FORMATS[name].load(layout, wanted, problems)
    if vocabulary is not None:
        contents, matched = match(contents, vocabulary, merge=columns.merge)
        if taken is None:
            matched.warn()  # there is nobody else to tell of it
        else:
            taken.matched = matched
    dataset = assemble(layout, contents, problems)
    if taken is not None and taken.left_out and not any(map(len, dataset.splits.values())):
        raise CorpusError(_nothing_usable(taken))
    if one is not None:
        dataset = replace(dataset, name=one.name)
    _settle(problems, on_error, str(folder), dataset)
    return dataset, taken


def _warn_of_unmatched(taken: Taken | None) -> None:
    if taken is not None and taken.matched is not None:
        taken.matched.warn()


def _check_on_error(on_error: str) -> None:
    if on_error not in ("stop", "skip"):
        raise CorpusError(f"on_error is either 'stop' or 'skip'; got {on_error!r}.")


def _settle(problems: Problems, on_error: str, name: str, dataset: Dataset) -> None:
    """Raise what is wrong with the rows, or say that they were left out."""
    if problems.fatal or (problems and on_error == "stop"):
        raise CorpusError(_refusal(name, problems))
    if problems:
        parts = ", ".join(f"{split} {len(corpus)}" for split, corpus in dataset.splits.items())
        listing = problems.listing(remedies=False)
        _logger.warning("Left out while reading %s:\n%s\nKept: %s.", name, listing, parts)


def split_names(path: str | os.PathLike[str], format: str | None = None) -> list[str]:
    """The splits that a corpus has; one table has only "train"."""
    folder = Path(path)
    if folder.is_file() or (format is None and is_table(folder)):
        return ["train"]
    return list((_recognise(folder) if format is None else _forced(folder, format))[1].splits)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a corpus is one table with all documents: a file, or the only one in its folder."""
    return Path(path).is_file() or (Path(path).is_dir() and _only_table(Path(path)) is not None)


def _only_table(folder: Path) -> Path | None:
    """The only file of a folder, if it is a table; hidden files do not count."""
    files = [p for p in folder.iterdir() if not p.name.startswith(".")]
    alone = len(files) == 1 and files[0].is_file() and not find_splits(folder, *_SPLIT_FILES)
    return files[0] if alone and format_of(files[0]) in TABLES else None


def _chosen(layout: Layout, columns: Columns, kept: Columns | None) -> bool:
    """Whether columns are to be chosen: they are asked for, or not called as depl calls them."""
    if columns != Columns() or kept is not None:
        return True
    path = next(iter(layout.splits.values()))
    table = open_table(Source(path, Problems()))
    names = {name.lower() for name in table.header} if isinstance(table, Table) else set()
    return bool(names) and not {"text", "labels"} <= names


def _nothing_usable(taken: Taken) -> str:
    why = " and ".join(f"{n:,} have {reason}" for reason, n in taken.left_out.items())
    return (
        f"No row of {taken.name} can be used: {why}. The text was taken from "
        f"{taken.columns.text_said}, the labels from {' + '.join(taken.columns.labels)}; --text "
        f"and --labels (in Python: text=..., labels=...) name others."
    )


def _refusal(folder: str, problems: Problems) -> str:
    advice = (
        "This cannot be skipped: correct the files and read them again."
        if problems.fatal
        else "To leave these rows out and use the rest: --on-error skip "
        '(in Python: on_error="skip").'
    )
    return f"{folder} cannot be read as it is:\n{problems.listing(remedies=True)}\n{advice}"


def _check_path(path: Path) -> None:
    if path.exists():
        return
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, siblings, 1)
    hint = f" Did you mean {path.parent / close[0]}?" if close else " Check the path."
    raise CorpusError(f"There is no file or folder {path}.{hint}")


def _known_format(format: str | None) -> str | None:
    """The format by its name, or by a suffix of its files."""
    format = format and format_named(format)
    if format is None or format in _FORMATS or format in TABLES:
        return format
    close = get_close_matches(format.lower().lstrip("."), [*_FORMATS, *TABLES], 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise CorpusError(
        f"There is no format {format!r}.{hint} The formats are:\n{_listing()}\n"
        f"and those of tables: {', '.join(TABLES)}."
    )


def _forced(folder: Path, format: str) -> tuple[str, Layout]:
    name = format if format in _FORMATS else "table"
    layout = _FORMATS[name].look(folder)
    if layout is None:
        raise CorpusError(
            f"{folder} is not in the format {format!r}. Looked for: {_FORMATS[name].FILES}. "
            f"{_found(folder)} Name another format, or none to have it recognised."
        )
    return name, layout


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
