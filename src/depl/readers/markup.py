"""The words of a cell that holds HTML, as descriptions from shops and web sites do."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

_BLOCKS = (
    "p|br|div|li|ul|ol|dl|dt|dd|h[1-6]|table|thead|tbody|tr|td|th|hr|section|article|blockquote"
)
_INLINE = "a|b|i|u|s|em|strong|span|small|big|sub|sup|font|center|img|code|pre|abbr|cite|label"
_UNREAD = ("script", "style")
# Only what is surely HTML: "<" may also compare numbers, or stand around an address.
_TAG = re.compile(rf"</?(?:{_BLOCKS}|{_INLINE}|script|style)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_BLOCK = re.compile(_BLOCKS)
_ENTITY = re.compile(
    r"&(?:amp|nbsp|quot|lt|gt|apos|[aoueAOU](?:uml|acute|grave|circ)|szlig|#\d+|#x[0-9a-fA-F]+);"
)


def without_markup(text: str) -> str:
    r"""The text without HTML tags and entities; a text without any stays as it is.

    Examples
    --------
    >>> without_markup("<p><b>Knife</b> &amp; fork</p><p>steel</p>")
    'Knife & fork\nsteel'
    >>> without_markup("5 < 6 and <me@example.org>"), without_markup("AT&amp;T")
    ('5 < 6 and <me@example.org>', 'AT&T')
    """
    if "<" in text and _TAG.search(text):
        words = _Words()
        words.feed(text)
        words.close()
        lines = (" ".join(line.split()) for line in "".join(words.found).split("\n"))
        return "\n".join(filter(None, lines))
    return html.unescape(text) if "&" in text and _ENTITY.search(text) else text


class _Words(HTMLParser):
    """Collects what is between tags; a block begins a line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unread += tag in _UNREAD
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in _UNREAD and self._unread > 0
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.found.append(data)

    def _break(self, tag: str) -> None:
        if _BLOCK.fullmatch(tag):
            self.found.append("\n")
