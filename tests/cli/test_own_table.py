"""From somebody's own table to suggestions: the journeys of a first day, with the real commands."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from typer.testing import CliRunner

import depl
from depl.cli.app import app
from depl.core.errors import ConfigError, CorpusError, DeplError, RunError
from depl.run.folder import Run

pytestmark = pytest.mark.usefixtures("without_figures")

HEADER = ["PPN", "Titel", "Abstract", "Jahr", "Schlagwörter"]
TOPICS = {
    "Wein": "Trauben Winzer Keller Flasche Rebe",
    "Öl": "Olive Presse Fett Frucht Ölmühle",
    "Zoll": "Grenze Einfuhr Abgabe Tarif Ware",
    "Fischerei": "Netz Kutter Meer Fang Hering",
    "Käse": "Milch Kuh Rind Reife Molkerei",
}
SEPARATORS = {";": "semicolons", ",": "commas", "\t": "tabs", "|": "vertical bars"}


def records() -> list[list[str]]:
    """120 records of five topics; some labels are spelt in other ways, some rows lack something."""
    dice = random.Random(3)
    rows = []
    for i in range(120):
        topics = dice.sample(list(TOPICS), dice.choice([1, 2]))
        words = [word for topic in topics for word in dice.sample(TOPICS[topic].split(), 4)]
        spelt = [topic.upper() if i % 9 == 0 else f" {topic}" for topic in topics]
        title, rest = " ".join(words[:2]), " ".join([*words[2:], f'„Nr.“ {i}; "{i}",\nNeue Zeile'])
        rows.append([f"P{i}", title, rest, str(1990 + i % 30), ";".join(spelt)])
    rows[17][-1] = ""  # no labels
    rows[40][1] = rows[40][2] = ""  # no text
    rows[41][1:3] = rows[42][1:3]  # two copies of one document
    return rows


ROWS = records()


def as_csv(delimiter: str = ";", encoding: str = "utf-8-sig") -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(HEADER)
    for i, row in enumerate(ROWS):
        writer.writerow(row)
        if i % 25 == 0:
            stream.write(f"\r\n{delimiter * 4}\r\n")  # blank rows
    return stream.getvalue().encode(encoding)


def write(path: Path) -> Path:
    """The records as this file, in the form that its name tells."""
    objects = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
    for row in objects:
        if path.suffix != ".xlsx":
            row["Schlagwörter"] = row["Schlagwörter"].split(";") if row["Schlagwörter"] else []
    if path.suffix == ".csv":
        path.write_bytes(as_csv())
    elif path.suffix == ".json":
        path.write_text(json.dumps(objects))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, objects)))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(objects), path)
    else:
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            for i, row in enumerate([HEADER, *ROWS]):
                sheet.write_row(i, 0, row)
    return path


def call(*arguments: object) -> tuple[str, str]:
    """Standard output and error of a command that must succeed."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, (result.exception, result.output)
    return result.stdout, result.stderr


def refused(kind: type[DeplError], *arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return str(result.exception)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("own") / "records.csv")


@pytest.fixture(scope="module")
def fitted(table: Path) -> tuple[Path, str]:
    """A run on the table, and what was said while it was made."""
    run = table.parent / "run"
    named = ("--text", "Titel,Abstract", "--labels", "Schlagwörter")
    return run, call("fit", table, *named, "--out", run)[1]


def test_fit_says_what_it_takes_before_it_starts(fitted: tuple[Path, str]):
    said = fitted[1]
    block, _, rest = said.partition(" → ")
    assert "records.csv  separated by semicolons, UTF-8 with a byte order mark" in block
    assert "text       Titel + Abstract\n" in block
    assert "labels     Schlagwörter, split at ';'\n" in block
    assert "id         PPN\n" in block
    assert "not used   Jahr\n" in block
    assert "118 documents, 5 labels; 2 rows left out: 1 no labels, 1 no text" in block
    assert "spelt in several ways: " in block
    assert re.search(r"set aside  \d+ documents are not trained on", block)
    assert "features" in rest


def test_fit_ends_with_a_sentence_and_three_commands(fitted: tuple[Path, str]):
    run, said = fitted
    n = len(Run(run).aside())
    end = said.partition(f"On the {n} documents set aside: ")[2]
    assert re.match(r"on average \d\.\d of 5 suggestions are right, and \d+ % of a document", end)
    for command in (f"predict {run} FILE", f"evaluate {run} ", f"serve {run} "):
        assert f"depl {command}" in end


