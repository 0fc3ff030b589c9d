"""A vocabulary of labels, and which of its concepts the labels of documents mean."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from depl.core.corpus import Label
from depl.core.display import count, listing
from depl.core.errors import CorpusError
from depl.readers.checks import Contents, LabelRow
from depl.readers.document import Document
from depl.readers.files import Source, bare_suffix, format_of
from depl.readers.jsonl import TABLES, label_rows
from depl.readers.label_columns import find_label_columns
from depl.readers.problems import Problems
from depl.readers.rows import open_table
from depl.readers.skos import SYNTAXES, read_concepts
from depl.readers.spellings import Codes, sameness, tidy
from depl.readers.tables import Table

_logger = logging.getLogger("depl.readers")

BY_ID, BY_NAME, BY_OTHER_NAME = "by id", "by name", "by another name"
BY_CODE = "by id, but for zeros or points"
_EXAMPLES = 3


@dataclass(frozen=True)
class Vocabulary:
    """The labels that documents may have, whether any has them or not.

    Parameters
    ----------
    name : str
        The file's name.
    labels : list of Label
        The concepts.
    also : mapping of str to str
        Other identifiers, such as URIs, and the ids that they mean.
    described : str
        What was read, in words.
    """

    name: str
    labels: list[Label]
    also: Mapping[str, str] = field(default_factory=dict)
    described: str = ""


@dataclass
class Matched:
    """Which labels of the documents are concepts of a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
        The concepts.
    found : Counter of str
        Different labels of the documents that are concepts, by what they were found.
    unknown : Counter of str
        Those that are none, and how many documents have each.
    ambiguous : dict of str to list of str
        Names of several concepts that documents use, and the ids of these; the first is taken.
    """

    vocabulary: Vocabulary
    found: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    ambiguous: dict[str, list[str]] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """What was found, in words."""
        n, every = self.found.total(), self.found.total() + len(self.unknown)
        ways = (BY_ID, BY_NAME, BY_OTHER_NAME, BY_CODE)
        how = ", ".join(f"{self.found[by]:,} {by}" for by in ways if self.found[by])
        text = f"{n:,} of {every:,} labels of the documents are concepts"
        return text + (f" ({how})" if how else "")

    def warn(self) -> None:
        """Log what users should look at: labels that are no concept, names of several."""
        if self.unknown:
            n, most = len(self.unknown), self.unknown.most_common(_EXAMPLES)
            shown = ", ".join(f"{name!r} (in {count:,})" for name, count in most)
            _logger.warning(
                "%s of the documents %s no concept of %s, and %s: %s%s.",
                "1 label" if n == 1 else f"{n:,} labels",
                "is" if n == 1 else "are",
                self.vocabulary.name,
                "stays a label of its own" if n == 1 else "stay labels of their own",
                shown,
                ", ..." if n > _EXAMPLES else "",
            )
        if self.ambiguous:
            n, (name, ids) = len(self.ambiguous), next(iter(self.ambiguous.items()))
            _logger.warning(
                "%s of several concepts, of which the first was taken, such as %r of %s. Give "
                "their ids in the records to tell them apart.",
                "1 label is the name" if n == 1 else f"{n:,} labels are names",
                name,
                ", ".join(ids[:_EXAMPLES]),
            )


def read_vocabulary(path: str | Path, language: str | None = None) -> Vocabulary:
    """Read a vocabulary: SKOS, or a table of labels with the columns id and name.

    Parameters
    ----------
    path : path
        Turtle, RDF/XML, JSON-LD or N-Triples; CSV, TSV, JSON lines, Parquet or Excel. All but the
        last may be compressed.
    language : str, optional
        The language of the names where SKOS has several.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is missing"
        raise CorpusError(f"The vocabulary {path} {what}. Give a file, such as eurovoc.ttl.")
    if bare_suffix(path).lower() in SYNTAXES:
        return Vocabulary(path.name, *read_concepts(path, language))
    if format_of(path) not in ("jsonl", *TABLES):
        raise CorpusError(
            f"{path} is no vocabulary that depl reads: its name should end in .ttl (Turtle), .rdf "
            f"(RDF/XML), .jsonld (JSON-LD) or .nt (N-Triples); a table of labels in .csv, .tsv, "
            f".jsonl, .parquet or .xlsx."
        )
    if language is not None:
        raise CorpusError(f"{path} is a table, whose names are in one language: omit the language.")
    problems = Problems()
    called = _called(path)
    labels = [row.label for row in label_rows(path, problems, called)]
    if problems or not labels:
        raise CorpusError(
            f"{path} cannot be read as a table of labels:\n"
            f"{problems.listing(remedies=True) or 'it holds none.'}"
        )
    others = {field: column for field, column in called.items() if sameness(column) != field}
    said = "".join(f", {field} from {column}" for field, column in others.items())
    return Vocabulary(path.name, labels, {}, f"{count(len(labels), 'label')}{said}")


