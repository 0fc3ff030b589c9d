"""Files as people have them: catalogue records in every shape, vocabularies, documents."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import itertools
import json
import lzma
import random
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

HEADER = ("PPN", "Titel", "Abstract", "Schlagwörter")
SEPARATORS = {";": "semicolons", ",": "commas", "\t": "tabs", "|": "vertical bars"}
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16 without a byte order mark",
    "cp1252": "Windows-1252",
}
TOPICS = {
    "Wein": "Trauben Winzer Keller Flasche Rebe Weinberg Lese Fass Most Jahrgang",
    "Olivenöl": "Olive Presse Fett Frucht Ölmühle Hain Ernte Kreta Säure Flasche",
    "Zoll": "Grenze Einfuhr Abgabe Tarif Ware Behörde Kontingent Ausfuhr Schmuggel Gebühr",
    "Fischerei": "Netz Kutter Meer Fang Hering Quote Hafen Boot Kabeljau Küste",
    "Käse": "Milch Kuh Rind Reife Molkerei Butter Rahm Lab Weide Bergkäse",
    "Straßenverkehr": "Ampel Auto Kreuzung Unfall Führerschein Tempo Stau Radweg Bus Parkplatz",
}
GRAMMAR = ("der", "die", "das", "und", "mit", "von", "gegen", "in", "über", "für")


class Record(NamedTuple):
    """A row of a catalogue."""

    id: str
    title: str
    abstract: str
    labels: tuple[str, ...]


def records(n: int = 240) -> list[Record]:
    """German records: labels in several spellings, line breaks and quotes, some without labels."""
    dice = random.Random(5)
    made = []
    for i in range(n):
        topics = dice.sample(list(TOPICS), dice.choice([1, 1, 2]))
        words = [word for topic in topics for word in dice.sample(TOPICS[topic].split(), 5)]
        prose = " ".join(f"{dice.choice(GRAMMAR)} {word}" for word in words)
        labels = [[x, f" {x}  ", x.upper()][dice.choice([0, 0, 0, 1, 2])] for x in topics]
        title = " ".join(words[:2]).upper() if i % 11 == 0 else " ".join(words[:2])
        text = f'{prose}; er sagte: "Nr. {i}",\nund mehr.'
        made.append(Record(f"P{i:04}", title, text, () if i % 80 == 7 else tuple(labels)))
    return made


def of_corpus(folder: Path, n: int) -> list[Record]:
    """The first training documents of a corpus folder as records, with names for labels."""
    with (folder / "labels.jsonl").open(encoding="utf-8") as file:
        names = {x["id"]: x["name"] for x in map(json.loads, file)}
    with lzma.open(folder / "train.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in itertools.islice(file, n)]
    made = []
    for row in rows:
        title, _, rest = row["text"].partition("\n" if "\n" in row["text"][:300] else ". ")
        # A name with a semicolon cannot be in a cell that semicolons separate.
        labels = tuple(names[x].replace(";", ",") for x in row["labels"])
        made.append(Record(row["id"], title, rest, labels))
    return made


def table(rows: Iterable[Record], delimiter: str = ";", encoding: str = "utf-8-sig") -> bytes:
    """Delimited text as spreadsheets write it, with a blank row now and then."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(HEADER)
    for i, row in enumerate(rows):
        writer.writerow([*row[:3], ";".join(row.labels)])
        if i % 50 == 0:
            writer.writerow([""] * len(HEADER))
            stream.write("\r\n")
    return stream.getvalue().encode(encoding, "replace")


