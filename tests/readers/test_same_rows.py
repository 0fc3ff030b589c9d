"""The same bad rows in a corpus and in documents to label: left out alike, the rest is read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.readers import read
from depl.readers.documents import Documents

FIRST = b'{"id": "first", "text": "wine", "labels": ["a"]}\n'
LAST = b'{"id": "last", "text": "oil", "labels": ["a"]}\n'
JSON_ROWS = {
    "broken JSON": (b'{"id": "x", "text": "beer"\n', "Expecting ',' delimiter"),
    "no object": (b"[1, 2]\n", "not an object but '[1, 2]'"),
    "nested too deeply": (b"[" * 100_000 + b"\n", "nested too deeply"),
    "lone surrogate": (b'{"text": "\\ud83d", "labels": ["a"]}\n', "half of a surrogate pair"),
    "surrogate as bytes": (b'{"text": "\xed\xa0\xbd", "labels": ["a"]}\n', "byte 11 is 0xed"),
    "not UTF-8": (b'{"text": "caf\xe9", "labels": ["a"]}\n', "byte 14 is 0xe9"),
    "wrong id": (b'{"id": 1.5, "text": "beer", "labels": ["a"]}\n', "id is 1.5"),
    "wrong text": (b'{"text": {"a": 1}, "labels": ["a"]}\n', "text is {'a': 1}"),
    "no text": (b'{"text": " ", "labels": ["a"]}\n', ""),
}
TABLE_ROWS = {
    "unclosed quote": (b'x,"beer,a\n', "a quote that opens here is never closed"),
    "text after a quote": (b'x,"a" quote,a\n', "expected after '\"'"),
    "too few cells": (b"x,beer\n", "2 cells where the header has 3"),
    "too many cells": (b"x,beer,wine,a\n", "4 cells where the header has 3"),
    "not UTF-8": (b"x,caf\xe9,a\n", "byte 6 is 0xe9"),
    "no text": (b"x,,a\n", ""),
}


def check_alike(path: Path, kept: list[str], place: str, detail: str) -> None:
    """Both keep these documents, and leave out one row for the same reason."""
    left_out: list[tuple[str, str]] = []
    documents = Documents([str(path)], left_out=lambda *told: left_out.append(told))
    assert [d.id for d in documents] == kept
    ((where, why),) = left_out
    assert where == f"{path.parent}/{place}"
    assert detail in why

    assert read(path.parent, on_error="skip").train.ids == kept
    with pytest.raises(CorpusError, match="--on-error skip") as caught:
        read(path.parent)
    (example,) = [x for x in str(caught.value).split("\n") if x.startswith("    ")]
    assert example.split("  ")[2] == place
    assert detail in example


@pytest.mark.parametrize(("bad", "detail"), JSON_ROWS.values(), ids=JSON_ROWS)
def test_bad_json_lines(tmp_path: Path, bad: bytes, detail: str):
    path = tmp_path / "train.jsonl"
    path.write_bytes(FIRST + bad + LAST)
    check_alike(path, ["first", "last"], "train.jsonl:2", detail)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
@pytest.mark.parametrize(("bad", "detail"), TABLE_ROWS.values(), ids=TABLE_ROWS)
def test_bad_table_rows(tmp_path: Path, suffix: str, bad: bytes, detail: str):
    # The other rows show that the file is UTF-8, and that quotes hold cells together.
    raw = 'id,text,labels\nfirst,"Gewürztraminer",a\n'.encode() + bad + b"last,oil,a\n"
    if suffix == ".tsv":
        raw, detail = raw.replace(b",", b"\t"), detail.replace(",", "\t")
    path = tmp_path / f"train{suffix}"
    path.write_bytes(gzip.compress(raw) if suffix.endswith(".gz") else raw)
    check_alike(path, ["first", "last"], f"{path.name}:3", detail)


def test_several_bad_lines_of_one_row_are_one_problem(tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_bytes(b'id,text,labels\nx,"caf\xe9\ncaf\xe9\nline",a\n' + "last,öl,ä\n".encode())
    check_alike(path, ["last"], "train.csv:2", "byte 7 is 0xe9")


def test_an_unclosed_quote_costs_its_row_even_in_a_long_table(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("depl.readers.tables._LONGEST_ROW", 500)
    lines = [f"{i},wine number {i},a" for i in range(200)]
    lines[20] = '20,"wine,a'
    path = tmp_path / "train.csv"
    path.write_text("\n".join(["id,text,labels", *lines]) + "\n")
    kept = [str(i) for i in range(200) if i != 20]
    check_alike(path, kept, "train.csv:22", "a quote that opens here is never closed")


def damaged(kind: pa.DataType) -> pa.Array:
    """Strings of which the second is not UTF-8."""
    raw = pa.array([b"wine", b"caf\xe9", b"oil"], pa.large_binary())
    offset = pa.large_string() if kind == pa.large_string() else pa.string()
    binary = raw if kind == pa.large_string() else raw.cast(pa.binary())
    strings = pa.Array.from_buffers(offset, 3, binary.buffers())
    return strings.dictionary_encode() if pa.types.is_dictionary(kind) else strings


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_damaged_parquet_strings(tmp_path: Path, kind: pa.DataType):
    table = {"id": ["first", "x", "last"], "text": damaged(kind), "labels": ["a"] * 3}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    detail = "text: byte 4 is 0xe9"
    check_alike(tmp_path / "train.parquet", ["first", "last"], "train.parquet:2", detail)


def test_parquet_values_of_the_wrong_type(tmp_path: Path):
    table = {"id": [1, 2], "text": [{"w": 1}, {"w": 2}], "labels": ["a", "a"]}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    with pytest.raises(
        CorpusError, match=r"wrong type: 2 found\n    train.parquet:1  text is \{'w"
    ):
        read(tmp_path)
    left_out: list[tuple[str, str]] = []
    path = tmp_path / "train.parquet"
    assert not list(Documents([str(path)], left_out=lambda *told: left_out.append(told)))
    assert [why for _, why in left_out] == ["text is {'w': 1}", "text is {'w': 2}"]


def test_parquet_value_that_python_has_no_type_for(tmp_path: Path):
    # Python's datetime has no nanoseconds, so pyarrow cannot give the second id.
    times = pa.array([1_000, 1_001], pa.timestamp("ns"))
    table = {"id": times, "text": ["wine", "oil"], "labels": ["a", "a"]}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    left_out: list[tuple[str, str]] = []
    path = tmp_path / "train.parquet"
    assert not list(Documents([str(path)], left_out=lambda *told: left_out.append(told)))
    assert [where for where, _ in left_out] == [f"{path}:1", f"{path}:2"]
    assert "id is " in left_out[0][1]
    with pytest.raises(CorpusError, match="wrong type: 2 found"):
        read(tmp_path)


def test_damaged_strings_in_lists_of_labels_cost_their_row(tmp_path: Path):
    labels = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), damaged(pa.string()))
    table = {"id": ["first", "x", "last"], "text": ["wine", "beer", "oil"], "labels": labels}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    assert read(tmp_path, on_error="skip").train.ids == ["first", "last"]
    # Documents to label need no labels, so here nothing is wrong with them.
    documents = Documents([str(tmp_path / "train.parquet")], left_out=print)
    assert [d.id for d in documents] == ["first", "x", "last"]


@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_files_with_a_misleading_name_cannot_be_read(tmp_path: Path, mode):
    packed = gzip.compress(FIRST)
    (tmp_path / "train.jsonl").write_bytes(packed)
    with pytest.raises(CorpusError, match=r"to their end: 1 found\n    train.jsonl:1  compressed"):
        read(tmp_path, on_error=mode)
    with pytest.raises(CorpusError, match=r"Cannot read .*/train.jsonl:1: compressed data"):
        list(Documents([str(tmp_path / "train.jsonl")], left_out=print))


def test_compressed_parquet_cannot_be_read(tmp_path: Path):
    pq.write_table(pa.table({"text": ["wine"], "labels": ["a"]}), tmp_path / "plain")
    path = tmp_path / "train.parquet.gz"
    path.write_bytes(gzip.compress((tmp_path / "plain").read_bytes()))
    with pytest.raises(CorpusError, match=r"train.parquet.gz  .*must be a plain file"):
        read(tmp_path)
    with pytest.raises(
        CorpusError, match=r"Cannot read .*train.parquet.gz: .*must be a plain file"
    ):
        list(Documents([str(path)], left_out=print))


def test_every_suffix_of_json_lines_is_known_to_both(tmp_path: Path):
    (tmp_path / "train.ndjson").write_bytes(FIRST)
    (tmp_path / "labels.ndjson").write_text(json.dumps({"id": "a", "name": "apples"}))
    data = read(tmp_path)
    assert (data.train.ids, data.labels.names) == (["first"], ["apples"])
    documents = Documents([str(tmp_path / "train.ndjson")], left_out=print)
    assert [d.id for d in documents] == ["first"]


def test_of_two_columns_with_one_name_the_first_counts(tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_text("text,Text,labels\nwine,oil,a\n")
    assert read(tmp_path).train.texts == ["wine"]
    assert [d.text for d in Documents([str(path)], left_out=print)] == ["wine"]


def test_only_asked_for_columns_of_parquet_are_read(tmp_path: Path):
    other = damaged(pa.string())
    table = {"id": ["1", "2", "3"], "text": ["wine"] * 3, "other": other, "labels": ["a"] * 3}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    assert len(read(tmp_path).train) == 3


def test_a_labels_file_may_have_other_fields_of_any_type(tmp_path: Path):
    (tmp_path / "train.jsonl").write_bytes(FIRST)
    label = {"id": "a", "name": "apples", "description": ["not", "a", "text"], "rank": {"of": 3}}
    (tmp_path / "labels.jsonl").write_text(json.dumps(label))
    assert list(read(tmp_path).labels) == [Label("a", "apples", description="not\na\ntext")]
