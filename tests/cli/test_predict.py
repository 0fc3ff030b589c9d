"""Documents in, suggestions out: every format, bad rows, and interruptions."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import multiprocessing
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

import depl
from depl.cli import interrupts
from depl.cli import predict as predict_command
from depl.cli import predicted as predicted_command
from depl.cli.app import app
from depl.core.corpus import Dataset, Label
from depl.core.errors import ConfigError, CorpusError, DeplError, RunError
from depl.pipeline.fit import fit
from depl.readers.columns import Columns
from depl.readers.document import Document
from depl.readers.documents import Documents, chunks
from depl.readers.resuming import SuggestionFile

COMPRESSED = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": lambda raw: zstandard.ZstdCompressor().compress(raw),
}
THREE = [
    Document("a", 'sparkling "wine", with\ta tab'),
    Document("b", "virgin\nolive oil"),
    Document("c", "Käse 😀 cheese"),
]


def predicted(*arguments: object, stdin: str | bytes | None = None):
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)], input=stdin)
    assert result.exit_code == 0, (result.exception, result.output)
    return result


def refused(kind: type[DeplError], *arguments: object, stdin: str | bytes | None = None) -> str:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)], input=stdin)
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return str(result.exception)


def objects(text: str) -> list[dict]:
    return [json.loads(line) for line in text.split("\n") if line]


def read(*names: object, **options) -> tuple[list[Document], list[tuple[str, str]]]:
    """The documents without their places, and what was left out."""
    left_out: list[tuple[str, str]] = []
    sources = [str(name) for name in names]
    found = Documents(sources, left_out=lambda *told: left_out.append(told), **options)
    return [Document(d.id, d.text) for d in found], left_out


def as_jsonl(rows: list[Document]) -> bytes:
    return "".join(json.dumps({"id": row.id, "text": row.text}) + "\n" for row in rows).encode()


def as_csv(rows: list[Document], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([("ID", "Text", "labels"), *((row.id, row.text, "[broken") for row in rows)])
    return text.getvalue().encode()


def numbered(n: int) -> list[Document]:
    """Documents about three things, with one suggestion each that is certain."""
    texts = ("sparkling wine", "virgin olive oil", "radioactive waste of nuclear reactors")
    return [Document(f"d{i}", f"{texts[i % 3]} {i}") for i in range(n)]


# Formats in


@pytest.mark.parametrize("compression", COMPRESSED)
@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".csv", ".tsv"])
def test_rows_are_read_from_every_format_compressed_or_not(tmp_path, suffix, compression):
    raw = as_jsonl(THREE) if "j" in suffix else as_csv(THREE, "," if suffix == ".csv" else "\t")
    path = tmp_path / f"new{suffix}{compression}"
    path.write_bytes(COMPRESSED[compression](raw))
    assert read(path) == (THREE, [])


def test_rows_are_read_from_parquet(tmp_path):
    table = pa.table({"id": [1, 2, 3], "other": [0.5] * 3, "Text": [d.text for d in THREE]})
    pq.write_table(table, tmp_path / "new.parquet")
    expected = [Document(str(i), d.text) for i, d in enumerate(THREE, 1)]
    assert read(tmp_path / "new.parquet") == (expected, [])


def test_with_lines_a_line_of_plain_text_is_a_document_with_its_number(tmp_path):
    path = tmp_path / "new.txt"
    path.write_bytes("\ufeffone\r\n\n  \n{two}\u2028still two\nthree".encode())
    documents, left_out = read(path, lines=True)
    expected = [("1", "one"), ("4", "{two}\u2028still two"), ("5", "three")]
    assert (documents, left_out) == ([Document(*pair) for pair in expected], [])


def test_files_without_a_telling_name_are_recognised_by_their_first_line(tmp_path):
    contents = {"jsonl": as_jsonl(THREE), "csv": as_csv(THREE), "tsv": as_csv(THREE, "\t")}
    for name, raw in contents.items():
        (tmp_path / f"from-{name}").write_bytes(b"\n" * (name == "jsonl") + raw)
        assert read(tmp_path / f"from-{name}") == (THREE, [])
    path = tmp_path / "plain"
    path.write_text("some text, with a comma\n")
    assert read(path) == ([Document(str(path), "some text, with a comma\n")], [])
    assert read(path, lines=True) == ([Document("1", "some text, with a comma")], [])


def test_the_format_can_be_forced(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(as_jsonl(THREE))
    assert read(path, format="jsonl") == (THREE, [])
    with pytest.raises(CorpusError, match="no format 'xml'"):
        read(path, format="xml")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_can_be_named(tmp_path, suffix):
    path = tmp_path / f"new{suffix}"
    if suffix == ".csv":
        path.write_text("key,Body,text\n7,wine,no\n")
    elif suffix == ".jsonl":
        path.write_text('{"key": "7", "body": "wine", "text": "no"}\n')
    else:
        pq.write_table(pa.table({"key": [7], "Body": ["wine"], "text": ["no"]}), path)
    columns = Columns.asked(text="body", id="key")
    assert read(path, columns=columns) == ([Document("7", "wine")], [])


def test_missing_columns_are_named_with_those_that_are_there(tmp_path):
    (tmp_path / "t.csv").write_text("id,year\n1,1999\n")
    with pytest.raises(CorpusError, match=r"has the text\?.* --text NAME .*columns are: id, year"):
        read(tmp_path / "t.csv")
    with pytest.raises(CorpusError, match=r"no column 'key', which --id .*asks for"):
        read(tmp_path / "t.csv", columns=Columns.asked(id="key"))
    pq.write_table(pa.table({"year": ["1999"]}), tmp_path / "t.parquet")
    with pytest.raises(CorpusError, match="Its only column is 'year'"):
        read(tmp_path / "t.parquet")


def test_columns_are_those_of_the_run_or_found_and_said(tmp_path):
    (tmp_path / "t.csv").write_text("PPN;Titel;Abstract\n7;Wein;Vom Wein\n")
    said = []
    found, _ = read(tmp_path / "t.csv", tell=lambda *told: said.append(told))
    assert found == [Document("7", "Wein\nVom Wein")]
    assert said[0][1:] == (
        "separated by semicolons, UTF-8",
        Columns(("Titel", "Abstract"), (), "PPN"),
    )
    kept = Columns(("abstract", "Inhalt"), ("Thema",), "Titel")
    assert read(tmp_path / "t.csv", kept=kept)[0] == [Document("Wein", "Vom Wein")]


def test_rows_of_several_files_get_ids_that_differ(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("wine\noil\n")
    documents, _ = read(tmp_path / "a.txt", tmp_path / "b.txt", lines=True)
    assert [d.id for d in documents] == [f"{tmp_path}/{n}.txt:{i}" for n in "ab" for i in (1, 2)]


def test_misnamed_compressed_data_is_told_apart_from_text(tmp_path):
    for name, compress in list(COMPRESSED.items())[1:]:
        (tmp_path / f"{name[1:]}.jsonl").write_bytes(compress(as_jsonl(THREE)))
        with pytest.raises(CorpusError, match="compressed data or Parquet"):
            read(tmp_path / f"{name[1:]}.jsonl")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="a pipe has no path here")
def test_a_pipe_given_as_a_path_is_read(fitted_run, quick_python):
    reading, writing = os.pipe()
    os.write(writing, b"sparkling wine\n")
    os.close(writing)
    command = ("-m", "depl", "predict", fitted_run, "/dev/fd/0", "--json", "-k", 1)
    with open(reading) as pipe:
        process = quick_python(*command, stdin=pipe, stdout=subprocess.PIPE)
    with process:
        found = objects(process.stdout.read())
        assert process.wait() == 0
    assert found[0]["labels"][0]["name"] == "wine"


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 6), st.integers(1, 40))
def test_chunks_keep_order_and_limits(lengths, size, characters):
    documents = [Document(str(i), "x" * n) for i, n in enumerate(lengths)]
    made = list(chunks(iter(documents), size, characters))
    assert [d for chunk in made for d in chunk] == documents
    for chunk in made:
        assert 1 <= len(chunk) <= size
        assert sum(len(d.text) for d in chunk[:-1]) < characters


@pytest.mark.parametrize("compression", [".gz", ".bz2", ".xz", ".zst", ""])
def test_position_reaches_the_total(tmp_path, compression):
    path = tmp_path / f"n.jsonl{compression}"
    path.write_bytes(COMPRESSED[compression](as_jsonl(numbered(20_000))))
    pq.write_table(pa.table({"text": ["wine"] * 5000}), tmp_path / "n.parquet")
    documents = Documents([str(path), str(tmp_path / "n.parquet")], left_out=print)
    positions = [documents.position for _ in documents]
    assert positions == sorted(positions)
    assert documents.total == path.stat().st_size + (tmp_path / "n.parquet").stat().st_size
    assert len(set(positions)) > 5
    assert documents.position == documents.total


@pytest.mark.parametrize("compression", COMPRESSED)
def test_position_moves_within_a_file(tmp_path, compression):
    path = tmp_path / f"n.txt{compression}"
    text = "\n".join(os.urandom(500).hex() for _ in range(2_000)).encode()
    path.write_bytes(COMPRESSED[compression](text))
    documents = Documents([str(path)], left_out=print, lines=True)
    positions = [documents.position for _ in documents]
    assert positions == sorted(positions)
    assert len(set(positions)) > 2


# Bad rows


def test_bad_rows_of_json_lines_are_left_out_with_their_reasons(tmp_path):
    path = tmp_path / "t.jsonl"
    good = b'{"id": 5, "text": "wine"}\n'
    bad = [b"no json", b'{"id": 1}', b"[1]", b'{"text": {}}', b'{"id": 1.5, "text": "a"}']
    bad += [b'{"text": "\xe4"}', b'{"text": "\\ud83d"}', b'{"text": null}', b'{"text": " "}']
    path.write_bytes(good + b"\n".join(bad) + b"\n" + good)
    documents, left_out = read(path)
    assert documents == [Document("5", "wine")] * 2
    left_out.sort(key=lambda told: int(told[0].rpartition(":")[2]))  # some are found ahead
    assert [place for place, _ in left_out] == [f"{path}:{i}" for i in range(2, 11)]
    reasons = [why for _, why in left_out]
    expected = ["broken JSON", "no text", "not an object", "text is {}", "id is 1.5"]
    expected += ["not UTF-8: byte 11 is 0xe4", "surrogate", "no text", "no text"]
    assert all(part in why for part, why in zip(expected, reasons, strict=True)), reasons


def test_bad_rows_of_tables_do_not_cost_their_neighbours(tmp_path):
    path = tmp_path / "t.csv"
    rows = ["id,text", "a,wine", "b,one,two", '"c,never closed', "d,oil", 'e,"x"y', "f,", "g,Öl"]
    path.write_bytes("\n".join(rows).encode() + b"\nh,\xe4\n" + b'i,"in two\nlines"\n')
    documents, left_out = read(path)
    assert [d.id for d in documents] == ["a", "d", "g", "i"]
    assert documents[-1].text == "in two\nlines"
    places = [int(place.rpartition(":")[2]) for place, _ in left_out]
    assert sorted(places) == [3, 4, 6, 7, 9]
    assert sum("never closed" in why or "expected after" in why for _, why in left_out) == 2


def test_an_unclosed_quote_does_not_swallow_the_rest_of_a_long_table(tmp_path, monkeypatch):
    monkeypatch.setattr("depl.readers.tables._LONGEST_ROW", 500)
    lines = [f"{i},wine number {i}" for i in range(200)]
    lines[20] = '20,"wine'
    (tmp_path / "t.csv").write_text("\n".join(["id,text", *lines]) + "\n")
    documents, left_out = read(tmp_path / "t.csv")
    assert [d.id for d in documents] == [str(i) for i in range(200) if i != 20]
    assert left_out == [(f"{tmp_path}/t.csv:22", "a quote that opens here is never closed")]


def test_bad_rows_of_parquet_are_left_out(tmp_path):
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\4\0\0\0\5\0\0\0"), pa.py_buffer(b"wine\xe4")]
    )
    pq.write_table(pa.table({"text": broken}), tmp_path / "broken.parquet")
    documents, left_out = read(tmp_path / "broken.parquet")
    assert documents == [Document("1", "wine")]
    assert left_out == [(f"{tmp_path}/broken.parquet:2", "not UTF-8: text: byte 1 is 0xe4")]
    pq.write_table(pa.table({"text": ["a", None, ""]}), tmp_path / "none.parquet")
    documents, left_out = read(tmp_path / "none.parquet")
    assert [d.id for d in documents] == ["1"]
    assert [why for _, why in left_out] == ["no text", "no text"]


def test_damaged_files_stop_with_the_place(tmp_path):
    rows = as_jsonl([Document(str(i), os.urandom(50).hex()) for i in range(5000)])
    for suffix in (".gz", ".bz2", ".xz", ".zst"):
        path = tmp_path / f"cut.jsonl{suffix}"
        path.write_bytes(COMPRESSED[suffix](rows)[:-2000])
        with pytest.raises(
            CorpusError, match=r"Cannot read .*cut.*:\d+: .* copy or unpack it again"
        ):
            read(path)
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(CorpusError, match="Cannot read"):
        read(tmp_path / "cut.parquet")


def test_left_out_rows_are_reported_and_counted(fitted_run, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(3)) + b"oops\n{}\n")
    result = predicted(fitted_run, path, "--json")
    assert len(objects(result.stdout)) == 3
    told = result.stderr.splitlines()
    assert told[0].startswith(f"{path}:4 left out: broken JSON")
    assert told[1] == f"{path}:5 left out: no text"
    assert told[2] == "Left out: 2 of 5 rows."


def test_nothing_readable_is_an_error_that_touches_no_output(fitted_run, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("precious\n")
    (tmp_path / "t.jsonl").write_text("oops\n")
    message = refused(
        *(CorpusError, fitted_run, tmp_path / "t.jsonl", "--output", output, "--overwrite")
    )
    assert "No document could be read from" in message
    assert "1 row was left out" in message
    assert output.read_text() == "precious\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.jsonl", "t.jsonl"]


# Out


def test_every_output_holds_the_same_suggestions(fitted_run, dataset: Dataset, tmp_path):
    path = tmp_path / "dev.jsonl"
    pairs = zip(dataset.dev.ids, dataset.dev.texts, strict=True)
    path.write_bytes(as_jsonl([Document(*pair) for pair in pairs]))
    model = depl.Classifier.load(fitted_run)
    expected = [
        (own_id, rank, label.id, label.name, round(score, 4))
        for own_id, row in zip(
            dataset.dev.ids, model.predict(dataset.dev.texts, 3).rows(model.labels), strict=True
        )
        for rank, (label, score) in enumerate(row, 1)
    ]

    def made(name: str) -> Path:
        predicted(fitted_run, path, "-k", 3, "--output", tmp_path / "new" / name)
        return tmp_path / "new" / name

    printed = predicted(fitted_run, path, "-k", 3, "--json").stdout
    assert made("o.jsonl").read_text(encoding="utf-8") == printed
    flat = [
        (row["id"], rank, x["id"], x["name"], x["score"])
        for row in objects(printed)
        for rank, x in enumerate(row["labels"], 1)
    ]
    assert flat == expected
    header = ["id", "rank", "label_id", "label_name", "score"]
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        with made(f"o{suffix}").open(newline="", encoding="utf-8") as file:
            first, *rows = csv.reader(file, delimiter=delimiter)
        assert first == header
        assert [(a, int(b), c, d, float(e)) for a, b, c, d, e in rows] == expected
    table = pq.read_table(made("o.parquet"))
    assert table.column_names == header
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert [(*row[:4], round(row[4], 4)) for row in rows] == expected
    for suffix, unpack in ((".gz", gzip), (".bz2", bz2), (".xz", lzma)):
        assert unpack.decompress(made(f"o.jsonl{suffix}").read_bytes()).decode() == printed
    names = {"o.jsonl", "o.csv", "o.tsv", "o.parquet", "o.jsonl.gz", "o.jsonl.bz2", "o.jsonl.xz"}
    assert {p.name for p in (tmp_path / "new").iterdir()} == names  # no log, no parts


def test_threshold_leaves_out_lower_scores(fitted_run):
    command = (fitted_run, "--lines", "--json")
    stdin = "sparkling wine\nvirgin olive oil\n"
    everything = objects(predicted(*command, stdin=stdin).stdout)
    first, second = (everything[0]["labels"][i]["score"] for i in (0, 1))
    threshold = (first + second) / 2
    kept = objects(predicted(*command, "--threshold", threshold, stdin=stdin).stdout)
    for row, full in zip(kept, everything, strict=True):
        assert row["labels"] == [x for x in full["labels"] if x["score"] >= threshold]
    assert len(kept[0]["labels"]) == 1
    nothing = objects(predicted(*command, "--threshold", 1, stdin=stdin).stdout)
    assert nothing == [{"id": "1", "labels": []}, {"id": "2", "labels": []}]


def test_a_text_in_place_of_a_file_is_told_where_texts_go(fitted_run):
    said = refused(CorpusError, fitted_run, "Sparkling wine from vineyards")
    assert "A text is read from standard input: echo 'TEXT' | depl" in said


def test_a_document_without_a_label_says_so(fitted_run):
    said = predicted(fitted_run, "--lines", "--threshold", 1, stdin="sparkling wine\n").stdout
    assert said.splitlines() == ["1  sparkling wine", "     no label that is sure enough"]


def test_documents_below_the_threshold_have_no_row_in_tables(fitted_run, tmp_path):
    for name in ("o.csv", "o.parquet"):
        predicted(fitted_run, "--threshold", 1, "--output", tmp_path / name, stdin="wine\n")
    assert (tmp_path / "o.csv").read_text() == "id,rank,label_id,label_name,score\n"
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 0


def test_cells_that_a_spreadsheet_would_calculate_are_made_safe(own_run, tmp_path):
    CliRunner().invoke(app, ["labels", str(own_run), "rename", "wine", "=1+2"])
    texts = tmp_path / "t.jsonl"
    texts.write_bytes(as_jsonl([Document("@a", "sparkling wine"), Document("-7", "wine")]))
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        predicted(own_run, texts, "-k", 1, "--output", tmp_path / f"o{suffix}")
        lines = (tmp_path / f"o{suffix}").read_text().splitlines()
        rows = csv.DictReader(lines, delimiter=delimiter)
        named = [(row["id"], row["label_name"]) for row in rows]
        assert named == [("'@a", "'=1+2"), ("-7", "'=1+2")]
    assert objects(predicted(own_run, texts, "-k", 1, "--json").stdout)[0]["id"] == "@a"


def test_texts_are_printed_as_they_are_but_for_control_codes(fitted_run):
    stdin = "[red]wine :wine_glass: \\ \x1b[2J olive oil\n"
    printed = predicted(fitted_run, "-k", 1, stdin=stdin).stdout
    assert printed.split("\n")[0].rstrip() == "1  [red]wine :wine_glass: \\ \\x1b[2J olive oil"


def test_what_is_a_document_is_the_same_for_predict_and_explain(fitted_run, tmp_path):
    path = tmp_path / "letter.txt"
    path.write_bytes("Käse und\nsparkling wine\n".encode("cp1252"))
    (row,) = objects(predicted(fitted_run, path, "--json", "-k", 1).stdout)
    explained = CliRunner().invoke(
        app, ["explain", str(fitted_run), str(path), "-k", "1", "--json"]
    )
    (why,) = json.loads(explained.stdout)
    assert (row["id"], row["labels"][0]["name"]) == (str(path), why["label"]["name"])
    assert row["labels"][0]["score"] == round(why["probability"], 4)
    piped = predicted(fitted_run, "--json", "-k", 1, stdin=path.read_bytes())
    assert objects(piped.stdout) == [row | {"id": "1"}]
    assert "--lines" in piped.stderr
    path.write_text("Käse und\nsparkling wine\n")
    assert len(objects(predicted(fitted_run, path, "--lines", "--json").stdout)) == 2


def test_suggestions_do_not_depend_on_the_chunk(fitted_run, tmp_path, monkeypatch):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(40)))
    whole = predicted(fitted_run, path, "--json").stdout
    monkeypatch.setattr(predict_command, "_DOCUMENTS", 7)
    assert predicted(fitted_run, path, "--json").stdout == whole
    monkeypatch.setattr(predict_command, "_CHARACTERS", 1)
    assert predicted(fitted_run, path, "--json").stdout == whole


def test_a_closed_pipe_ends_quietly(fitted_run, tmp_path, quick_python):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(3_000)))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    for options in (["--json"], ["-k", 2]):
        with quick_python("-m", "depl", "predict", fitted_run, path, *options, **pipes) as process:
            assert process.stdout.readline().endswith("\n")
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == ("", 0)


def test_the_bar_moves_by_bytes_and_stays_out_of_standard_output(fitted_run, tmp_path, monkeypatch):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(40)))
    expected = predicted(fitted_run, path, "--json").stdout
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(predicted_command, "err", terminal)
    monkeypatch.setattr(predict_command, "_DOCUMENTS", 10)
    assert predicted(fitted_run, path, "--json").stdout == expected
    shown = terminal.file.getvalue()
    assert "40 documents" in shown
    assert "100%" in shown


# Files that exist, and interruptions


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal")
def test_no_bar_is_drawn_into_what_a_pipe_shows(fitted_run, tmp_path, quick_python):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(40)))
    mine, terminal = os.openpty()
    command = ("-m", "depl", "predict", fitted_run, path, "--json")
    with (
        open(terminal, "wb", buffering=0) as err,
        quick_python(*command, stdout=subprocess.PIPE, stderr=err) as process,
    ):
        assert len(process.stdout.read().splitlines()) == 40
        assert process.wait() == 0
    # Linux raises OSError, as nothing was written and nobody can write any more.
    with open(mine, "rb", buffering=0) as shown, suppress(OSError):
        assert shown.read(100) == b""


def test_existing_output_is_kept_unless_told(fitted_run, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("precious\n")
    assert "--overwrite" in refused(RunError, fitted_run, "--output", output, stdin="wine\n")
    assert output.read_text() == "precious\n"
    predicted(fitted_run, "--output", output, "--overwrite", stdin="wine\n")
    assert objects(output.read_text())[0]["id"] == "1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "o.jsonl", "--json"], "one of the two"),
        (["--resume"], "name it with --output"),
        (["--output", "o.jsonl", "--resume", "--overwrite"], "one of the two"),
        (["--output", "o.docx"], "suffix"),
        (["--output", "o.parquet.gz"], "suffix"),
        (["--threshold", "nan"], "nan"),
    ],
)
def test_options_that_do_not_go_together_are_refused(fitted_run, options, message):
    assert message in refused(ConfigError, fitted_run, *options, stdin="wine\n")


def test_output_over_its_own_input_is_refused(fitted_run, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(THREE))
    message = refused(ConfigError, fitted_run, path, "--output", path, "--overwrite")
    assert "is also the input" in message
    assert path.read_bytes() == as_jsonl(THREE)


class InterruptedHereError(Exception):
    pass


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(predict_command, "_DOCUMENTS", 10)


def interrupt(fitted_run: Path, path: Path, output: Path, after: int, *options: object) -> None:
    """Stop in the middle of the chunk after so many."""
    real, calls = SuggestionFile.append, []

    def append(self, documents, rows):
        calls.append(1)
        if len(calls) > after:
            raise InterruptedHereError
        real(self, documents, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SuggestionFile, "append", append)
        arguments = ["predict", fitted_run, path, "--output", output, *options]
        result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert isinstance(result.exception, InterruptedHereError)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".jsonl.gz", ".csv.zst", ".parquet"])
def test_resumed_output_has_the_same_bytes(fitted_run, tmp_path, suffix, few):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(25)) + b"oops\n" + as_jsonl(numbered(20)))
    first = depl.Classifier.load(fitted_run).predict([d.text for d in numbered(3)], 1).scores
    # With a threshold that the best labels of only some documents reach, tables have gaps.
    options = ("--threshold", float(first.max())) if few else ()
    whole, output = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    predicted(fitted_run, path, "--output", whole, *options)
    interrupt(fitted_run, path, output, 1, *options)
    interrupt(fitted_run, path, output, 2, *options, "--resume")
    result = predicted(fitted_run, path, "--output", output, "--resume", *options)
    assert "30 documents were finished before" in result.stderr
    assert "45 documents → " in result.stderr
    assert result.stderr.count("t.jsonl:26 left out") == 0  # told the first time
    assert "Left out: 1 of 46 rows" in result.stderr
    assert output.read_bytes() == whole.read_bytes()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("change", ["torn line", "lost end", "lost file", "torn log", "no point"])
def test_resume_survives_what_a_crash_leaves_behind(fitted_run, tmp_path, change):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    log = tmp_path / "out.jsonl.resume.jsonl"
    predicted(fitted_run, path, "--output", whole)
    interrupt(fitted_run, path, output, 3)
    if change == "torn line":
        output.write_bytes(output.read_bytes() + b'{"id": "d30", "lab')
    elif change == "lost end":
        output.write_bytes(output.read_bytes()[:-700])
    elif change == "lost file":
        output.unlink()
    elif change == "torn log":
        log.write_bytes(log.read_bytes()[:-9])
    else:
        log.write_bytes(b'{"depl": ')
    predicted(fitted_run, path, "--output", output, "--resume")
    assert output.read_bytes() == whole.read_bytes()
    assert not log.exists()


@pytest.mark.usefixtures("small_chunks")
def test_lost_parts_of_parquet_are_made_again(fitted_run, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    whole, output = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    predicted(fitted_run, path, "--output", whole)
    interrupt(fitted_run, path, output, 3)
    assert not output.exists()
    (tmp_path / "out.parquet.parts" / "000001.parquet").unlink()
    assert "10 documents" in predicted(fitted_run, path, "--output", output, "--resume").stderr
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("small_chunks")
def test_unfinished_output_is_kept_until_told(fitted_run, tmp_path):
    path, output = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    interrupt(fitted_run, path, output, 2)
    kept = output.read_bytes()
    assert kept.count(b"\n") == 20
    message = refused(RunError, fitted_run, path, "--output", output)
    assert "unfinished output" in message
    assert "--resume" in message
    assert output.read_bytes() == kept
    predicted(fitted_run, path, "--output", output, "--overwrite")
    assert output.read_bytes().count(b"\n") == 45


@pytest.mark.usefixtures("small_chunks")
def test_resume_with_something_else_is_refused_and_nothing_is_lost(
    fitted_run, dataset: Dataset, tmp_path
):
    path, output = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    interrupt(fitted_run, path, output, 2)
    kept = output.read_bytes()
    again = ("--output", output, "--resume")
    assert "begun with k 5, now 3" in refused(RunError, fitted_run, path, *again, "-k", 3)
    assert "threshold None, now 0.5" in refused(
        RunError, fitted_run, path, *again, "--threshold", 0.5
    )
    other = fit(dataset.train, tmp_path / "other", depl.Config.from_dict({"linear": {"C": 3.0}}))
    assert "begun with run " in refused(RunError, other.path, path, *again)
    changed = numbered(45)
    changed[3] = Document("d3", "changed")
    for documents in (changed, numbered(15)):
        path.write_bytes(as_jsonl(documents))
        message = refused(RunError, fitted_run, path, *again)
        assert "the first 20 documents of this input are not those" in message
    assert output.read_bytes() == kept


@pytest.mark.usefixtures("small_chunks")
def test_the_same_run_elsewhere_and_the_same_documents_packed_can_be_resumed(
    fitted_run, own_run, tmp_path
):
    path, output = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    interrupt(fitted_run, path, output, 2)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(as_csv(numbered(45))))
    predicted(own_run, packed, "--output", output, "--resume")
    assert output.read_text() == predicted(fitted_run, path, "--json").stdout


@pytest.mark.usefixtures("small_chunks")
def test_a_second_process_cannot_write_the_same_output(fitted_run, tmp_path):
    path, output = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    interrupt(fitted_run, path, output, 2)
    row = [[(Label("17", "customs duty"), 0.5)]]
    with SuggestionFile(output, resume=True, overwrite=False) as first:
        first.begin(json.loads((tmp_path / "out.jsonl.resume.jsonl").read_text().split("\n")[0]))
        list(first.rest_of(iter(numbered(20))))
        first.append([Document("x", "y")], row)
        message = refused(RunError, fitted_run, path, "--output", output, "--overwrite")
    assert "Another process is writing" in message


@pytest.mark.usefixtures("small_chunks")
def test_a_repaired_file_can_be_resumed(fitted_run, tmp_path):
    path, output = tmp_path / "t.jsonl.gz", tmp_path / "out.jsonl"
    rows = [Document(d.id, f"{d.text} {os.urandom(4000).hex()}") for d in numbered(100)]
    path.write_bytes(gzip.compress(as_jsonl(rows))[:-150_000])
    said = refused(CorpusError, fitted_run, path, "--output", output)
    assert re.search(r"\d+ documents are finished, and --resume continues\.", said)
    assert "--resume" not in refused(CorpusError, fitted_run, path)  # nothing is kept
    path.write_bytes(gzip.compress(as_jsonl(rows)))
    done = predicted(fitted_run, path, "--output", output, "--resume").stderr
    assert "documents were finished before" in done
    assert output.read_text() == predicted(fitted_run, path, "--json").stdout


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])  # written by line, and as a whole
def test_a_killed_process_is_resumed_to_the_same_bytes(fitted_run, tmp_path, suffix):
    path, output, whole = tmp_path / "in.jsonl", tmp_path / f"out{suffix}", tmp_path / f"a{suffix}"
    path.write_bytes(as_jsonl(numbered(45)))
    predicted(fitted_run, path, "--output", whole)
    real, calls = SuggestionFile.append, []

    def append(self, documents, rows):
        calls.append(1)
        if len(calls) > 3:
            signal.pause()  # until it is killed
        real(self, documents, rows)

    # A fork has all libraries loaded; a new interpreter would take seconds to load them.
    processes = multiprocessing.get_context("fork")
    command = ["predict", str(fitted_run), str(path), "--output", str(output)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SuggestionFile, "append", append)
        process = processes.Process(target=app, args=(command,))
        process.start()
    log = tmp_path / f"out{suffix}.resume.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_bytes().count(b"\n") == 4):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    resumed = predicted(fitted_run, path, "--output", output, "--resume").stderr
    assert "30 documents were finished before" in resumed
    assert output.read_bytes() == whole.read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {path.name, output.name, whole.name}


def test_ctrl_c_says_how_to_go_on(fitted_run, tmp_path, monkeypatch):
    monkeypatch.setattr(predict_command, "_DOCUMENTS", 10)
    path, output = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(as_jsonl(numbered(45)))
    real = depl.Classifier.predict
    calls = []

    def predict(self, texts, k):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, texts, k)

    monkeypatch.setattr(depl.Classifier, "predict", predict)
    arguments = ["predict", str(fitted_run), str(path), "--output", str(output)]
    assert CliRunner().invoke(app, arguments).exit_code == 130
    said = "Interrupted; 20 documents are finished, and --resume continues."
    assert interrupts.last_words() == (said, 130)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_one_sentence_and_the_usual_exit_code(
    fitted_run, tmp_path, quick_python, number, code
):
    texts, output = tmp_path / "t.jsonl", tmp_path / "o.jsonl"
    texts.write_text('{"text": "sparkling wine"}\n' * 300_000)  # more than it does by then
    command = ("-m", "depl", "predict", fitted_run, texts, "--output", output)
    log = tmp_path / "o.jsonl.resume.jsonl"
    with quick_python(*command, stderr=subprocess.PIPE) as child:
        while not log.exists() or log.read_bytes().count(b"\n") < 2:
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(number)
        said = child.stderr.read().strip()
        assert child.wait() == code
    word = "Interrupted" if number == signal.SIGINT else "Terminated"
    assert re.fullmatch(rf"{word}; [\d,]+ documents are finished, and --resume continues\.", said)


def test_resuming_what_is_finished_is_done_at_once(fitted_run, tmp_path):
    output = tmp_path / "o.jsonl"
    predicted(fitted_run, "--output", output, stdin="wine\n")
    before = output.read_bytes()
    told = predicted(fitted_run, "--output", output, "--resume", stdin="wine\n").stderr
    assert "is finished already" in told
    assert output.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_full_standard_output_is_one_sentence(fitted_run, tmp_path, quick_python, options):
    (tmp_path / "wine.txt").write_text("wine\n")
    command = ("-m", "depl", "predict", fitted_run, *options)
    with (tmp_path / "wine.txt").open() as wine, open("/dev/full", "w") as full:
        process = quick_python(*command, stdin=wine, stdout=full, stderr=subprocess.PIPE)
    with process:
        said = process.stderr.read()
        assert process.wait() == 2
    assert said == "Error: Cannot read or write standard output: No space left on device.\n"


def test_another_model_suggests_where_it_is_asked_for(fitted_run):
    text = "virgin olive oil"
    found = objects(predicted(fitted_run, "--json", "--model", "svm", stdin=text).stdout)
    ranking = depl.Classifier.load(fitted_run).all_rankings([text], 5)["svm"]
    labels = depl.Classifier.load(fitted_run).labels
    assert [x["id"] for x in found[0]["labels"]] == [labels[j].id for j in ranking.indices[0]]
    said = refused(ConfigError, fitted_run, "--model", "svm", "--threshold", "f1", stdin=text)
    assert "this is the model svm" in said