def tables(folder: Path, rows: Sequence[Record]) -> dict[Path, str]:
    """The records in every kind of file, and what depl should call each of them."""
    made: dict[str, tuple[bytes, str]] = {}
    for (mark, words), (encoding, called) in itertools.product(
        SEPARATORS.items(), ENCODINGS.items()
    ):
        suffix = "tsv" if mark == "\t" else "csv"
        name = f"{words.replace(' ', '-')}-{encoding}.{suffix}"
        made[name] = table(rows, mark, encoding), f"separated by {words}, {called}"
    plain = [{**dict(zip(HEADER, row, strict=True)), HEADER[3]: list(row.labels)} for row in rows]
    lines = "".join(json.dumps(x) + "\n" for x in plain).encode()
    made["list.json"] = json.dumps(plain, ensure_ascii=False).encode(), "JSON"
    made["lines.jsonl"] = lines, "JSON lines"
    made["lines.jsonl.gz"] = gzip.compress(lines), "JSON lines"
    made["packed.csv.xz"] = lzma.compress(table(rows)), "separated by semicolons"
    for separator in ("|", "\n", ", "):
        cells = [row._replace(labels=(separator.join(row.labels),)) for row in rows]
        made[f"labels-{ord(separator[0])}.csv"] = table(cells), "separated by semicolons"
    paths = {}
    for name, (raw, said) in made.items():
        (folder / name).write_bytes(raw)
        paths[folder / name] = said
    return paths | _with_libraries(folder, plain)


def _with_libraries(folder: Path, plain: list[dict[str, object]]) -> dict[Path, str]:
    """The same as Parquet and Excel."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import xlsxwriter

    pq.write_table(pa.Table.from_pylist(plain), folder / "records.parquet")
    with xlsxwriter.Workbook(folder / "records.xlsx") as book:
        book.add_worksheet("empty")
        sheet = book.add_worksheet("Katalog")
        sheet.write_row(0, 0, HEADER)
        for i, row in enumerate(plain):
            cells = [*list(row.values())[:3], "; ".join(row[HEADER[3]])]  # type: ignore[arg-type]
            sheet.write_row(i + 1 + i // 50, 0, cells)  # with blank rows
    return {folder / "records.parquet": "Parquet", folder / "records.xlsx": "sheet 'Katalog'"}


SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix x: <http://example.org/> .
x:food a skos:Concept ; skos:prefLabel "Lebensmittel"@de , "food"@en ; skos:notation "1" .
x:wine a skos:Concept ; skos:prefLabel "Wein"@de , "wine"@en ; skos:altLabel "Rebensaft"@de ;
  skos:notation "2" ; skos:broader x:food ; skos:scopeNote "Nur aus Trauben."@de .
x:oil a skos:Concept ; skos:prefLabel "Olivenöl"@de , "olive oil"@en ; skos:notation "3" .
x:cheese a skos:Concept ; skos:prefLabel "Käse"@de , "cheese"@en ; skos:notation "4" .
x:food skos:narrower x:oil , x:cheese .
x:fish a skos:Concept ; skos:prefLabel "Fischerei"@de ; skos:notation "5" .
x:duty a skos:Concept ; skos:prefLabel "Zoll"@de ; skos:notation "6" .
x:mead a skos:Concept ; skos:prefLabel "Met"@de ; skos:notation "7" ; skos:broader x:food .
"""


def vocabularies(folder: Path) -> list[Path]:
    """One vocabulary as Turtle, RDF/XML, JSON-LD and N-Triples."""
    import rdflib

    graph = rdflib.Graph().parse(data=SKOS, format="turtle")
    suffixes = {"turtle": "ttl", "xml": "rdf", "json-ld": "jsonld", "nt": "nt"}
    paths = []
    for format, suffix in suffixes.items():
        paths.append(folder / f"vocabulary.{suffix}")
        graph.serialize(paths[-1], format=format, encoding="utf-8")
    return paths


