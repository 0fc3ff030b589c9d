"""The labels of documents as Python programs have them: names, sets, strings, a 0/1 matrix."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from depl.core.corpus import Label, LabelSet
from depl.core.errors import CorpusError
from depl.core.indicator import indicator
from depl.core.texts import is_table
from depl.readers.spellings import Spellings


class Targets(NamedTuple):
    """Which document carries which label, and whether this was given as a matrix."""

    Y: csr_array
    labels: LabelSet
    matrix: bool


def read_targets(
    y: Any,  # noqa: ANN401 - whatever scikit-learn's users have
    *,
    separator: str | None = None,
    label_names: Sequence[str] | None = None,
    known: Sequence[str] = (),
) -> Targets:
    """The labels of documents in any of the usual forms.

    Parameters
    ----------
    y : sequence or matrix
        A list, a set or a string for each document, or a matrix of 0 and 1 (an array, a sparse
        matrix, a DataFrame). None and NaN mean no label.
    separator : str or None
        What separates the labels of a string; None: a string is one label.
    label_names : sequence of str or None
        What the columns of a matrix mean; by default a DataFrame's columns, or their numbers.
    known : sequence of str
        Labels that come first, in this order; other names are new labels behind them. Names that
        differ only in white space, case or Unicode form are one label.

    Examples
    --------
    >>> found = read_targets(["Wine; Oil", "wine", None], separator=";")
    >>> found.labels.names, found.Y.toarray().tolist()
    (['Oil', 'Wine'], [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    """
    if issparse(y) or is_table(y) or (isinstance(y, np.ndarray) and y.ndim == 2):
        values = y if issparse(y) else np.asarray(y)
        if values.ndim == 2 and (values.shape[1] != 1 or _is_number(values.dtype)):
            names = label_names if label_names is not None else getattr(y, "columns", None)
            return _of_matrix(values, names, known)
        y = values.ravel().tolist()
    rows = [_names(item, separator) for item in y]
    _refuse_zeros_and_ones(rows, y)
    if not separator:
        _warn_of_separators([item for item in y if isinstance(item, str)])
    spellings = Spellings.learn(rows, known=known)
    new = spellings.names[len(known) :]
    labels = LabelSet([Label(name, name) for name in (*known, *sorted(new))])
    positions = [[labels.index(name) for name in spellings.labels(row)] for row in rows]
    return Targets(indicator(positions, len(labels)), labels, matrix=False)


def _of_matrix(values: Any, names: Any, known: Sequence[str]) -> Targets:  # noqa: ANN401
    try:
        Y = csr_array(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise CorpusError(
            f"A matrix of labels holds 0 and 1; this one cannot be read as numbers ({error}). "
            f"Give lists of label names instead."
        ) from error
    Y.sum_duplicates()
    Y.eliminate_zeros()
    if not np.all(Y.data == 1):
        odd = sorted(set(Y.data.tolist()) - {1.0})[:3]
        raise CorpusError(
            f"A matrix of labels holds 0 and 1, a column for each label; this one holds "
            f"{', '.join(map(str, odd))}. Give 1 where a document carries a label."
        )
    if names is None and len(known) == Y.shape[1]:
        names = known
    given = [str(i) for i in range(Y.shape[1])] if names is None else [str(name) for name in names]
    if len(given) != Y.shape[1]:
        raise CorpusError(
            f"The matrix of labels has {Y.shape[1]} columns, and there are {len(given)} names. "
            f"Give a name for each column."
        )
    return Targets(Y, LabelSet([Label(name, name) for name in given]), matrix=True)


def _names(item: Any, separator: str | None) -> list[str]:  # noqa: ANN401
    """The names of the labels of one document."""
    if item is None or (isinstance(item, float) and item != item):
        return []
    if isinstance(item, str):
        return item.split(separator) if separator else [item]
    if isinstance(item, int | np.integer):
        return [str(item)]
    if hasattr(item, "__iter__") and not isinstance(item, dict | bytes):
        return [name for part in item for name in _names(part, None)]
    raise CorpusError(
        f"The labels of a document are a list of names, a set or a string; got {item!r:.60} of "
        f"type {type(item).__name__}."
    )


def _refuse_zeros_and_ones(rows: Sequence[Sequence[str]], y: Any) -> None:  # noqa: ANN401
    """Lists of 0 and 1 are meant as a matrix by most, and as names by nobody."""
    if any(isinstance(item, str) for item in y) or not rows or len(rows[0]) < 2:
        return
    if len({len(row) for row in rows}) == 1 and {name for row in rows for name in row} == {
        "0",
        "1",
    }:
        raise CorpusError(
            "Lists of 0 and 1 are no names of labels. If they are the rows of a matrix, give "
            "numpy.array(y), and label_names to say what its columns mean."
        )


def _warn_of_separators(cells: Sequence[str]) -> None:
    """Strings that look like several labels each are one label each, which is seldom meant."""
    for mark in (";", "|"):
        found = [cell for cell in cells if mark in cell.strip().strip(mark)]
        if 4 * len(found) > len(cells):
            warnings.warn(
                f"Labels such as {found[0]!r:.60} are taken for one label each. If they are "
                f"several, give separator={mark!r}.",
                stacklevel=4,
            )


def _is_number(dtype: np.dtype[Any]) -> bool:
    return np.issubdtype(dtype, np.number) or np.issubdtype(dtype, np.bool_)
