"""Codes with leading zeros: they survive every way in, and are found again where they were lost."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.errors import CorpusError
from depl.readers import read
from depl.readers.excel import as_shown
from depl.readers.spellings import Codes
from depl.readers.vocabularies import read_vocabulary
from depl.readers.zero_padding import parse_mask

CODES = ("010121", "010229", "220421", "851713")
GOODS = ("breeding mares", "cattle for slaughter", "wine in bottles", "smartphones")
NAMES = ("Breeding horses", "Other cattle", "Wine", "Smartphones")


def workbook(path: Path, *sheets: list[list[object]], zeros: str | None = None) -> Path:
    """A workbook; with ``zeros``, numbers of the last column have this format."""
    book = xlsxwriter.Workbook(path)
    shown = book.add_format({"num_format": zeros} if zeros else {})
    for rows in sheets:
        sheet = book.add_worksheet()
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                if isinstance(cell, str):
                    sheet.write_string(i, j, cell)
                else:
                    sheet.write_number(i, j, cell, shown if j == len(row) - 1 else None)
    book.close()
    return path


def rows(codes: list[object] | tuple[object, ...] = CODES) -> list[list[object]]:
    body: list[list[object]] = [list(x) for x in zip(GOODS, codes, strict=True)]
    return [["goods", "code"], *body]


@pytest.mark.parametrize("kind", ["csv", "text cells", "000000", r"0000\.00", "frame", "lists"])
def test_leading_zeros_survive_every_way_in(tmp_path: Path, kind: str):
    path = tmp_path / "goods.xlsx"
    numbers = [int(code) for code in CODES]
    expected = set(CODES)
    if kind == "csv":
        path = tmp_path / "goods.csv"
        path.write_text("\n".join(",".join(map(str, row)) for row in rows()))
        found = read(path)
    elif kind == "frame":
        found = read(pd.DataFrame({"goods": GOODS, "code": CODES}))
    elif kind == "lists":
        found = read(
            [
                {"text": text, "labels": [code]}
                for _, (text, code) in enumerate(zip(GOODS, CODES, strict=True))
            ]
        )
    elif kind == "text cells":
        found = read(workbook(path, rows()))
    else:
        found = read(workbook(path, rows(numbers), zeros=kind))
        if "." in kind:
            expected = {f"{code[:4]}.{code[4:]}" for code in CODES}
    assert set(found.labels.ids) == expected


def test_only_the_cells_that_are_shown_with_zeros_get_them(tmp_path: Path):
    body = rows([10121, 10229, 220421, 851713])
    path = workbook(tmp_path / "goods.xlsx", [["cover"]], body, zeros=None)
    assert set(read(path, sheet="Sheet2").labels.ids) == {"10121", "10229", "220421", "851713"}


def test_numbers_that_pandas_writes_with_a_fraction_are_codes():
    frame = pd.DataFrame({"text": [*GOODS, "x"], "label": [4711, 4712, 4713, 4714, None]})
    assert set(read(frame).labels.ids) == {"4711", "4712", "4713", "4714"}


@given(st.integers(0, 10**9), st.integers(2, 12))
def test_a_mask_of_zeros_pads_as_python_does(value: int, width: int):
    mask = parse_mask("0" * width)
    assert mask is not None
    assert mask.shown(value) == str(value).zfill(width)


@given(st.decimals(0, 10**6, places=2), st.integers(2, 8))
def test_a_mask_with_a_decimal_point_pads_as_python_does(value, width: int):
    mask = parse_mask("0" * width + ".00")
    assert mask is not None
    assert mask.shown(float(value)) == f"{value:0{width + 3}.2f}"


@given(st.lists(st.from_regex(r"0[0-9]{3}\.[0-9]{2}", fullmatch=True), unique=True, max_size=20))
def test_a_code_is_found_by_what_a_spreadsheet_leaves_of_it_or_not_at_all(codes: list[str]):
    """As a brute-force search finds it: one code, and only one, reads as the same number."""
    found = Codes(codes)
    for code in codes:
        assert found.find(code) in (code, None)
        left = str(float(code)).removesuffix(".0")
        same = [other for other in codes if float(other) == float(code)]
        assert found.find(left) == (same[0] if len(same) == 1 else None)


@pytest.mark.parametrize("dropped", [False, True])
def test_codes_whose_zeros_are_lost_are_those_of_the_vocabulary(tmp_path: Path, dropped: bool):
    vocabulary = tmp_path / "codes.csv"
    lines = [f"{code[:4]}.{code[4:]},{name}" for code, name in zip(CODES, NAMES, strict=True)]
    vocabulary.write_text("\n".join(["Code,Bezeichnung", *lines]))
    path = tmp_path / "goods.csv"
    codes = [code.lstrip("0") if dropped else code for code in CODES]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows(codes)))
    found = read(path, vocabulary=vocabulary)
    assert next((x.id, x.name) for x in found.labels) == ("0101.21", "Breeding horses")
    assert len(found.labels) == 4
    assert found.train.Y.sum() == 4


def test_what_is_left_of_two_codes_is_neither(tmp_path: Path):
    vocabulary = tmp_path / "codes.csv"
    vocabulary.write_text("id,name\n0101,Horses\n00101,Ponies\n")
    found = read(
        [{"text": "a mare", "label": "101"}, {"text": "x", "label": "0101"}], vocabulary=vocabulary
    )
    assert found.labels.ids == ["0101", "00101", "101"]


def test_codes_that_have_lost_their_zeros_are_noticed(tmp_path: Path):
    path = tmp_path / "goods.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in rows([int(x) for x in CODES])))
    said = " ".join(CliRunner().invoke(app, ["info", str(path)]).stderr.split())
    assert "has a spreadsheet dropped zeros at the beginning?" in said
    path.write_text("\n".join(",".join(map(str, row)) for row in rows()))
    assert "zeros" not in CliRunner().invoke(app, ["info", str(path)]).stderr


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("Code,Bezeichnung", "0101,Pferde", ("0101", "Pferde", (), ())),
        ("Name;Nr.", "Pferde;0101", ("0101", "Pferde", (), ())),
        ("Description,HS Code,Parent", "Horses,0101,01", ("0101", "Horses", (), ("01",))),
        (
            "id,prefLabel,altLabel",
            "0101,Horses,mares|ponies",
            ("0101", "Horses", ("mares", "ponies"), ()),
        ),
        ("Kategorie", "Pferde", ("Pferde", "Pferde", (), ())),
        ("code,irgendwas", "0101,Pferde", ("0101", "Pferde", (), ())),
    ],
)
def test_the_columns_of_a_table_of_labels_are_recognised(tmp_path: Path, header, row, expected):
    path = tmp_path / "codes.csv"
    path.write_text(f"{header}\n{row}\n")
    [label] = read_vocabulary(path).labels
    assert (label.id, label.name, label.alt_names, label.broader) == expected


def test_how_the_columns_of_labels_were_taken_is_said(tmp_path: Path):
    path = tmp_path / "codes.csv"
    path.write_text("Code,Bezeichnung\n0101,Pferde\n")
    assert read_vocabulary(path).described == "1 label, id from Code, name from Bezeichnung"
    path.write_text("ID,Name\n0101,Pferde\n")
    assert read_vocabulary(path).described == "1 label"


@pytest.mark.parametrize("table", ["a,b\n1,2\n", "Code,Name\n01,A\n01,B\n", "Code\n01\n"])
def test_columns_of_labels_that_nothing_shows_are_asked_for(tmp_path: Path, table: str):
    path = tmp_path / "codes.csv"
    path.write_text(table)
    with pytest.raises(CorpusError, match="Call them id and name in the first row"):
        read_vocabulary(path)


def test_names_of_labels_may_be_numbers_in_a_workbook(tmp_path: Path):
    path = workbook(tmp_path / "years.xlsx", [["id", "name"], ["y", 1984]])
    assert read_vocabulary(path).labels[0].name == "1984"


def test_a_workbook_of_which_the_formats_cannot_be_read_is_read_without_them(tmp_path: Path):
    import zipfile

    path = workbook(tmp_path / "goods.xlsx", rows([10121, 10229, 220421, 851713]), zeros="000000")
    broken = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            new.writestr(
                name, raw.replace(b'numFmtId="164"', b'numFmtId="x"') if "styles" in name else raw
            )
    path.write_bytes(broken.getvalue())
    assert len(read(path).labels) == 4


def test_codes_of_a_sheet_all_get_their_zeros_or_none_does(tmp_path: Path):
    whole = workbook(tmp_path / "whole.xlsx", [[10121], [10229]], zeros="000000")
    damaged = tmp_path / "damaged.xlsx"
    with ZipFile(whole) as old, ZipFile(damaged, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<v>10229</v>", b"<v>1e999</v>"))

    def shown(path: Path) -> list[object]:
        return [cells[0] for _, cells in as_shown([(1, [10121]), (2, [10229])], path, "Sheet1")]

    assert shown(whole) == ["010121", "010229"]
    assert shown(damaged) == [10121, 10229]
