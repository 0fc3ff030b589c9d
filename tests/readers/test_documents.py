"""Files as documents: PDF, Word, HTML and plain text made by other libraries, and what is none."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path

import pytest

docx = pytest.importorskip("docx", reason="documents need depl[documents]")
pypdf = pytest.importorskip("pypdf", reason="the tests write PDF files with pypdf and reportlab")
pytest.importorskip("reportlab")
pytest.importorskip("pypdfium2")
pytest.importorskip("inscriptis")

from reportlab.lib.styles import getSampleStyleSheet  # noqa: E402
from reportlab.pdfgen.canvas import Canvas  # noqa: E402
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate  # noqa: E402

from depl.core import apart  # noqa: E402
from depl.core.errors import CorpusError, MissingExtraError  # noqa: E402
from depl.readers.documents import Document, Documents, only_document  # noqa: E402
from depl.readers.extraction import extract  # noqa: E402
from depl.readers.extractors import extract_word  # noqa: E402
from depl.readers.plain_text import NoDocumentError  # noqa: E402

GERMAN = "Verordnung über Käse – „Öl“ & Wein, 5 €"
PAGE = """<!doctype html>
<html><head><title>Wine &amp; more</title><style>p {color: red}</style></head><body>
<header>Name of the site</header>
<nav><ul><li>Home</li><li>Contact</li></ul></nav>
<main><header><h1>Spark<b>ling</b> wine</h1></header>
<p>Rules on <i>white</i>
grapes.<br>A second line &mdash; from K&auml;the</p>
<script>var tracked = "script";</script>
<table><tr><td>red</td><td>white</td></tr></table>
<aside>Subscribe to the newsletter</aside></main>
<footer>Imprint</footer></body></html>"""


def pdf(*pages: str, title: str = "") -> bytes:
    made = io.BytesIO()
    style = getSampleStyleSheet()["Normal"]
    story = [part for text in pages for part in (Paragraph(text, style), PageBreak())]
    SimpleDocTemplate(made, title=title).build(story)
    return made.getvalue()


def encrypted(raw: bytes) -> bytes:
    writer = pypdf.PdfWriter(io.BytesIO(raw))
    writer.encrypt("secret", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def scan() -> bytes:
    made = io.BytesIO()
    canvas = Canvas(made)
    for _ in range(2):
        canvas.rect(10, 10, 200, 200, fill=1)
        canvas.showPage()
    canvas.save()
    return made.getvalue()


def word() -> bytes:
    document = docx.Document()
    document.core_properties.title = "A letter\nabout wine"
    document.add_heading("Sparkling wine", 1)
    document.add_paragraph("Before the table.")
    table = document.add_table(rows=2, cols=3)
    for i, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = f"cell {i}"
    table.cell(1, 0).merge(table.cell(1, 1))
    document.add_paragraph("After the table.")
    return saved(document)


def saved(document) -> bytes:
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


def read(*names: object, **options) -> tuple[list[Document], dict[str, str]]:
    """The documents without their places, and what was left out by the file's name."""
    left_out: dict[str, str] = {}

    def note(place: str, why: str) -> None:
        left_out[Path(place).name] = why

    found = Documents([str(name) for name in names], left_out=note, **options)
    return [Document(d.id, d.text) for d in found], left_out


# Each kind of file


def test_the_text_of_a_pdf_page_by_page():
    text, title = extract(pdf("Sparkling wine & grapes", "Virgin olive oil äöü", title="On wine"))
    assert text.split("\n\n") == ["Sparkling wine & grapes", "Virgin olive oil äöü"]
    assert title == "On wine"


def test_words_of_a_pdf_that_are_divided_at_the_end_of_a_line_are_joined():
    made = io.BytesIO()
    canvas = Canvas(made)
    lines = ("the distil-", "lation of table wine, EU-", "Wide and 2019-", "2020")
    for i, line in enumerate(lines):
        canvas.drawString(50, 700 - 20 * i, line)
    canvas.save()
    assert extract(made.getvalue()).text == "the distillation of table wine, EU-Wide and 2019-2020"


def test_the_text_of_a_word_file_has_its_tables_in_their_places():
    text, title = extract(word())
    assert text.split("\n") == [
        "Sparkling wine",
        "Before the table.",
        "cell 0\tcell 1\tcell 2",
        "cell 3 cell 4\tcell 5",
        "After the table.",
    ]
    assert title == "A letter about wine"


def test_the_text_of_a_page_is_without_scripts_and_navigation():
    text, title = extract(PAGE.encode())
    assert text.split("\n") == [
        *("Sparkling wine", ""),
        *("Rules on white grapes.", "A second line — from Käthe", ""),
        "red  white",
    ]
    assert title == "Wine & more"


def test_a_page_without_a_main_part_and_a_fragment_are_read_whole():
    page = "<html><header>Site</header><p>wine</p><div>olive<div>oil</div></div></html>"
    assert extract(page.encode()).text == "wine\n\nolive\noil"
    assert extract(b"<p>sparkling</p><p>wine</p>", html=True).text == "sparkling\n\nwine"
    assert extract(b"<p>no page by its name</p>").text == "<p>no page by its name</p>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_plain_text_is_read_in_every_usual_encoding(encoding):
    assert extract(f"{GERMAN}\r\nzweite".encode(encoding)).text == f"{GERMAN}\nzweite"
    assert extract("ASCII alone".encode(encoding)).text == "ASCII alone"