def test_the_run_keeps_its_documents_apart(fitted: tuple[Path, str]):
    run = Run(fitted[0])
    train, aside = run.train(), run.aside()
    assert len(train) + len(aside) == 118
    assert not {*train.ids} & {*aside.ids}
    assert not {*train.texts} & {*aside.texts}
    assert {"P41", "P42"} <= {*train.ids} or {"P41", "P42"} <= {*aside.ids}
    assert run.labels.names == sorted(TOPICS)


def test_the_same_command_continues_and_another_choice_is_refused(
    table: Path, fitted: tuple[Path, str]
):
    run, _ = fitted
    said = call("fit", table, "--out", run)[1]  # what it finds by itself is the same
    assert "done" not in said
    assert "up to date" in said
    assert "other documents are set aside" in refused(
        RunError, "fit", table, "--out", run, "--no-holdout"
    )


def test_evaluate_without_a_corpus_takes_what_was_set_aside(fitted: tuple[Path, str]):
    run, _ = fitted
    out, _ = call("evaluate", run, "--json")
    assert json.loads(out)["documents"] == len(Run(run).aside())
    assert call("evaluate", run, run, "-k", "5")[0].startswith("run, set aside: ")


def test_labels_of_documents_set_aside_alone_do_not_flatter_the_run(tmp_path: Path):
    """Each record names a subject of its own: a new one would have another, which nobody knows."""
    rows = [[f"P{i}", f"About Subject{i}", "Trauben", "1990", f"Subject{i}"] for i in range(80)]
    lines = "\n".join(";".join(row) for row in [HEADER, *rows])
    (tmp_path / "records.csv").write_text(lines)
    run = tmp_path / "run"
    said = call("fit", tmp_path / "records.csv", "--out", run)[1]
    n = len(Run(run).aside())
    assert len(Run(run).labels) == 80  # they can be suggested all the same
    assert "on average 0.0 of 5 suggestions are right, and 0 % of a document's labels are" in said
    count = f"{n} of the {n} labels of these documents are on no training document."
    assert count in said
    out, note = call("evaluate", run, "--json")
    assert json.loads(out)["P@1"] == 0
    assert count in note
    parts = json.loads(call("evaluate", run, "--parts", "--json")[0])
    assert {part["P@1"] for part in parts.values()} == {0}
    assert count in (run / "report" / "set-aside.html").read_text()


def test_labels_of_a_vocabulary_are_known_without_documents(tmp_path: Path):
    rows = [[f"P{i}", f"About Subject{i}", "Trauben", "1990", f"Subject{i}"] for i in range(80)]
    lines = "\n".join(";".join(row) for row in [HEADER, *rows])
    (tmp_path / "records.csv").write_text(lines)
    names = "\n".join(["id,name", *(f"{i},Subject{i}" for i in range(90))])
    (tmp_path / "names.csv").write_text(names)
    listed = ("--vocabulary", tmp_path / "names.csv")
    said = call("fit", tmp_path / "records.csv", *listed, "--out", tmp_path / "run")[1]
    assert "on no training document" not in said
    out, _ = call("evaluate", tmp_path / "run", "--json")
    assert json.loads(out)["P@1"] > 50


def test_cells_that_are_not_split_are_noticed(table: Path, fitted: tuple[Path, str]):
    said = call("info", table, "--label-separator", "|")[1]
    assert re.search(
        r"separator  ';' is in \d+ of the labels: are .* split there\? --label-separator ';'", said
    )
    assert "separator  " not in fitted[1]


def test_a_column_is_not_text_and_labels(table: Path, tmp_path: Path):
    named = ("--text", "Titel,Schlagwörter", "--labels", "schlagwörter")
    said = refused(CorpusError, "fit", table, *named, "--out", tmp_path / "run")
    assert said.startswith("The column 'Schlagwörter' is asked for as text and as labels")


@pytest.mark.parametrize("content", ["", "\n\n", "Titel;Schlagwörter\n"])
def test_a_table_without_records_is_one_sentence(tmp_path: Path, content: str):
    (tmp_path / "empty.csv").write_text(content)
    said = refused(CorpusError, "fit", tmp_path / "empty.csv", "--out", tmp_path / "run")
    assert said.startswith(f"There is no record in {tmp_path}/empty.csv. Give a table with ")


