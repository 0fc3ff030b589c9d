"""The text of a plain text file, whatever its encoding."""

from __future__ import annotations

import re

from depl.core.errors import CorpusError
from depl.readers.encodings import marked, unmarked_utf16

_STRANGE = 0.1  # of the characters; a text has hardly any control characters
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")


class NoDocumentError(CorpusError):
    """A file has no text that can be used; the message says what it is and what to do."""


def decode(raw: bytes, declared: str | None = None) -> str:
    """The bytes of a text file as text, with line feeds alone between lines.

    A byte order mark says what the encoding is, or the file itself does (``declared``); without
    either it is UTF-16 if every other byte is zero, UTF-8 if it can be, and else Windows-1252.
    """
    text = None
    for encoding in filter(None, (marked(raw), declared, unmarked_utf16(raw), "utf-8")):
        try:
            text = raw.decode(encoding)
            break
        except (UnicodeDecodeError, LookupError):
            continue
    if text is None:
        text = raw.decode("cp1252", "replace")
    if len(_CONTROL.findall(text)) > _STRANGE * len(text) or "\x00" in text:
        raise NoDocumentError("not a text, and of no kind that depl reads; save it as PDF or text")
    return text.replace("\r\n", "\n").replace("\r", "\n")
