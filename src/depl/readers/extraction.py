"""The text of one file: PDF, Word, HTML or plain text in any usual encoding.

What a file is, is decided by its first bytes; its name only tells HTML and tables from plain text.
A file without a usable text is refused in one sentence that says what it is and what to do.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from depl.core.apart import EndedError, call_apart
from depl.core.errors import MissingExtraError
from depl.readers.extractors import Extracted, extracted
from depl.readers.plain_text import NoDocumentError, decode

_HTML = re.compile(
    # Each comment in one way only: else many of them are tried in all combinations.
    rb"\s*+(?:<\?xml[^>]*>\s*+)?(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s+html|html)\b",
    re.I | re.S,
)
_LIBRARIES = {  # and what they are needed for
    "PDF": ("pypdfium2", "Reading a PDF"),
    "Word": ("docx", "Reading a Word file"),
    "HTML": ("inscriptis", "Reading HTML"),
}
_REFUSED = {
    rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\0|MM\0\*|BM.{12}\x28\0\0\0|RIFF.{4}WEBP": (
        "a picture; recognise its text first (OCR)"
    ),
    rb"\xd0\xcf\x11\xe0": (
        "an old Office file (.doc), or one with a password; save it as .docx without a password"
    ),
    rb"\{\\rtf": "an RTF file; save it as .docx or PDF",
    rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis": (
        "an OpenDocument file; save it as .docx or PDF"
    ),
    rb"PK\x03\x04.{26}mimetypeapplication/epub": "an e-book (EPUB); save it as .docx, HTML or PDF",
    rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd": (
        "compressed data; its name must end in .gz, .bz2, .xz or .zst"
    ),
    rb"PAR1": "a Parquet file; its name must end in .parquet",
}


def extract(raw: bytes, *, html: bool = False, encoding: str | None = None) -> Extracted:
    r"""The text of a file.

    Parameters
    ----------
    raw : bytes
        The whole file.
    html : bool
        Whether its name says that it is HTML; a page that begins like one is HTML anyway.
    encoding : str, optional
        That of plain text, where it is known.

    Raises
    ------
    NoDocumentError
        The file holds no text that can be used.
    MissingExtraError
        The library for this kind of file is not installed.

    Examples
    --------
    >>> extract("Käse".encode("cp1252")).text
    'Käse'
    >>> extract(b"\x89PNG...")
    Traceback (most recent call last):
    depl.readers.plain_text.NoDocumentError: a picture; recognise its text first (OCR)
    """
    if not raw.strip():
        raise NoDocumentError("it is empty")
    for start, what in _REFUSED.items():
        if re.match(start, raw, re.S):
            raise NoDocumentError(what)
    # Some programs write a few bytes before the PDF's own beginning; readers allow 1024.
    if b"%PDF-" in raw[:1024]:
        return _read_apart(raw, "PDF")
    if raw.startswith(b"PK\x03\x04"):
        return _read_apart(raw, "Word")
    if html or _HTML.match(raw[:4096].removeprefix(b"\xef\xbb\xbf")):
        return _read_apart(raw, "HTML")
    return Extracted(decode(raw, encoding))


def _read_apart(raw: bytes, kind: str) -> Extracted:
    library, purpose = _LIBRARIES[kind]
    if find_spec(library) is None:
        raise MissingExtraError(library, "documents", purpose)
    try:
        found = call_apart(extracted, kind, raw=raw)
    except EndedError as error:
        raise NoDocumentError(f"a file that cannot be read: {error}; save it again") from None
    if "refused" in found:
        raise NoDocumentError(found["refused"])
    return Extracted(**found)
