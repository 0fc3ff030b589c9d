"""Tables as people export them: separators, quotes, encodings, spreadsheets and JSON."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from depl.core.errors import CorpusError
from depl.readers import encodings
from depl.readers.delimiters import sniff
from depl.readers.files import Source
from depl.readers.problems import Problems
from depl.readers.rows import open_table
from depl.readers.tables import Table

HEADER = ["Nr", "Titel", "Abstract", "Schlagwörter"]
ROWS = [
    ["1", "Sekt; Wein, Bier", 'Ein "guter" Wein\nin zwei Zeilen', "Wein;Bier"],
    ["2", "Öl – fürs Haus", "Käse | Brot\tund Butter", "Öl"],
    ["3", "Zölle", "", "Zoll;Wein"],
]
COMPRESSIONS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def written(delimiter: str = ";", ends: str = "\r\n") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator=ends).writerows([HEADER, *ROWS])
    return stream.getvalue()


def opened(path: Path) -> tuple[Table, Problems]:
    problems = Problems()
    table = open_table(Source(path, problems))
    assert isinstance(table, Table)
    return table, problems


def contents(path: Path) -> tuple[str, list[list[object]]]:
    """What the table is said to be, and its cells; nothing may be wrong with it."""
    table, problems = opened(path)
    found = [list(fields.values()) for _, fields in table.rows(table.header)]
    assert not problems
    return table.described, [list(table.header), *found]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("delimiter", "said"),
    [(",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")],
)
def test_the_separator_is_found(tmp_path: Path, name: str, ends: str, delimiter: str, said: str):
    (tmp_path / name).write_bytes(written(delimiter, ends).encode())
    described, found = contents(tmp_path / name)
    assert described == f"separated by {said}, UTF-8"
    assert found == [HEADER, *ROWS]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_carriage_returns_end_lines_where_there_are_no_line_feeds(tmp_path: Path, encoding: str):
    rows = [["id", "text"], ["1", "Käse"], ["2", "Öl; Wein"]]
    text = "\r".join(",".join(row) for row in rows)
    (tmp_path / "mac.csv").write_bytes(text.encode(encoding))
    assert contents(tmp_path / "mac.csv")[1] == rows


@pytest.mark.parametrize("suffix", COMPRESSIONS)
@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8 with a byte order mark"),
        ("utf-16", "UTF-16"),
        ("utf-16-be", "UTF-16 without a byte order mark"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_the_encoding_is_found(tmp_path: Path, suffix: str, encoding: str, said: str):
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(COMPRESSIONS[suffix](written().encode(encoding)))
    described, found = contents(path)
    assert described == f"separated by semicolons, {said}"
    assert found == [HEADER, *ROWS]


def test_an_encoding_that_shows_only_late_is_found(tmp_path: Path):
    lines = ["text;labels", *["plain words;a"] * 200_000, "Käse und Öl;ö"]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode("cp1252"))
    described, found = contents(tmp_path / "t.csv")
    assert described.endswith("Windows-1252")
    assert found[-1] == ["Käse und Öl", "ö"]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 9))
def test_no_text_in_utf8_is_taken_for_another_encoding(text: str, cut: int):
    raw = text.encode()
    assert encodings.found([raw[:cut], raw[cut:]]) == "utf-8"


def test_a_separator_announced_for_excel_is_taken(tmp_path: Path):
    (tmp_path / "t.csv").write_text("sep=|\na|b,c\n1|2,3\n")
    assert contents(tmp_path / "t.csv")[1] == [["a", "b,c"], ["1", "2,3"]]


def test_tabs_without_quotes_keep_quotes_as_they_are(tmp_path: Path):
    (tmp_path / "t.tsv").write_text('text\tlabels\n"Wine" and oil\ta\nthe 5" pipe\tb\n')
    described, found = contents(tmp_path / "t.tsv")
    assert described == "separated by tabs, without quotes, UTF-8"
    assert [row[0] for row in found] == ["text", '"Wine" and oil', 'the 5" pipe']


def test_one_column_has_the_usual_separator():
    assert sniff(["text", "a; b | c", "d"], ",").delimiter == ","
    assert sniff([], "\t").delimiter == "\t"


def test_blank_rows_and_blank_cells_at_the_end_do_no_harm(tmp_path: Path):
    raw = "\n\nid;text;labels;;\n\n;;;;\n1;Wein;a;;\n \n; ;\t;;\n2;Öl;b;;\n3;Bier;c\n"
    (tmp_path / "t.csv").write_text(raw)
    table, problems = opened(tmp_path / "t.csv")
    assert [f["id"] for _, f in table.rows(["id"])] == ["1", "2"]
    assert "t.csv:10  3 cells where the header has 5" in problems.listing(remedies=False)


def test_unnamed_and_repeated_columns(tmp_path: Path):
    (tmp_path / "t.csv").write_text(",text,text\n0,first,second\n")
    table, _ = opened(tmp_path / "t.csv")
    assert table.header == ["column 1", "text", "text"]
    assert list(table.rows(["column 1", "text"])) == [(2, {"column 1": "0", "text": "first"})]


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_json_lists_lines_and_objects_are_tables(tmp_path: Path, suffix: str):
    objects = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
    shapes = {
        "list.json": json.dumps(objects, indent=1),
        "inside.json": json.dumps({"total": 3, "records": objects}),
        "lines.json": "\n".join(map(json.dumps, objects)),
        "lines.jsonl": "\n\n".join(map(json.dumps, objects)),
    }
    for name, text in shapes.items():
        path = tmp_path / (name + suffix)
        path.write_bytes(COMPRESSIONS[suffix](text.encode()))
        described, found = contents(path)
        assert found == [HEADER, *ROWS]
        assert described in ("JSON", "JSON lines")


def test_broken_json_is_one_problem(tmp_path: Path):
    for text, said in (('[{"a": 1},', "broken JSON"), ("[1, 2]", "no list of objects")):
        (tmp_path / "t.json").write_text(text)
        table, problems = opened(tmp_path / "t.json")
        assert not table.header
        assert problems.fatal
        assert said in problems.listing(remedies=False)


def test_parquet_reads_the_columns_that_are_wanted(tmp_path: Path):
    columns = dict(zip(HEADER, map(list, zip(*ROWS, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert contents(tmp_path / "t.parquet") == ("Parquet", [HEADER, *ROWS])
    table, _ = opened(tmp_path / "t.parquet")
    assert [f for _, f in table.rows(["Nr"])] == [{"Nr": "1"}, {"Nr": "2"}, {"Nr": "3"}]
    assert table.sample()[2]["Titel"] == "Zölle"


def test_the_first_filled_sheet_is_read(tmp_path: Path):
    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as book:
        book.add_worksheet("leer")
        sheet = book.add_worksheet("Daten")
        sheet.write(0, 0, "Export vom Montag")
        sheet.write_row(2, 0, HEADER)
        sheet.write_row(3, 0, [1, "Wein", 2.5, "a"])
        sheet.write_row(5, 0, [2, None, True, "b; c"])
    table, problems = opened(tmp_path / "t.xlsx")
    assert not problems
    assert table.described == "sheet 'Daten'"
    rows = list(table.rows(HEADER))
    assert rows[0] == (4, {"Nr": 1, "Titel": "Wein", "Abstract": 2.5, "Schlagwörter": "a"})
    assert rows[1] == (6, {"Nr": 2, "Titel": None, "Abstract": True, "Schlagwörter": "b; c"})


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    with xlsxwriter.Workbook(path) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return path


COVER = [["Bestand der Bücherei Köln, Stand März"], [], ["Zuständig:", "Frau Müller"]]


def test_a_cover_and_sums_are_no_tables(tmp_path: Path):
    path = tmp_path / "t.xlsx"
    workbook(path, Deckblatt=COVER, Titel=[HEADER, *ROWS * 3], Summen=[["Summe", 9]])
    described, found = contents(path)
    assert described == "sheet 'Titel' (not read: Deckblatt, Summen)"
    assert found == [HEADER, *[[cell or None for cell in row] for row in ROWS * 3]]


@pytest.mark.parametrize(
    "groups",
    [
        ["Titelangaben", None, None, "Erschließung"],
        ["Nr", "Titelangaben", None, "Schlagwörter"],  # the others stand in merged rows
        [None, "Titelangaben", None, "Erschließung"],
    ],
)
def test_groups_above_the_names_of_columns_are_passed_over(tmp_path: Path, groups: list[object]):
    names = [None if name in groups else name for name in HEADER]
    path = workbook(tmp_path / "t.xlsx", Titel=[["Neuzugänge"], [], groups, names, *ROWS])
    _, found = contents(path)
    assert found == [HEADER, *[[cell or None for cell in row] for row in ROWS]]


def test_a_column_without_a_name_makes_no_group_of_the_names(tmp_path: Path):
    rows = [["Nr", "Titel", None, "Schlagwörter"], ["A", "Wein", "Text", "a"], *ROWS]
    _, found = contents(workbook(tmp_path / "t.xlsx", Titel=rows))
    assert found[0] == ["Nr", "Titel", "column 3", "Schlagwörter"]
    assert found[1] == rows[1]


def test_columns_that_are_known_tell_which_sheet_is_the_table(tmp_path: Path):
    codes = [["Code", "Bedeutung"], *[[f"A{i}", "eine lange Erläuterung " * 9] for i in range(9)]]
    path = workbook(tmp_path / "t.xlsx", Codes=codes, Titel=[HEADER, *ROWS])

    def read(*columns: str) -> str:
        source = Source(path, Problems())
        source.columns_before = columns
        table = open_table(source)
        assert isinstance(table, Table)
        return table.described

    assert read() == read("Text") == "sheet 'Codes' (not read: Titel)"
    assert read("Text", "ABSTRACT") == "sheet 'Titel' (not read: Codes)"


def test_of_two_tables_the_first_is_read_unless_another_is_asked_for(tmp_path: Path):
    path = workbook(tmp_path / "t.xlsx", **{"2025": [HEADER, *ROWS[:1]], "2026": [HEADER, *ROWS]})

    def read(asked: str | None, before: str | None = None) -> str:
        source = Source(path, Problems())
        source.sheet, source.sheet_before = asked, before
        table = open_table(source)
        assert isinstance(table, Table)
        return table.described

    assert read(None) == "sheet '2025' (not read: 2026)"
    assert read("2026") == read(None, "2026") == "sheet '2026' (not read: 2025)"
    assert read(None, "2027") == read(None)
    with pytest.raises(CorpusError, match=r"no sheet '2027'. Its sheets are: 2025, 2026\."):
        read("2027")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    source = Source(tmp_path / "t.csv", Problems())
    source.sheet = "2026"
    with pytest.raises(CorpusError, match=r"t\.csv has no sheets"):
        open_table(source)


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("t.xlsx", b"no spreadsheet", "not a spreadsheet that can be opened"),
        ("t.csv", b"PK\x03\x04" + bytes(100), "an Excel, Word or zip file"),
        ("t.csv", b"%PDF-1.7\n%\xe2\xe3\n", "a PDF"),
        ("t.txt", b"\x89PNG\r\n\x1a\n", "a picture"),
        ("t.csv", bytes(range(256)) * 50, "not a text file"),
        ("t.jsonl", b"abc\x00\x00def", "not a text file"),
        ("t.tsv", gzip.compress(b"id\ttext\n", mtime=0), "compressed data"),
    ],
)
def test_a_file_that_is_something_else_is_one_problem(
    tmp_path: Path, name: str, raw: bytes, said: str
):
    (tmp_path / name).write_bytes(raw)
    problems = Problems()
    found = open_table(Source(tmp_path / name, problems))
    assert not list(found.rows(found.header) if isinstance(found, Table) else found)
    listing = problems.listing(remedies=False)
    assert problems.fatal
    assert listing.count("\n") == 1
    assert said in listing
