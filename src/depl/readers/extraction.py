"""The text of one file: PDF, Word, HTML or plain text in any usual encoding.

What a file is, is decided by its first bytes; its name only tells HTML and tables from plain text.
A file without a usable text is refused in one sentence that says what it is and what to do.
"""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

from depl.readers.extractors import Extracted, extract_html, extract_pdf, extract_word
from depl.readers.limits import LARGEST_DOCUMENT
from depl.readers.plain_text import NoDocumentError, decode

_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.I | re.S
)
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
        raise NoDocumentError("the file is empty; fill it, or remove it")
    for start, what in _REFUSED.items():
        if re.match(start, raw, re.S):
            raise NoDocumentError(what)
    # Some programs write a few bytes before the PDF's own beginning; readers allow 1024.
    if b"%PDF-" in raw[:1024]:
        return extract_pdf(raw)
    if raw.startswith(b"PK\x03\x04"):
        _check_word(raw)
        return extract_word(raw)
    if html or _HTML.match(raw[:4096].removeprefix(b"\xef\xbb\xbf")):
        return extract_html(raw)
    return Extracted(decode(raw, encoding))


def _check_word(raw: bytes) -> None:
    """Refuse a zip file that is no Word file, or that unpacks to more than the memory."""
    try:
        with zipfile.ZipFile(BytesIO(raw)) as archive:
            names, size = archive.namelist(), sum(x.file_size for x in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):
        raise NoDocumentError("a damaged Word or zip file; copy it again") from None
    if "word/document.xml" not in names:
        kinds = {"ppt/": "a presentation; save it as PDF", "xl/": "a spreadsheet, not a document"}
        found = (what for start, what in kinds.items() if any(x.startswith(start) for x in names))
        raise NoDocumentError(next(found, "a zip file; unpack it"))
    if size > LARGEST_DOCUMENT:
        raise NoDocumentError(
            f"a Word file of {size >> 20:,} MB when unpacked, more than the "
            f"{LARGEST_DOCUMENT >> 20} MB that depl reads; save its text alone"
        )
