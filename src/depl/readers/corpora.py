"""Reading a corpus: which splits and columns are wanted, and what is wrong with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from depl.core.corpus import Dataset, Label
from depl.core.errors import CorpusError
from depl.readers import records
from depl.readers.checks import Layout, assemble
from depl.readers.columns import Columns
from depl.readers.encodings import known as known_encoding
from depl.readers.files import (
    SPLIT_NAMES,
    SUFFIXES,
    Source,
)
from depl.readers.frames import read_frames
from depl.readers.paths import with_paths
from depl.readers.problems import Kind, Problems
from depl.readers.recognising import READERS, check_path, find_layout, known_format, only_table
from depl.readers.records import Taken, single_table
from depl.readers.rows import open_table
from depl.readers.tables import Table
from depl.readers.vocabularies import Vocabulary, match, read_vocabulary

_logger = logging.getLogger("depl.readers")


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
    path_separator: str | None = None,
    merge_spellings: bool = True,
    vocabulary: str | os.PathLike[str] | Vocabulary | None = None,
    language: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
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
    path_separator : str, optional
        What separates the steps of labels that are paths, such as ">": each is below the one that
        it continues. Found from the labels when not given; empty: they are no paths.
    merge_spellings : bool
        Whether names of labels that differ only in white space, case or Unicode form are one label.
    vocabulary : path or Vocabulary, optional
        A vocabulary in SKOS, or a table of labels: all its concepts are labels, and the labels of
        the documents are matched to them by id, URI, notation or name.
    language : str, optional
        The language of the vocabulary's names, such as "de"; others are other names.
    encoding : str, optional
        That of CSV and TSV files, such as "cp850"; found from their bytes when not given.
    sheet : str, optional
        The sheet of an Excel or OpenDocument file; the first that looks like a table when not
        given.

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
        sheet,
        path_separator,
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
    check_path(folder)
    format = known_format(format)
    one = folder if folder.is_file() else only_table(folder) if format is None else None
    problems = Problems()
    taken = None
    if one is not None:
        name, layout = "table", single_table(one)
    else:
        name, layout = find_layout(folder, format)
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
        contents = READERS[name].load(layout, wanted, problems)
    if vocabulary is not None:
        contents, matched = match(contents, vocabulary, merge=columns.merge)
        if taken is None:
            matched.warn()  # there is nobody else to tell of it
        else:
            taken.matched = matched
    dataset = assemble(layout, contents, problems)
    if taken is not None and taken.columns.path and vocabulary is None and not dataset.listed:
        dataset = with_paths(dataset, taken.columns.path)
    if taken is not None and taken.left_out and not any(map(len, dataset.splits.values())):
        raise CorpusError(_nothing_usable(taken))
    if one is not None and problems.kinds == {Kind.EMPTY}:
        raise CorpusError(
            f"There is no record in {one}. Give a table with the names of its columns in the first "
            f"row, and a record in each row below."
        )
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
