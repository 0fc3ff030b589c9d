"""The text of PDF, Word and HTML files, by the libraries that ``depl[documents]`` installs.

Files come from anybody, and some of these libraries are written in C: ``extraction`` calls this in
a process of its own.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from depl.readers.limits import LARGEST_DOCUMENT
from depl.readers.plain_text import NoDocumentError, decode

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import _Cell

# A hyphen at the end of a line; PDFium puts a mark of its own in place of it and the line's end.
_DIVIDED = re.compile(r"(\w)(?:[\x02\ufffe]\s*|[-\u00ad\u2010]\s*\n\s*)(\w)")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
# What is on a page beside its own text.
_UNREAD = """
    //*[self::script or self::style or self::noscript or self::template or self::svg
        or self::iframe or self::object or self::button or self::select
        or self::nav or self::aside or @role='navigation' or @role='search'
        or @aria-hidden='true' or @hidden]
    | //*[(self::header or self::footer or @role='banner' or @role='contentinfo')
          and not(ancestor::main or ancestor::article or ancestor::*[@role='main'])]
"""
_MAIN = "//main | //*[@role='main']"


class Extracted(NamedTuple):
    """The text of a file, and the title that it gives itself (or nothing)."""

    text: str
    title: str = ""


def extract_pdf(raw: bytes) -> Extracted:
    """The text of a PDF, page by page; words divided at the end of a line are joined."""
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(raw) as file:
            n_pages = len(file)
            pages = [_pdf_page(page) for page in file]
            title = file.get_metadata_value("Title")
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            why = "an encrypted PDF; save a copy without its password"
        else:
            why = "a damaged PDF; copy it again"
        raise NoDocumentError(why) from None
    text = _DIVIDED.sub(_joined, "\n\n".join(pages)).strip()
    if not text:
        of = "a page" if n_pages == 1 else f"{n_pages:,} pages"
        raise NoDocumentError(
            f"a PDF of {of} without text, probably a scan; recognise its text first, for example "
            f"with ocrmypdf"
        )
    return Extracted(text, _tidy(title))


def _pdf_page(page: Any) -> str:  # noqa: ANN401 - pypdfium2 has no types
    try:
        textpage = page.get_textpage()
        try:
            text: str = textpage.get_text_bounded()
        finally:
            textpage.close()
    finally:
        page.close()
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").strip()


def _joined(found: re.Match[str]) -> str:
    """A word that was divided, whole; what is not lower case (EU-wide, 2019-2020) has a hyphen."""
    before, after = found.groups()
    return before + after if before.islower() and after.islower() else f"{before}-{after}"


def extract_word(raw: bytes) -> Extracted:
    """The text of a Word file: paragraphs and tables in their order, a row of a table a line."""
    import docx

    _check_word(raw)
    try:
        document = docx.Document(BytesIO(raw))
        text = "\n".join(_blocks(document)).strip()
        title = document.core_properties.title
    except Exception as error:  # lxml, zipfile and python-docx each have errors of their own
        raise NoDocumentError(
            f"a damaged Word file ({type(error).__name__}); save it again"
        ) from None
    if not text:
        raise NoDocumentError("a Word file without text; its pictures are not read")
    return Extracted(text, _tidy(title))


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


def _blocks(container: Document | _Cell) -> Iterator[str]:
    from docx.text.paragraph import Paragraph

    for block in container.iter_inner_content():
        if isinstance(block, Paragraph):
            yield block.text
            continue
        for row in block.rows:
            # A merged cell is given once for each column that it spans.
            cells = {id(cell._tc): " ".join(filter(None, _blocks(cell))) for cell in row.cells}
            yield "\t".join(cells.values())


def extract_html(raw: bytes) -> Extracted:
    """The text of a web page as a browser lays it out, without scripts and navigation."""
    import lxml.html
    from inscriptis import Inscriptis

    declared = _CHARSET.search(raw[:4096])
    markup = decode(raw, declared[1].decode("ascii", "replace") if declared else None)
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        page = lxml.html.document_fromstring(markup.encode("utf-8"), parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        raise NoDocumentError("an HTML file without text") from None
    title = page.findtext(".//title")
    for element in page.xpath(_UNREAD):
        element.drop_tree()
    for part in (*page.xpath(_MAIN)[:1], page):
        lines = Inscriptis(part).get_text().split("\n")
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip() for line in lines)).strip()
        if text:
            return Extracted(text, _tidy(title))
    raise NoDocumentError("an HTML file without text; pages made by a script must be saved as PDF")


def extracted(raw: bytes, kind: str) -> dict[str, str]:
    """The text and title of a file of some kind, or why there is none."""
    try:
        return EXTRACTORS[kind](raw)._asdict()
    except NoDocumentError as error:
        return {"refused": str(error)}


EXTRACTORS = {"PDF": extract_pdf, "Word": extract_word, "HTML": extract_html}


def _tidy(title: str | None) -> str:
    return " ".join((title or "").split())
