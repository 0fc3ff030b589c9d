"""Which columns of a table hold text, labels and id, and how the labels of a cell are separated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from depl.core.display import listing
from depl.core.errors import ConfigError
from depl.readers.fields import LIST, MARKS

_SAID = {"\n": "line breaks", "\t": "tabs", " ": "spaces"}
_WRITTEN = {"\\n": "\n", "\\t": "\t", "newline": "\n", "tab": "\t", "space": " ", "none": ""}


@dataclass(frozen=True)
class Columns:
    """How documents are taken from a table; what is left empty is found from the table itself.

    Parameters
    ----------
    text : tuple of str
        The columns whose contents, one after another, are the text.
    labels : tuple of str
        The columns with the labels.
    id : str or None
        The column with the id of a document; where it is empty, rows are numbered.
    separator : str or None
        What separates labels in a cell; empty: a cell is one label; ``LIST``: a cell is a list;
        ``MARKS``: every label has a column of 0 and 1.
    merge : bool
        Whether names of labels that differ only in white space, case or Unicode form are one label.
    sheet : str or None
        The sheet of a workbook.
    path : str or None
        What separates the steps of labels that are paths, such as " > "; empty: they are none.

    Examples
    --------
    >>> columns = Columns(text=("Titel", "Abstract"), labels=("Schlagwörter",), separator=";")
    >>> columns.text_said, columns.labels_said
    ('Titel + Abstract', "Schlagwörter, split at ';'")
    >>> Columns.from_json(columns.to_json()) == columns
    True
    """

    text: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    id: str | None = None
    separator: str | None = None
    merge: bool = True
    sheet: str | None = None
    path: str | None = None

    @classmethod
    def asked(
        cls,
        text: str | None = None,
        labels: str | None = None,
        id: str | None = None,
        separator: str | None = None,
        *,
        merge: bool = True,
        sheet: str | None = None,
        path: str | None = None,
    ) -> Columns:
        """From what was given on the command line; several columns are separated by commas.

        The commas are not taken apart before the table is known: names may hold one.
        """
        for option, value in (("--text", text), ("--labels", labels), ("--id", id)):
            if value is not None and not value.strip():
                raise ConfigError(f"{option} takes the name of a column; got {value!r}.")
        if separator is not None:
            separator = _WRITTEN.get(separator, separator)
        if path is not None:
            path = _WRITTEN.get(path, path)
        parts = ((text,) if text else (), (labels,) if labels else ())
        return cls(*parts, id, separator, merge, sheet, path)

    @property
    def all(self) -> list[str]:
        """Every column, once."""
        return list(dict.fromkeys((*self.text, *self.labels, *filter(None, [self.id]))))

    @property
    def names(self) -> list[str]:
        """Every column, and the parts of those that may be several between commas."""
        return [*self.all, *(part for name in self.all if "," in name for part in name.split(","))]

    @property
    def text_said(self) -> str:
        """The text in words."""
        return " + ".join(self.text)

    @property
    def labels_said(self) -> str:
        """The labels in words."""
        if not self.separator:
            how = "one a cell" if len(self.labels) == 1 else "one in each"
        elif self.separator == MARKS:
            return f"{len(self.labels):,} columns with 0 and 1: {listing(self.labels)}"
        elif self.separator == LIST:
            how = "lists"
        else:
            how = f"split at {_SAID.get(self.separator, repr(self.separator))}"
        steps = f"; paths with steps between {self.path.strip()!r}" if self.path else ""
        return f"{' + '.join(self.labels)}, {how}{steps}"

    def to_json(self) -> dict[str, Any]:
        """As plain values; without sheet and path, those of tables that have none."""
        found = asdict(self) | {"text": list(self.text), "labels": list(self.labels)}
        return {
            name: value for name, value in found.items() if name not in ("sheet", "path") or value
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Columns:
        """From what ``to_json`` gave."""
        return cls(**{**found, "text": tuple(found["text"]), "labels": tuple(found["labels"])})