def _called(path: Path) -> dict[str, str]:
    """What a table of labels calls the fields of a label; nothing where it says id and name."""
    if format_of(path) not in TABLES:
        return {}
    source = Source(path, Problems())
    source.columns_before = ("id", "name")
    table = open_table(source)
    if not isinstance(table, Table) or {"id", "name"} <= set(map(sameness, table.header)):
        return {}
    found = find_label_columns(table.header, table.sample())
    if found is None and table.header:
        raise CorpusError(
            f"Which columns of {path.name} have the labels' ids, all different, and their names? "
            f"Call them id and name in the first row. Its columns are: {listing(table.header)}."
        )
    return found or {}


def match(contents: Contents, vocabulary: Vocabulary, *, merge: bool) -> tuple[Contents, Matched]:
    """The documents with concepts for their labels; what is no concept is a label of its own.

    Parameters
    ----------
    contents : Contents
        What was read: a label is an id, or a name where there is no file of labels.
    vocabulary : Vocabulary
        The concepts. All of them are labels, whether a document has them or not.
    merge : bool
        Whether names that differ only in white space, case or Unicode form are one.
    """
    finder = _Finder(vocabulary, contents.labels or [], merge=merge)
    documents = {
        split: [d._replace(labels=finder.concepts(d.labels)) for d in part]
        for split, part in contents.documents.items()
    }
    rows = [LabelRow(vocabulary.name, label) for label in vocabulary.labels]
    rows += [LabelRow("", finder.own.get(x, Label(x, x))) for x in sorted(finder.matched.unknown)]
    parts: dict[str, list[Document]] = documents
    return Contents(rows, {split: iter(part) for split, part in parts.items()}), finder.matched


class _Finder:
    """Finds the concept that a label means: an id is surer than a name, a name than another."""

    def __init__(self, vocabulary: Vocabulary, rows: Iterable[LabelRow], *, merge: bool) -> None:
        self._same = sameness if merge else tidy
        self.own = {row.label.id: row.label for row in rows}
        self.matched = Matched(vocabulary)
        self._ids = {self._same(other): x for other, x in vocabulary.also.items()}
        self._ids |= {self._same(x.id): x.id for x in vocabulary.labels}
        self._names: dict[str, list[str]] = {}
        self._others: dict[str, list[str]] = {}
        for label in vocabulary.labels:
            self._names.setdefault(self._same(label.name), []).append(label.id)
            for name in label.alt_names:
                self._others.setdefault(self._same(name), []).append(label.id)
        self._codes = Codes(x.id for x in vocabulary.labels)
        self._known: dict[str, str | None] = {}

    def concepts(self, labels: Iterable[str]) -> list[str]:
        """The ids of the concepts, or the labels themselves, each once."""
        found = []
        for label in dict.fromkeys(labels):
            if label not in self._known:
                self._known[label] = self._find(label)
            concept = self._known[label]
            if concept is None:
                self.matched.unknown[label] += 1
            found.append(label if concept is None else concept)
        return list(dict.fromkeys(found))

    def _find(self, label: str) -> str | None:
        """A concept by the label itself, or by what its own file calls it."""
        own = self.own.get(label)
        for name in (label,) if own is None else (label, own.name, *own.alt_names):
            same = self._same(name)
            if same in self._ids:
                self.matched.found[BY_ID] += 1
                return self._ids[same]
            for how, names in ((BY_NAME, self._names), (BY_OTHER_NAME, self._others)):
                if same in names:
                    self.matched.found[how] += 1
                    ids = list(dict.fromkeys(names[same]))
                    if len(ids) > 1:
                        self.matched.ambiguous[name] = ids
                    return ids[0]
        code = self._codes.find(label)
        if code is not None:
            self.matched.found[BY_CODE] += 1
        return code
