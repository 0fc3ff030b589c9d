"""MARC records as a corpus: titles and abstracts as texts, subjects as labels, with their ids."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from depl.core.corpus import Label
from depl.core.errors import ConfigError
from depl.readers.checks import LabelRow
from depl.readers.columns import Columns
from depl.readers.document import Document
from depl.readers.files import Source, format_of
from depl.readers.marc import MarcFields, marc_records
from depl.readers.rows import recognised
from depl.readers.spellings import sameness


def is_marc(source: Source, format: str | None) -> bool:
    """Whether a file holds MARC records, by its format, its name or its first bytes."""
    if format is None and source.path is not None:
        format = format_of(source.path) or recognised(source, "text")
    return format == "marc"


class MarcCorpus:
    """The documents of MARC records, and the labels that their subjects are.

    Parameters
    ----------
    asked : Columns
        Fields in place of columns: ``text`` such as ``245$a$b,520$a``, ``labels`` such as
        ``650,651``, or ``650=gnd`` for the subjects of one vocabulary.
    kept : Columns or None
        What was taken before.
    known : iterable of Label
        The labels of a run.
    """

    def __init__(self, asked: Columns, kept: Columns | None, known: Iterable[Label] = ()) -> None:
        if asked.id is not None or asked.separator is not None:
            raise ConfigError(
                "MARC records have their id in field 001 and a subject in each field: --id and "
                "--label-separator are for tables."
            )
        self._fields = MarcFields.chosen(asked, kept)
        self._merge = asked.merge
        self._known = {label.id for label in known}
        self._ids: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._named: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._codes: set[str] = set()
        self._asked = asked
        self._open = not (asked.labels or self._known)  # whether the vocabulary is to be found

    @property
    def columns(self) -> Columns:
        """The fields; with the code of the vocabulary, if all subjects read so far are of one."""
        [code] = self._codes if self._open and len(self._codes) == 1 else [""]
        code = self._fields.source or code
        return replace(
            self._asked,
            text=tuple(place.written for place in self._fields.text),
            labels=tuple(
                place.written + (f"={code}" if code else "") for place in self._fields.subjects
            ),
            id="001",
            separator="",
        )

    def documents(self, source: Source, made_id: Callable[[int], str]) -> Iterator[Document]:
        """The records of a file; a label is the id of a subject, or the name where it has none."""
        for number, record in marc_records(source):
            own = next((field.data for field in record.get_fields("001")), None)
            labels = []
            self._codes |= self._fields.codes_of(record)
            for name, label_id in self._fields.subjects_of(record):
                # What a run has learnt under an id of its own is found by its name.
                label = label_id if label_id and label_id in (self._known or {label_id}) else name
                labels.append(label)
                if label == label_id:
                    self._ids[label_id][name] += 1
                else:
                    self._named[self._same(name)][name] += 1
            own_id = (own or "").strip() or made_id(number)
            yield Document(own_id, self._fields.text_of(record), labels, source.place(number))

    def labels(self) -> list[LabelRow]:
        """The labels of all records read so far, each by its commonest name."""
        found = []
        with_id = {self._same(name) for names in self._ids.values() for name in names}
        for label_id, names in self._ids.items():
            first, *others = (name for name, _ in names.most_common())
            found.append(Label(label_id, first, tuple(others)))
        for same, names in self._named.items():
            if same not in with_id:
                name = names.most_common(1)[0][0]
                found.append(Label(name, name))
        return [LabelRow("", label) for label in found]

    def _same(self, name: str) -> str:
        return sameness(name) if self._merge else name
