"""MARC 21 and MARCXML records: their text and subjects, and suggestions as new subject fields."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from depl.core.errors import ConfigError, MissingExtraError
from depl.readers.columns import Columns
from depl.readers.files import DAMAGE, Source
from depl.readers.lines import reason
from depl.readers.problems import Kind

if TYPE_CHECKING:
    from pymarc import Field, Record

    from depl.core.corpus import Label

_CHUNK = 1 << 18
_ENDED = "the rest of the file is not read"
_BEGIN = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<collection xmlns="http://www.loc.gov/MARC21/slim">\n'
)
_END = b"</collection>\n"
# Where the second indicator of a subject field names its source, and $2 is not used.
_INDICATORS = {"lcsh": "0", "lcshac": "1", "mesh": "2", "nal": "3", "cash": "5", "rvm": "6"}
_BY_SUBFIELD, _NOT_SPECIFIED = "7", "4"
_ISBD = " /:;,="  # punctuation of catalogue cards at the end of a subfield
_SOURCE = re.compile(r"=([\w.-]+)")
_PLACE = re.compile(r"(\d{3})((?:\$?[a-z0-9])*)")


class Place(NamedTuple):
    """A field, and those of its subfields that are read; none: all that hold words."""

    tag: str
    codes: str

    @property
    def written(self) -> str:
        """As people write it, such as ``245$a$b``."""
        return self.tag + "".join(f"${code}" for code in self.codes)


class MarcFields(NamedTuple):
    """Which fields of a record hold text and subjects.

    Parameters
    ----------
    text : sequence of Place
        Whose contents, one after another, are the text.
    subjects : sequence of Place
        Those with a subject each: its name, and in $0 its id. New ones have the tag of the first.
    source : str or None
        The code of the vocabulary, as in $2 (or, as ``lcsh`` and ``mesh``, in the second
        indicator): subjects of others are not read, and new ones get it.

    Examples
    --------
    >>> MarcFields.asked("245$a$b,505").text
    (Place(tag='245', codes='ab'), Place(tag='505', codes=''))
    """

    text: Sequence[Place] = (Place("245", "ab"), Place("520", "a"), Place("505", ""))
    subjects: Sequence[Place] = (Place("650", "a"), Place("651", "a"), Place("653", "a"))
    source: str | None = None

    @classmethod
    def asked(cls, text: str | None = None, subjects: str | None = None) -> MarcFields:
        """From what people write, such as ``245$a$b,520a`` and ``650``.

        Subjects may name their source: ``650=gnd``.
        """
        usual = cls()
        sources = set(_SOURCE.findall(subjects or ""))
        if len(sources) > 1:
            raise ConfigError(f"Subjects of one source are read at a time; got {subjects!r}.")
        subjects = _SOURCE.sub("", subjects or "")
        return cls(
            _places(text, "--text") if text else usual.text,
            tuple(Place(tag, codes or "a") for tag, codes in _places(subjects, "--labels"))
            if subjects
            else usual.subjects,
            next(iter(sources), None),
        )

    @classmethod
    def chosen(cls, asked: Columns, kept: Columns | None = None) -> MarcFields:
        """The fields asked for in place of columns; or those of the run; or the usual ones.

        Columns that a run took from a table say nothing of records.
        """
        if kept is None or not all(map(_PLACE.fullmatch, kept.text)):
            kept = Columns()
        text, subjects = asked.text or kept.text, asked.labels or kept.labels
        return cls.asked(",".join(text), ",".join(subjects))

    def text_of(self, record: Record) -> str:
        """The text of a record, a line a field."""
        lines = (
            " ".join(_words(field, place.codes))
            for place in self.text
            for field in record.get_fields(place.tag)
        )
        return "\n".join(filter(None, lines))

    def subjects_of(self, record: Record) -> list[tuple[str, str]]:
        """Name and id of the record's subjects; the id is empty where it has none."""
        found: dict[str, str] = {}
        for place in self.subjects:
            for field in record.get_fields(place.tag):
                name = " ".join(_words(field, place.codes)).removesuffix(".")
                if name and self.source in (None, _source(field)):
                    found.setdefault(name, next(iter(field.get_subfields("0")), ""))
        return list(found.items())

    def codes_of(self, record: Record) -> set[str]:
        """The codes of the vocabularies of the record's subjects; empty where one has none."""
        return {_source(x) for place in self.subjects for x in record.get_fields(place.tag)}

    def add(self, record: Record, labels: Sequence[Label]) -> None:
        """Add a subject field to the record for each label that it does not have yet."""
        from pymarc import Field, Indicators, Subfield

        fields = [x for place in self.subjects for x in record.get_fields(place.tag)]
        ids = {x for field in fields for x in field.get_subfields("0")}
        names = {" ".join(_words(x, "a")).removesuffix(".").casefold() for x in fields}
        for label in labels:
            if label.id in ids or label.name.casefold() in names:
                continue
            subfields = [Subfield("a", label.name)]
            if label.id != label.name:
                subfields.append(Subfield("0", label.id))
            known = _INDICATORS.get(self.source or "")
            if self.source and known is None:
                subfields.append(Subfield("2", self.source))
            second = known or (_BY_SUBFIELD if self.source else _NOT_SPECIFIED)
            tag = self.subjects[0].tag
            record.add_ordered_field(Field(tag, Indicators(" ", second), subfields))


