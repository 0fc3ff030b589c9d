"""Tables that people open: wide ones, for Excel, and Excel's own."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from datetime import date, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.errors import ConfigError, CorpusError, RunError

GERMAN = "Nr;Titel;text;Notiz\n7;=1+1;sparkling wine;Käse\n8;B;virgin olive oil;x\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(GERMAN.encode("cp1252"))
    return path


def predicted(*arguments: object):
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert result.exit_code == 0, (result.exception, result.output)
    return result


def refused(kind: type[Exception], *arguments: object) -> str:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return str(result.exception)


WIDE = ["label_1", "label_id_1", "probability_1", "label_2", "label_id_2", "probability_2"]


def test_wide_keeps_the_columns_of_the_input(fitted_run, table, tmp_path):
    out = tmp_path / "out.csv"
    options = ("-k", 2, "--threshold", 0.5, "--wide", "--id", "Nr")
    predicted(fitted_run, table, *options, "--output", out)
    header, first, second = csv.reader(io.StringIO(out.read_text()))
    assert header == ["Nr", "Titel", "text", "Notiz", *WIDE]
    assert first[:6] == ["7", "'=1+1", "sparkling wine", "Käse", "wine", "2560"]
    assert float(first[6]) > 0.5
    assert first[7:] == ["", "", ""]
    assert second[4:6] == ["olive oil", "2077"]


def test_excel_gets_a_byte_order_mark_and_the_separator_of_the_input(fitted_run, table, tmp_path):
    out = tmp_path / "out.csv"
    said = predicted(fitted_run, table, "-k", 1, "--wide", "--excel", "--output", out).stderr
    assert "separator" not in said
    assert out.read_bytes().startswith(b"\xef\xbb\xbfNr;Titel;text;Notiz;label_1;")
    assert "Käse" in out.read_text("utf-8-sig")
    # Where semicolons separate cells, Excel has decimal commas.
    assert re.search(r";wine;2560;0,\d+$", out.read_text("utf-8-sig").splitlines()[1])
    other = tmp_path / "other.csv"
    (tmp_path / "t.txt").write_text("wine")
    said = predicted(fitted_run, tmp_path / "t.txt", "-k", 1, "--excel", "--output", other).stderr
    assert "t.txt, so commas separate the cells" in said
    assert "write an .xlsx file" in said
    assert other.read_bytes().startswith(b"\xef\xbb\xbfid,rank,")
    assert "name it with --output" in refused(ConfigError, fitted_run, table, "--excel")


def test_json_lines_of_any_field_are_kept(fitted_run, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    row = {"text": "sparkling wine", "labels": ["old"], "year": 1999}
    source.write_text(json.dumps(row) + "\n")
    predicted(fitted_run, source, "-k", 1, "--wide", "--output", out)
    made = json.loads(out.read_text())
    assert [x["name"] for x in made.pop("suggestions")] == ["wine"]
    assert made == row
    predicted(fitted_run, source, "-k", 1, "--wide", "--output", tmp_path / "out.csv")
    assert (
        '["old"]' in next(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))["labels"]
    )


def test_documents_without_columns_have_their_ids(fitted_run, tmp_path):
    (tmp_path / "wine.txt").write_text("sparkling wine")
    out = tmp_path / "out.csv"
    predicted(fitted_run, tmp_path / "wine.txt", "-k", 1, "--wide", "--output", out)
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert (row["id"], row["label_1"]) == (f"{tmp_path}/wine.txt", "wine")


def test_excel_files_hold_texts_and_numbers_and_no_formula(fitted_run, table, tmp_path):
    pytest.importorskip("xlsxwriter", reason="Excel needs depl[excel]")
    calamine = pytest.importorskip("python_calamine")
    for wide in ((), ("--wide",)):
        out = tmp_path / "out.xlsx"
        predicted(fitted_run, table, "-k", 2, *wide, "--output", out, "--overwrite")
        sheet = calamine.CalamineWorkbook.from_path(out).get_sheet_by_index(0).to_python()
        if wide:
            assert sheet[0] == ["Nr", "Titel", "text", "Notiz", *WIDE]
            assert sheet[1][:6] == ["7", "=1+1", "sparkling wine", "Käse", "wine", "2560"]
            assert isinstance(sheet[1][6], float)
        else:
            assert sheet[0] == ["id", "rank", "label_id", "label_name", "score"]
            assert [row[:4] for row in sheet[1::2]] == [
                ["7", 1.0, "2560", "wine"],
                ["8", 1.0, "2077", "olive oil"],
            ]
    assert sorted(x.name for x in tmp_path.iterdir()) == ["in.csv", "out.xlsx"]
    assert "in one go" in refused(ConfigError, fitted_run, table, "--output", out, "--resume")
    assert "--overwrite" in refused(RunError, fitted_run, table, "--output", out)


def test_excel_files_are_laid_out_for_people(fitted_run, tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="Excel needs depl[excel]")
    calamine = pytest.importorskip("python_calamine")
    source, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    with xlsxwriter.Workbook(source) as book:
        sheet = book.add_worksheet()
        day = book.add_format({"num_format": "dd.mm.yyyy"})
        sheet.write_row(0, 0, ["Nr", "text", "Erfasst am", "Geändert", "Preis"])
        sheet.write_row(1, 0, ["A 7", "sparkling wine " * 20])
        sheet.write_datetime(1, 2, datetime(2025, 3, 1), day)
        sheet.write_datetime(1, 3, datetime(2025, 3, 1, 12, 30), day)
        sheet.write_formula(1, 4, "=2*9.95", None, 19.9)
    predicted(fitted_run, source, "-k", 1, "--wide", "--output", out)
    [_, row] = calamine.CalamineWorkbook.from_path(out).get_sheet_by_index(0).to_python()
    assert row[2:5] == [date(2025, 3, 1), datetime(2025, 3, 1, 12, 30), 19.9]
    with zipfile.ZipFile(out) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
        styles = archive.read("xl/styles.xml").decode()
    widths = [float(x) for x in re.findall(r'<col [^>]*width="([\d.]+)"', sheet)]
    assert len(widths) == 8
    assert widths[0] < 14 < widths[2]
    assert 50 <= widths[1] < 52
    assert '<autoFilter ref="A1:H2"/>' in sheet
    assert "<b/>" in styles  # the names of the columns
    # A row a suggestion has nothing of the input, so nothing there is a date.
    (tmp_path / "days.csv").write_text("id,text\n2025-03-01,sparkling wine\n")
    predicted(fitted_run, tmp_path / "days.csv", "-k", 1, "--output", out, "--overwrite")
    [_, row] = calamine.CalamineWorkbook.from_path(out).get_sheet_by_index(0).to_python()
    assert row[0] == "2025-03-01"


def test_a_wide_table_continues_after_an_interruption(fitted_run, tmp_path, monkeypatch):
    source, whole, out = (tmp_path / x for x in ("in.csv", "whole.csv", "out.csv"))
    source.write_text("text,no\n" + "".join(f"sparkling wine {i},{i}\n" for i in range(9)))
    monkeypatch.setattr("depl.cli.predict._DOCUMENTS", 3)
    command = (fitted_run, source, "-k", 1, "--wide", "--excel", "--output")
    predicted(*command, whole)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("depl.readers.resuming.SuggestionFile.finish", stop)
        CliRunner().invoke(app, ["predict", *map(str, (*command, out))])
    out.write_bytes(out.read_bytes()[:-20])
    narrow = [x for x in command if x != "--wide"]
    assert "it was begun with form" in refused(RunError, *narrow, out, "--resume")
    predicted(*command, out, "--resume")
    assert out.read_bytes() == whole.read_bytes()


def test_what_does_not_fit_in_one_table_is_refused(fitted_run, table, tmp_path):
    (tmp_path / "b.csv").write_text("text\nwine\n")
    command = (fitted_run, table, tmp_path / "b.csv", "--wide", "--output", tmp_path / "o.csv")
    assert "other columns" in refused(CorpusError, *command)
    (tmp_path / "c.csv").write_text("text,label_1\nwine,x\n")
    command = (fitted_run, tmp_path / "c.csv", "--wide", "--output", tmp_path / "p.csv")
    assert "a column 'label_1'" in refused(ConfigError, *command)
    command = (fitted_run, table, "--wide", "--output", tmp_path / "o.parquet")
    assert "not Parquet" in refused(ConfigError, *command)