TEXT = "Der Winzer im Keller: Trauben, Rebe, Fass und Most im Weinberg zur Lese"
# "locked", with the password "secret"
_LOCKED = """
eNqNUktu1EAQ3WXRCHECpGYxS2j335ZGg8hnFBQgYcJHEGXR7q4ejAZ7ZPegCZyBU3AFjsCGDUiJxBYJhDgDO9p2EkYaFthe
uF+9qvequgYH2+Ob9BZHg+8/vpwhihNc5S/RcIjIo5M5YLJlgplVU0QOzBQazCJhgkYjBKVriWwtoeMhsle4Bh9h3vLxMSJb
1aIMmK6k8n+mtkI1RGqvRO6DK8xmtYy1kvjKTOJUsL5iGSKxwaJnTqCpFrWNJtuK4xjtfyiWF6b771xfrOjfg3IaXmCu23gT
ajCv0Off7389+8nIxte3zz9d/bi33Jxcn7ybHz28cfZg/uH0yrdrtzdO22Ln/POycq2t1goih4s8dMcWpIhsmgY6k2QXZq8h
FNYgslPayhXlFJOnRXmnbIoLYMW3WhF4gllsHPPLDihL4wSxYJnIlGZZDI+LWYAak8NgSmdqh8g+HiYgWYxKw0FAqoXl1hub
g5eUGs2NFWBZ7lIlnXXcCcW0oiKj2uTeaRAjRB7joZeRGQk2kn0OaaapUCLhWmfaAvcszb0AGSW0TI2gMZbEs/Lem4Qm6ep1
LGvwKMEaJZcPVlJyiT2+xGicbhcp/2JKrGGU8TWMSbqGcZ6uYYKvaITaFDOou1kfFm8g2iOTqoqL3O/c3e24l0NtvbYpT40S
2iYcnFYZ54omnlOTu3z0P5Tj7vbrk3nA6mJfm2Dq0A1GyQQNBjv7Y/QHU/UBLQ==
"""


def pdf(text: str = "") -> bytes:
    """A page with this text; without any, a page with a black square, as a scanner makes it."""
    words = text.encode("cp1252").replace(b"(", b"\\(").replace(b")", b"\\)")
    drawn = b"BT /F1 12 Tf 50 700 Td (" + words + b") Tj ET" if text else b"50 50 300 300 re f"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    made, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(parts) + 1)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    return made + head + rows + end % (len(parts) + 1, len(made))


def documents(folder: Path) -> None:
    """A folder of letters and reports, and of what is none."""
    import docx

    letter = docx.Document()
    letter.add_paragraph(TEXT)
    letter.save(folder / "letter.docx")
    (folder / "report.pdf").write_bytes(pdf(TEXT))
    (folder / "page.html").write_text(f"<html><nav>Home</nav><p>{TEXT}</p></html>", "utf-8")
    (folder / "note.txt").write_bytes(f"Käse, Öl.\n{TEXT}".encode("cp1252"))
    (folder / "scan.pdf").write_bytes(pdf())
    (folder / "locked.pdf").write_bytes(zlib.decompress(base64.b64decode(_LOCKED)))
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))


def marc(folder: Path, rows: Sequence[Record]) -> list[Path]:
    """The records as MARC 21 and as MARCXML; subjects are in field 690 and have a source."""
    from pymarc import Field, Indicators, MARCWriter, Subfield, XMLWriter
    from pymarc import Record as Marc

    ids = {name: f"(X){i}" for i, name in enumerate(TOPICS)}
    paths = [folder / "records.mrc", folder / "records.marcxml"]
    with paths[0].open("wb") as binary, paths[1].open("wb") as xml:
        writers = [MARCWriter(binary), XMLWriter(xml)]
        for row in rows:
            record = Marc(force_utf8=True)
            record.add_field(Field("001", data=row.id))
            for tag, words in (("245", row.title), ("520", row.abstract)):
                record.add_field(Field(tag, Indicators(" ", " "), [Subfield("a", words)]))
            for name in {" ".join(x.split()) for x in row.labels} & set(TOPICS):
                parts = [Subfield("a", name), Subfield("0", ids[name]), Subfield("2", "mine")]
                record.add_field(Field("690", Indicators(" ", "7"), parts))
            for writer in writers:
                writer.write(record)
        for writer in writers:
            writer.close(close_fh=False)
    return paths