def test_a_page_says_its_encoding_itself():
    page = '<html><head><meta http-equiv="Content-Type" content="text/html; charset={}"></head>{}'
    for encoding in ("iso-8859-2", "koi8-r", "no-such-encoding"):
        text = "žluťoučký" if encoding == "iso-8859-2" else "вино" if encoding[0] == "k" else "Käse"
        raw = page.format(encoding, text).encode("cp1252" if encoding[0] == "n" else encoding)
        assert extract(raw).text == text


# What is no document


def archive(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, text in files.items():
            file.writestr(name.replace("__", "/"), text)
    return made.getvalue()


REFUSED = {
    "empty.txt": (b" \n", "empty"),
    "encrypted.pdf": (encrypted(pdf("wine")), "an encrypted PDF; save a copy without its password"),
    "scan.pdf": (scan(), r"a PDF of 2 pages without text, probably a scan; .*ocrmypdf"),
    "cut.pdf": (pdf("wine")[:300], "a damaged PDF"),
    "photo.jpg": (
        b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
        "a picture; recognise its text first",
    ),
    "old.doc": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        r"save it as \.docx without a pass",
    ),
    "cut.docx": (word()[:2000], "a damaged Word or zip file"),
    "broken.docx": (archive(word__document="x", **{"word/document.xml": "<w"}), "a damaged Word"),
    "blank.docx": (saved(docx.Document()), "a Word file without text"),
    "slides.pptx": (archive(ppt__presentation="x"), "a presentation; save it as PDF"),
    "zip.zip": (archive(any="x"), "a zip file; unpack it"),
    "program": (bytes(range(256)) * 20, "not a text, and of no kind that depl reads"),
    "script.html": (b"<html><script>wine()</script></html>", "an HTML file without text"),
}


@pytest.mark.parametrize(("raw", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_document_is_refused_in_a_sentence(raw, why):
    with pytest.raises(NoDocumentError, match=why) as caught:
        extract(raw)
    assert "\n" not in str(caught.value)


def test_a_file_that_unpacks_to_more_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("depl.readers.extractors.LARGEST_DOCUMENT", 1 << 10)
    with pytest.raises(NoDocumentError, match="when unpacked"):
        extract_word(word())


def test_a_page_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(apart, "SECONDS", 0)
    rows = b"<tr><td rowspan=100000>a</td></tr>" * 200_000
    with pytest.raises(NoDocumentError, match="it takes more than 0 seconds of computing"):
        extract(b"<html><table>" + rows)
    assert extract(PAGE.encode()).text


def test_a_text_that_begins_with_many_comments_is_read_at_once():
    many = b"<!-- a -->" * 400
    assert extract(many + b"wine").text.endswith("wine")
    assert extract(many + b"<html><p>wine</p></html>").text == "wine"


@pytest.mark.parametrize(
    ("module", "raw"),
    [("pypdfium2", pdf("wine")), ("docx", word()), ("inscriptis", PAGE.encode())],
)
def test_without_the_extra_the_message_says_what_to_install(monkeypatch, module, raw):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'depl\[documents\]'"):
        extract(raw)


# Files and folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    (made / "sub").mkdir(parents=True)
    (made / ".git").mkdir()
    for name, (raw, _) in REFUSED.items():
        (made / name).write_bytes(raw)
    (made / "b.txt").write_bytes("Käse\nand wine".encode("cp1252"))
    (made / "a.html").write_text(PAGE)
    (made / "sub" / "letter.docx").write_bytes(word())
    (made / "sub" / "report.pdf").write_bytes(pdf("olive oil"))
    (made / "sub" / "notes.md.gz").write_bytes(gzip.compress(b"# Notes"))
    (made / "rows.csv").write_text("id,text\n1,wine\n")
    for hidden in (".hidden.txt", ".git/config"):
        (made / hidden).write_text("not read")
    return made


def test_a_folder_stands_for_the_documents_in_it(folder: Path):
    documents, left_out = read(folder)
    names = ["a.html", "b.txt", "sub/letter.docx", "sub/notes.md.gz", "sub/report.pdf"]
    assert [d.id for d in documents] == [f"{folder}/{name}" for name in names]
    assert documents[1].text == "Käse\nand wine"
    assert documents[4].text == "olive oil"
    assert left_out.keys() == {*REFUSED, "rows.csv"}
    assert "name it by itself to read its rows" in left_out["rows.csv"]
    again, _ = read(*(folder / name for name in names))
    assert again == documents


def test_rows_and_documents_may_be_given_together(folder: Path):
    documents, left_out = read(folder / "b.txt", folder / "rows.csv", folder / "photo.jpg")
    assert [d.text for d in documents] == ["Käse\nand wine", "wine"]
    assert left_out.keys() == {"photo.jpg"}


def test_an_empty_folder_is_an_error(tmp_path: Path):
    (tmp_path / ".hidden").write_text("x")
    with pytest.raises(CorpusError, match="holds no file"):
        read(tmp_path)


def test_one_document_is_what_a_file_of_text_is(folder: Path, monkeypatch):
    assert only_document(str(folder / "b.txt")).text == "Käse\nand wine"
    assert only_document(str(folder / "rows.csv")).text == "wine"
    (folder / "rows.csv").write_text("id,text\n1,wine\n2,oil\n")
    with pytest.raises(CorpusError, match="several documents"):
        only_document(str(folder / "rows.csv"))
    with pytest.raises(CorpusError, match=r"There is no text in .*scan.pdf: a PDF of 2 pages"):
        only_document(str(folder / "scan.pdf"))