def test_evaluate_on_another_table_needs_no_options(fitted: tuple[Path, str], tmp_path: Path):
    run, _ = fitted
    lines = ["Schlagwörter,TITEL,Abstract", "wein|Bier,Trauben,Winzer", "ÖL,Olive,Presse"]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    _, said = call("evaluate", run, tmp_path / "new.csv", "--label-separator", "|", "--json")
    assert "text       TITEL + Abstract" in said
    assert "does not know 1 of the 3 labels of these documents; 1 of 3 assignments" in said
    assert "trained on" not in said


def test_evaluate_shows_how_labels_differ_where_none_is_known(
    fitted: tuple[Path, str], tmp_path: Path
):
    run, _ = fitted
    new = tmp_path / "new.csv"
    rows = "".join(f"{i};Trauben;Wein im Jahr;1990;gnd:{i}\n" for i in range(3))
    new.write_text(";".join(HEADER) + "\n" + rows)
    note = call("evaluate", run, new)[1]
    assert "knows none of the 3 labels of these documents. Are they named differently" in note
    assert "The documents have 'gnd:0', for example, and the run has '" in note


def test_evaluate_warns_of_documents_that_were_trained_on(table: Path, fitted: tuple[Path, str]):
    run, _ = fitted
    n = len(Run(run).train())
    said = call("evaluate", run, table, "--json")[1]
    assert f"{n} of these 118 documents were trained on" in said


def test_a_label_that_is_its_own_id_is_printed_once(fitted: tuple[Path, str]):
    assert call("labels", fitted[0], "show", "Wein")[0].startswith("Wein\n")
    said = refused(CorpusError, "labels", fitted[0], "show", "fisch")
    assert said.endswith("Names that contain it: Fischerei.")


def test_a_format_may_be_called_by_its_suffix(
    table: Path, fitted: tuple[Path, str], tmp_path: Path
):
    path = write(tmp_path / "records.xlsx").rename(tmp_path / "records")
    assert "taken      118 documents, 5 labels" in call("info", path, "--format", "xlsx")[1]
    assert "P3 " in call("predict", fitted[0], path, "--format", ".XLSX", "-k", 1)[0]


def test_wide_tables_have_ids_only_where_they_tell_something(
    table: Path, fitted: tuple[Path, str], tmp_path: Path
):
    out = tmp_path / "wide.csv"
    call("predict", fitted[0], table, "--wide", "-k", 2, "--output", out)
    with out.open(encoding="utf-8") as file:
        assert next(csv.reader(file))[5:] == [
            "label_1",
            "probability_1",
            "label_2",
            "probability_2",
        ]


def test_predict_takes_the_columns_of_the_run(fitted: tuple[Path, str], tmp_path: Path):
    run, _ = fitted
    (tmp_path / "new.csv").write_bytes(
        "PPN;Abstract;Titel\nX;Hering im Netz;Kutter\n".encode("cp1252")
    )
    out, said = call("predict", run, tmp_path / "new.csv", "-k", 1)
    assert re.search(r"X  Kutter Hering im Netz\n +\d\.\d\d  Fischerei\n", out)  # no id after it
    assert "text: Titel + Abstract; id: PPN" in said


