"""Documents that are in memory: a DataFrame, a Hugging Face dataset, any iterable of dicts.

They are tables like those in files, and columns are chosen in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from depl.core.corpus import Dataset
from depl.core.errors import CorpusError
from depl.readers.checks import Layout, assemble
from depl.readers.columns import Columns
from depl.readers.files import SPLIT_NAMES
from depl.readers.paths import with_paths
from depl.readers.problems import Problems
from depl.readers.records import Taken, load
from depl.readers.tables import Fields, Table
from depl.readers.vocabularies import Vocabulary, match

_SAMPLE = 500  # rows by which columns are chosen
_HINT = "Give a DataFrame, a Dataset of Hugging Face, or a list of dicts."


def read_frames(
    given: Any,  # noqa: ANN401 - whatever holds rows
    columns: Columns,
    problems: Problems,
    splits: Iterable[str] | None = None,
    vocabulary: Vocabulary | None = None,
) -> tuple[Dataset, Taken]:
    """Read a table, or a table for each split, that is in memory.

    Parameters
    ----------
    given : DataFrame, Dataset, DatasetDict, or iterable of dicts
        The rows. A mapping has a table for each split.
    columns : Columns
        Which columns are asked for; others are found from names and contents.
    problems : Problems
        What collects the rows that cannot be read.
    splits : iterable of str, optional
        The splits to read; all when not given.
    vocabulary : Vocabulary, optional
        The concepts that labels of the documents may mean.
    """
    tables = given if isinstance(given, Mapping) else {"train": given}
    named = {_split(name): table for name, table in tables.items()}
    wanted = list(named) if splits is None else [_split(name) for name in splits]
    missing = [name for name in wanted if name not in named]
    if missing:
        raise CorpusError(
            f"There is no split {', '.join(map(repr, missing))}; the splits are: "
            f"{', '.join(named)}. Ask for another one."
        )
    opened = {name: _table(named[name]) for name in SPLIT_NAMES if name in wanted}
    alone = Path("the table")
    files = {name: alone if table is given else Path(name) for name, table in named.items()}
    layout = Layout(alone, files, None)
    contents, taken = load(layout, list(opened), problems, asked=columns, opened=opened)
    if vocabulary is not None:
        contents, taken.matched = match(contents, vocabulary, merge=columns.merge)
    dataset = assemble(layout, contents, problems)
    if taken.columns.path and vocabulary is None and not dataset.listed:
        dataset = with_paths(dataset, taken.columns.path)
    return dataset, taken


def _split(name: object) -> str:
    for split, names in SPLIT_NAMES.items():
        if str(name).lower() in names:
            return split
    raise CorpusError(
        f"A mapping has a table for each split, under the names train, dev and test; got "
        f"{name!r:.60}. {_HINT}"
    )


def _table(given: Any) -> Table:  # noqa: ANN401
    """Rows in memory as a table."""
    decode: dict[str, Sequence[str]] = {}
    if hasattr(given, "to_dict") and hasattr(given, "columns"):  # pandas
        rows = given.to_dict("records")
        header = [str(column) for column in given.columns]
    elif hasattr(given, "to_dicts") and hasattr(given, "columns"):  # polars
        rows, header = given.to_dicts(), list(given.columns)
    elif isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise CorpusError(f"Cannot read documents from {type(given).__name__}. {_HINT}")
    else:
        decode = _class_names(getattr(given, "features", None))
        rows = list(given)
        odd = next((row for row in rows if not isinstance(row, Mapping)), None)
        if odd is not None:
            raise CorpusError(f"A row must be a dict; got {odd!r:.60}. {_HINT}")
        header = list(dict.fromkeys(str(column) for row in rows for column in row))

    def fields(row: Mapping[Any, Any], columns: Sequence[str]) -> Fields:
        by_name = {str(column): value for column, value in row.items()}
        return {c: _decoded(_plain(by_name.get(c)), decode.get(c)) for c in columns}

    def numbered(columns: Sequence[str]) -> Iterator[tuple[int, Fields]]:
        return ((i, fields(row, columns)) for i, row in enumerate(rows, start=1))

    return Table(
        f"{len(rows):,} rows in memory",
        header,
        lambda: [fields(row, header) for row in rows[:_SAMPLE]],
        numbered,
    )


def _class_names(features: Any) -> dict[str, Sequence[str]]:  # noqa: ANN401
    """The names of a Hugging Face dataset's classes, by the columns that have their numbers."""
    found: dict[str, Sequence[str]] = {}
    for column, feature in (features or {}).items():
        names = getattr(feature, "names", None) or getattr(
            getattr(feature, "feature", None), "names", None
        )
        if names:
            found[column] = list(names)
    return found


def _decoded(value: Any, names: Sequence[str] | None) -> Any:  # noqa: ANN401
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_decoded(item, names) for item in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _plain(value: Any) -> Any:  # noqa: ANN401
    """A cell as the rest of Python has it: lists for arrays, None for what is missing."""
    if isinstance(value, str) or value is None:
        return value
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    if isinstance(value, tuple | set | frozenset):
        return sorted(value, key=str) if not isinstance(value, tuple) else list(value)
    return None if type(value).__name__ in ("NAType", "NaTType") else value