def _places(asked: str, option: str) -> tuple[Place, ...]:
    found = [_PLACE.fullmatch(part.strip()) for part in asked.split(",")]
    if not all(found):
        raise ConfigError(
            f"{option} takes MARC fields where there are MARC records, with or without subfields, "
            f"separated by commas, such as 245$a$b,520$a; got {asked!r}."
        )
    return tuple(Place(x[1], x[2].replace("$", "")) for x in found if x)


def _words(field: Field, codes: str) -> Iterator[str]:
    """The contents of these subfields; of all that have letters, but no control subfield."""
    if field.is_control_field():
        yield (field.data or "").strip()
        return
    for subfield in field.subfields:
        if subfield.code in codes if codes else subfield.code.isalpha() and subfield.code != "u":
            words = " ".join(subfield.value.split()).rstrip(_ISBD)
            if words:
                yield words


def _source(field: Field) -> str:
    named = {second: code for code, second in _INDICATORS.items()}
    return next(iter(field.get_subfields("2")), "") or named.get(field.indicator2, "")


def marc_records(source: Source) -> Iterator[tuple[int, Record]]:
    """Number and record of a file, one by one; a record that cannot be read is a problem."""
    try:
        from pymarc import Record
    except ModuleNotFoundError:
        raise MissingExtraError("pymarc", "marc", f"Reading {source.name}") from None

    number = n_found = 0
    try:
        with source.open() as stream:
            xml = stream.peek(64)[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
            for number, found in enumerate(_xml(stream) if xml else _binary(stream), 1):
                if isinstance(found, Record):
                    n_found += 1
                    yield number, found
                elif found.endswith(_ENDED) and not n_found:
                    source.report(Kind.UNREADABLE, number, f"not a MARC record: {found}")
                else:
                    source.report(Kind.NO_RECORD, number, f"not a MARC record: {found}")
    except DAMAGE as error:
        source.report(Kind.UNREADABLE, number + 1, reason(error))


def _binary(stream: BinaryIO) -> Iterator[Record | str]:
    from pymarc import MARCReader
    from pymarc.exceptions import FatalReaderError

    logging.getLogger("pymarc").setLevel(logging.CRITICAL)  # it tells what we tell with the place
    reader = MARCReader(stream, to_unicode=True, utf8_handling="replace", hide_utf8_warnings=True)
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the characters that MARC-8 does not have
            try:
                record = next(reader)
            except StopIteration:
                return
            except Exception as error:  # such as for a length below zero
                yield f"{reason(error)}; {_ENDED}"
                return
        if record is not None:
            yield record
        else:
            ended = isinstance(reader.current_exception, FatalReaderError)
            yield str(reader.current_exception) + (f"; {_ENDED}" if ended else "")


def _xml(stream: BinaryIO) -> Iterator[Record | str]:
    from xml.sax import SAXParseException, make_parser
    from xml.sax.handler import feature_namespaces

    from pymarc import XmlHandler

    handler, parser = XmlHandler(), make_parser()  # type: ignore[no-untyped-call]
    parser.setContentHandler(handler)
    parser.setFeature(feature_namespaces, True)
    try:
        while chunk := stream.read(_CHUNK):
            parser.feed(chunk)  # type: ignore[attr-defined]
            yield from handler.records
            handler.records.clear()
        parser.close()  # type: ignore[attr-defined]
    except SAXParseException as error:
        yield from handler.records
        yield f"broken XML in line {error.getLineNumber()}: {error.getMessage()}; {_ENDED}"
    except DAMAGE:
        raise
    except Exception as error:  # pymarc takes for granted what MARCXML should have
        yield from handler.records
        yield f"{type(error).__name__}, {reason(error)}; {_ENDED}"


class MarcFile:
    """The bytes of a file of records with suggestions.

    Parameters
    ----------
    fields : MarcFields
        Which fields get the suggestions.
    xml : bool
        Whether the file is MARCXML.
    """

    def __init__(self, fields: MarcFields, *, xml: bool) -> None:
        self._fields = fields
        self._xml = xml
        self.ending = _END if xml else b""

    def records(self, found: Sequence[tuple[object, Sequence[Label]]], *, first: bool) -> bytes:
        """Records, each with its new labels; the first ones have what is before all records."""
        from pymarc import Record, record_to_xml

        made = [_BEGIN] if first and self._xml else []
        for record, labels in found:
            if not isinstance(record, Record):
                raise ConfigError(
                    "MARC records are written for MARC records only: give a .mrc or MARCXML file "
                    "to label, or another suffix to --output."
                )
            self._fields.add(record, labels)
            record.leader.coding_scheme = "a"  # what was read is Unicode, whatever it was before
            made.append(record_to_xml(record) + b"\n" if self._xml else record.as_marc())  # type: ignore[no-untyped-call]
        return b"".join(made)