@pytest.mark.parametrize("delimiter", SEPARATORS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_every_separator_and_encoding_gives_the_same(
    table: Path, tmp_path: Path, delimiter: str, encoding: str
):
    (tmp_path / "t.csv").write_bytes(as_csv(delimiter, encoding))
    expected, found = depl.read(table), depl.read(tmp_path / "t.csv")
    assert (found.train.ids, found.train.texts) == (expected.train.ids, expected.train.texts)
    assert found.labels == expected.labels
    assert (found.train.Y != expected.train.Y).nnz == 0


def test_an_encoding_that_cannot_be_found_can_be_given(
    table: Path, fitted: tuple[Path, str], tmp_path: Path
):
    path = tmp_path / "dos.csv"
    path.write_bytes(
        as_csv(encoding="utf-8").decode().translate({0x201E: 39, 0x201C: 39}).encode("cp850")
    )
    assert "Käse" not in depl.read(path).labels.names
    assert depl.read(path, encoding="cp850").labels == depl.read(table).labels
    assert "separated by semicolons, cp850" in call("info", path, "--encoding", "CP850")[1]
    shown = call("predict", fitted[0], path, "--encoding", "cp850", "-k", "1")[0]
    assert "Ölmühle" in shown
    assert "There is no encoding 'ansi-7'" in refused(
        ConfigError, "info", path, "--encoding", "ansi-7"
    )
    with pytest.raises(ConfigError, match="no encoding"):
        depl.read(path, encoding="rot13")


@pytest.mark.parametrize("name", ["t.xlsx", "t.json", "t.jsonl", "t.parquet"])
def test_every_kind_of_file_gives_the_same(table: Path, tmp_path: Path, name: str):
    expected, found = depl.read(table), depl.read(write(tmp_path / name))
    assert (found.train.ids, found.train.texts) == (expected.train.ids, expected.train.texts)
    assert found.labels == expected.labels
    assert call("info", tmp_path / name, "--json")[0] == call("info", table, "--json")[0]


def test_a_run_takes_the_sheet_that_it_was_fitted_on(tmp_path: Path):
    path, run = tmp_path / "t.xlsx", tmp_path / "run"
    with xlsxwriter.Workbook(path) as book:
        for name, rows in (("2025", ROWS), ("2026", ROWS[:60])):
            sheet = book.add_worksheet(name)
            for i, row in enumerate([HEADER, *rows]):
                sheet.write_row(i, 0, row)
    assert "sheet '2025' (not read: 2026)" in call("info", path)[1]
    said = call("fit", path, "--sheet", "2026", "--out", run, "--until", "corpus")[1]
    assert "sheet '2026' (not read: 2025)" in said
    assert Run.open(run).columns()["sheet"] == "2026"
    read = {name: depl.read(path, sheet=name).train.ids for name in ("2025", "2026")}
    assert read["2026"] == read["2025"][: len(read["2026"])] != read["2025"]
    assert "no sheet '2027'" in refused(CorpusError, "info", path, "--sheet", "2027")
    # What is asked for in vain is looked for where the message says.
    assert "t.xlsx, sheet '2025' (not read: 2026) has no column 'Text'" in refused(
        CorpusError, "info", path, "--text", "Text"
    )


def test_info_and_fit_count_alike(table: Path, fitted: tuple[Path, str]):
    out, said = call("info", table)
    assert "118 documents, 5 labels; 2 rows left out: 1 no labels, 1 no text" in said
    assert "118 documents, 5 labels; 2 rows left out: 1 no labels, 1 no text" in fitted[1]
    assert out.startswith("records.csv  5 labels\n")


def test_info_counts_what_a_fit_will_know_and_what_other_splits_have(tmp_path: Path):
    header = "title,keywords"
    (tmp_path / "train.csv").write_text(f"{header}\nolive oil,oil\nwine of Crete,wine;oil\n")
    (tmp_path / "dev.csv").write_text(f"{header}\nhoney of bees,honey;oil\n")
    out, _ = call("info", tmp_path)
    assert "  2 labels, and 1 in no training document\n" in out
    said = call("fit", tmp_path, "--out", tmp_path / "run", "--until", "corpus")[1]
    assert "2 documents, 2 labels →" in said


def test_a_table_without_a_header_is_noticed(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text(
        "".join(f"{text},wine\n" for text in ("white grapes", "a cellar", "a vineyard"))
    )
    said = call("info", path, "--labels", "wine", "--text", "white grapes")[1]
    assert "'wine' is also a label: does the first row hold the names of the columns?" in said


@pytest.mark.parametrize("name", ["bare.csv", "bare.xlsx"])
def test_a_table_without_names_of_columns_is_read_by_their_numbers(tmp_path: Path, name: str):
    rows = [[row[0], f"{row[1]} {row[2]}" * 3, row[4]] for row in ROWS if row[4] and row[1]]
    path = tmp_path / name
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=";").writerows(rows)
    else:
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            for i, row in enumerate(rows):
                sheet.write_row(i, 0, row)
    _, said = call("info", path)
    assert "no names of columns in the first row" in said
    assert "text       column 2" in said
    assert "labels     column 3, split at ';'" in said
    assert f"taken      {len(rows)} documents, 5 labels" in said


def test_a_table_with_a_column_for_each_label(tmp_path: Path):
    path = tmp_path / "marks.csv"
    marks = "".join(
        f"a text about {x} and more,{int(x == 'wine')},{int(x == 'oil')}\n"
        for x in ("wine", "oil", "tin") * 4
    )
    path.write_text("text,wine,oil\n" + marks)
    _, said = call("info", path, "--labels", "wine,oil")
    assert "labels     2 columns with 0 and 1: wine, oil" in said
    assert "taken      8 documents, 2 labels; 4 rows left out: no labels" in said
    assert "is also a label" not in said


def test_spellings_that_look_the_same_are_not_written_out(tmp_path: Path):
    path = tmp_path / "forms.csv"
    path.write_text(
        "text,labels\nöl und mehr,Öl\nnoch mehr,Öl\nviel mehr,O\u0308l\nimmer mehr,ÖL\n"
    )
    _, said = call("info", path)
    assert "'Öl' is also in another Unicode form, 'ÖL';" in said


def test_where_no_row_can_be_used_the_columns_are_said(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("title,keywords,subjects 2\nolive oil,,oil\nwine,,wine\n")
    message = refused(CorpusError, "info", path, "--labels", "keywords")
    assert "No row of t.csv can be used: 2 have no labels." in message
    assert "The text was taken from title, the labels from keywords" in message


def test_labels_as_they_are(table: Path):
    facts = json.loads(call("info", table, "--labels-as-they-are", "--json")[0])
    assert facts["labels"] == 10
    assert len(depl.read(table, merge_spellings=False).labels) == 10


def test_no_holdout_trains_on_all(table: Path, tmp_path: Path):
    run = tmp_path / "run"
    said = call("fit", table, "--out", run, "--no-holdout", "--until", "features")[1]
    assert "set aside" not in said
    assert len(Run(run).train()) == 118
    assert "set no documents aside" in refused(ConfigError, "evaluate", run)


def test_a_folder_with_one_table_and_one_with_splits(table: Path, tmp_path: Path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(table, alone / "Export 2024.csv")
    assert depl.read(alone).train.ids == depl.read(table).train.ids
    split = tmp_path / "split"
    split.mkdir()
    for name in ("train", "dev"):
        shutil.copy(table, split / f"{name}.csv")
    data = depl.read(split, text="Titel", labels="Schlagwörter")
    assert list(data.splits) == ["train", "dev"]
    assert data.dev.texts[0] == ROWS[0][1]
    said = call("fit", split, "--out", tmp_path / "run", "--until", "features")[1]
    assert "set aside" not in said


def test_labels_by_name_find_the_ids_of_a_labels_file(table: Path, tmp_path: Path):
    shutil.copy(table, tmp_path / "train.csv")
    lines = [f'{{"id": "{i}", "name": "{name.lower()}"}}' for i, name in enumerate(TOPICS)]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    data = depl.read(tmp_path)
    assert data.labels.ids == ["0", "1", "2", "3", "4"]
    assert data.train.Y.nnz == depl.read(table).train.Y.nnz


def test_rows_that_repeat_a_document_are_joined(tmp_path: Path):
    (tmp_path / "t.csv").write_text("id,text,label\n1,wine,a\n1,wine,b\n2,oil,a\n")
    data = depl.read(tmp_path / "t.csv", id="id")
    assert data.train.ids == ["1", "2"]
    assert data.train.Y.toarray().tolist() == [[1, 1], [1, 0]]


def test_what_cannot_be_read_is_said_once(fitted: tuple[Path, str], tmp_path: Path):
    run, _ = fitted
    (tmp_path / "old.csv").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(range(256)) * 40)
    for command in (("info",), ("predict", run)):
        assert "an Excel, Word or zip file" in refused(CorpusError, *command, tmp_path / "old.csv")
    assert "Did you mean 'Titel'?" in refused(
        CorpusError, "predict", run, write(tmp_path / "r.csv"), "--text", "Titl"
    )
    assert "There is no format 'cvs'. Did you mean 'csv'?" in refused(
        CorpusError, "info", tmp_path / "r.csv", "--format", "cvs"
    )
    assert call("info", tmp_path / "r.csv", "--format", "csv", "--json")[0]


def test_a_percentage_is_no_threshold(fitted: tuple[Path, str], table: Path):
    said = refused(ConfigError, "predict", fitted[0], table, "--threshold", 80)
    assert "at most 1; got 80; for 80 % give 0.8." in said
