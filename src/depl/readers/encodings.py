"""How the bytes of a text file are to be read: its encoding, or that it is no text at all."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from depl.core.errors import ConfigError

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_IN_WORDS = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16 without a byte order mark",
    "utf-16-be": "UTF-16 without a byte order mark",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
}
_NO_TEXT = {
    rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|PAR1\x15": (
        "compressed data or Parquet where text was expected; the name of the file must say so "
        "(.gz .bz2 .xz .zst .parquet), and standard input must be unpacked"
    ),
    rb"PK\x03\x04|\xd0\xcf\x11\xe0": (
        "an Excel, Word or zip file where text was expected; the name of an Excel file must say so "
        "(.xlsx .xls .ods)"
    ),
    rb"%PDF-": "a PDF where text was expected; its name must end in .pdf",
    rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\x00|MM\x00\*": "a picture where text was expected",
}
_STRANGE = 0.05  # share of control characters above which bytes are no text
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x7f]")  # those that texts do not use
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_BROKEN = re.compile(r"[\udc80-\udcff]")  # what surrogateescape makes of a byte
_CHUNKS = 8  # of those with characters beyond ASCII, as many as are looked at


def marked(head: bytes) -> str | None:
    r"""The encoding that a byte order mark at the very start tells; None without a mark.

    Examples
    --------
    >>> marked(codecs.BOM_UTF16_LE + b"a\0"), marked(b"a")
    ('utf-16', None)
    """
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)


def found(chunks: Iterable[bytes]) -> str:
    r"""The encoding of a file without a mark, from its bytes: UTF-8 or Windows-1252.

    A file is UTF-8 unless more bytes contradict it than characters speak for it: a few broken
    bytes in a file of UTF-8 are broken bytes, not another encoding. Hardly any text in another
    encoding is UTF-8 by chance.

    Examples
    --------
    >>> found(["Käse".encode("cp1252")]), found(["Käse, Brötchen".encode() + b"\xe4"])
    ('cp1252', 'utf-8')
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    good = bad = seen = 0
    for chunk in chunks:
        if chunk.isascii():
            continue
        text = decoder.decode(chunk)
        broken = len(_BROKEN.findall(text))
        bad += broken
        good += len(_NOT_ASCII.findall(text)) - broken
        seen += 1
        if seen == _CHUNKS:
            break
    else:
        bad += len(decoder.decode(b"", final=True))
    return "cp1252" if bad > good else "utf-8"


def unmarked_utf16(raw: bytes) -> str | None:
    r"""UTF-16 without a mark: every other byte of a text in a Latin script is zero.

    Examples
    --------
    >>> unmarked_utf16(b"a\0b\0"), unmarked_utf16(b"\0a\0b"), unmarked_utf16(b"ab")
    ('utf-16-le', 'utf-16-be', None)
    """
    head = raw[:4096]
    if head[1::2].count(0) > len(head) // 4 and not head[::2].count(0):
        return "utf-16-le"
    if head[::2].count(0) > len(head) // 4 and not head[1::2].count(0):
        return "utf-16-be"
    return None


def known(encoding: str | None) -> str | None:
    """The encoding that people call so, by Python's name; None is left to be found.

    Examples
    --------
    >>> known("Latin-1"), known(None)
    ('iso8859-1', None)
    """
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding.strip()).name
        "".encode(name)  # some codecs are no encodings of text
    except (LookupError, ValueError):
        raise ConfigError(
            f"There is no encoding {encoding!r}. Usual ones are utf-8, utf-16, cp1252 (Windows), "
            f"latin-1, cp850 (DOS), mac-roman."
        ) from None
    return name


def in_words(encoding: str) -> str:
    """What people call an encoding."""
    return _IN_WORDS.get(encoding, encoding)


def no_text(head: bytes) -> str:
    """What bytes are that are no text; empty if they may be text.

    Examples
    --------
    >>> no_text(b"%PDF-1.7 ..."), no_text(b"Sparkling wine")
    ('a PDF where text was expected; its name must end in .pdf', '')
    """
    for start, what in _NO_TEXT.items():
        if re.match(start, head):
            return what
    if marked(head) or unmarked_utf16(head):
        return ""
    if len(_CONTROL.findall(head)) > _STRANGE * len(head):
        return "not a text file: much of it cannot be printed"
    if b"\x00\x00" in head:
        return "not a text file: it holds zero bytes"
    return ""
