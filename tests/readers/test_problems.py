"""Bad input of every kind: one error that lists it all, or rows left out and counted."""

from __future__ import annotations

import bz2
import gzip
import json
import logging
import lzma
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.readers.reading import refusal, skipped

from depl.core.corpus import Label
from depl.readers import read
from depl.readers.problems import Kind, Problems

GOOD = '{"id": "good", "text": "wine", "labels": ["a"]}'
LABELS = '{"id": "a", "name": "apples"}\n{"id": "b", "name": "beer"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "labels.jsonl").write_text(LABELS)
    (tmp_path / "train.jsonl").write_text(GOOD + "\n")
    return tmp_path


# Rows that can be left out

BAD_ROWS = {
    "broken JSON": [
        '{"id": "x", "text": "beer", "labels": ["a"',
        "[1, 2]",
        "[1, 2]",
        '{"text": "\\ud83d", "labels": ["a"]}',
        "[" * 100_000,
    ],
    "fields of the wrong type": [
        '{"id": {"x": 1}, "text": "beer", "labels": ["a"]}',
        '{"id": true, "text": "beer", "labels": ["a"]}',
        '{"id": 1.5, "text": "beer", "labels": ["a"]}',
        '{"text": ["beer"], "labels": ["a"]}',
        '{"text": "beer", "labels": "a"}',
        '{"text": "beer", "labels": [""]}',
    ],
    "document ids that occur more than once": ['{"id": "good", "text": "x", "labels": ["b"]}'],
    "documents with no text": [
        '{"text": "", "labels": ["a"]}',
        '{"text": " \\n\\t", "labels": ["a"]}',
        '{"text": null, "labels": ["a"]}',
        '{"labels": ["a"]}',
    ],
    "documents with no label of the set": [
        '{"text": "beer", "labels": []}',
        '{"text": "beer", "labels": null}',
        '{"text": "beer"}',
    ],
}


@pytest.mark.parametrize(("title", "rows"), BAD_ROWS.items(), ids=BAD_ROWS)
def test_bad_rows_stop_or_are_left_out(
    folder: Path, caplog: pytest.LogCaptureFixture, title: str, rows: list[str]
):
    (folder / "train.jsonl").write_text("\n".join([GOOD, *rows, ""]))
    message = refusal(folder)
    assert title in message
    assert f": {len(rows)} found" in message
    assert all(f"train.jsonl:{2 + i}" in message for i in range(min(5, len(rows))))
    assert "--on-error skip" in message
    kept, warning = skipped(folder, caplog)
    assert kept == ["good"]
    assert f": {len(rows)} found" in warning
    assert "Kept: train 1." in warning


def test_all_kinds_come_in_one_message(folder: Path):
    rows = [GOOD, "{", '{"text": "", "labels": ["a"]}', '{"text": "x", "labels": ["?"]}', GOOD]
    (folder / "train.jsonl").write_text("\n".join(rows))
    (folder / "dev.jsonl").write_bytes(b'{"text": "caf\xe9", "labels": ["a"]}\n' + GOOD.encode())
    (folder / "labels.jsonl").write_text(LABELS + '{"id": "a", "name": "again"}')
    message = refusal(folder)
    for line in (
        "broken JSON: 1 found\n    train.jsonl:2  Expecting property name",
        "not UTF-8: 1 found\n    dev.jsonl:1  byte 14 is 0xe9\n  Name the encoding of a table",
        "more than once in a split: 1 found\n    train.jsonl:5  'good'",
        "no text: 1 found\n    train.jsonl:3\n",
        "no label of the set: 1 found\n    train.jsonl:4\n",
        "not in the label set: 1 found, 1 different\n    train.jsonl:4  '?'\n  Add them",
        "in the labels file: 1 found\n    labels.jsonl:3  'a'",
    ):
        assert line in message


def test_unknown_labels_show_five_different_ones_and_lose_only_themselves(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    rows = [{"id": str(i), "text": "t", "labels": ["b", f"u{i // 2}"]} for i in range(20)]
    rows.append({"id": "gone", "text": "t", "labels": ["u1"]})
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    message = refusal(folder)
    assert "21 found, 10 different" in message
    assert [f"'u{i}'" in message for i in range(10)] == [True] * 5 + [False] * 5
    kept, warning = skipped(folder, caplog)
    assert kept == [str(i) for i in range(20)]
    assert "21 found, 10 different" in warning
    assert "no label of the set: 1 found" in warning


def test_first_of_two_equal_ids_is_kept(folder: Path, caplog: pytest.LogCaptureFixture):
    (folder / "labels.jsonl").write_text(LABELS + '{"id": "a", "name": "again"}')
    (folder / "train.jsonl").write_text(GOOD + '\n{"id": "good", "text": "2", "labels": ["b"]}')
    data = read(folder, on_error="skip")
    assert data.train.texts == ["wine"]
    assert list(data.labels) == [Label("a", "apples"), Label("b", "beer")]


def test_same_id_in_two_splits_is_no_trouble(folder: Path):
    (folder / "test.jsonl").write_text(GOOD)
    assert read(folder).test.ids == ["good"]


def test_label_without_a_name_goes_by_its_id_when_skipping(folder: Path):
    (folder / "labels.jsonl").write_text('{"id": "a", "name": " "}\n{"id": "b"}')
    assert "labels with no name: 2 found\n    labels.jsonl:1  'a'" in refusal(folder)
    assert read(folder, on_error="skip").labels.names == ["a", "b"]


def test_wrong_label_rows_are_left_out(folder: Path):
    rows = [
        '{"name": "x"}',
        '{"id": "c", "name": {"en": 3}}',
        '{"id": "d", "name": "d", "alt_names": "e"}',
    ]
    (folder / "labels.jsonl").write_text(LABELS + "\n".join(rows))
    assert "wrong type: 3 found\n    labels.jsonl:3  id is None" in refusal(folder)
    assert read(folder, on_error="skip").labels.ids == ["a", "b"]


def test_nothing_is_logged_when_nothing_is_wrong(folder: Path, caplog: pytest.LogCaptureFixture):
    (folder / "train.jsonl").write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n\r\n  \n")
    with caplog.at_level(logging.DEBUG):
        assert read(folder, on_error="skip").train.ids == ["good"]
    assert not caplog.records


def test_utf16_with_its_mark_is_read(folder: Path):
    (folder / "train.jsonl").write_text(GOOD, encoding="utf-16")
    assert read(folder).train.ids == ["good"]


# Tables


def test_bad_csv_rows_are_named_by_their_first_line(folder: Path, caplog: pytest.LogCaptureFixture):
    (folder / "train.jsonl").unlink()
    (folder / "train.csv").write_bytes(
        b'id,text,labels\ngood,"two\nlines",a\nx,too few\ny,"a" quote,a\nz,caf\xe9,a\n'
        b'w,"multi\ncaf\xe9\nline",a\nv,beer,[1\nlast,beer,a;b\n' + "next,öl in körben,a\n".encode()
    )
    message = refusal(folder)
    assert "columns, or broken quotes: 2 found\n    train.csv:4  2 cells where the head" in message
    assert "train.csv:5  ',' expected after '\"'" in message
    assert "not UTF-8: 2 found\n    train.csv:6  byte 6 is" in message
    assert "broken JSON: 1 found\n    train.csv:10  labels: Expecting" in message
    assert skipped(folder, caplog)[0] == ["good", "last", "next"]


def test_csv_quote_that_never_closes_costs_its_row_alone(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    (folder / "train.jsonl").unlink()
    (folder / "train.csv").write_text('text,labels\nwine,a\n"beer,b\nmead,a\n')
    message = refusal(folder)
    assert "broken quotes: 1 found\n    train.csv:3  a quote that opens here is never" in message
    assert "--on-error skip" in message
    kept, warning = skipped(folder, caplog)
    assert kept == ["train-2", "train-4"]
    assert "train.csv:3  a quote that opens here is never closed" in warning


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_missing_column_is_fatal(folder: Path, suffix: str):
    (folder / "train.jsonl").unlink()
    if suffix == "parquet":
        pq.write_table(pa.table({"year": ["1999"], "labels": ["a"]}), folder / "train.parquet")
    else:
        separator = {"csv": ",", "tsv": "\t"}[suffix]
        (folder / f"train.{suffix}").write_text(f"year{separator}labels\n1999{separator}a\n")
    message = refusal(folder, on_error="skip")
    assert f"Which column of train.{suffix} has the text?" in message
    assert "give --text NAME (in Python: text=). Its columns are: year, labels." in message


def test_damaged_parquet_is_said(folder: Path):
    (folder / "train.jsonl").unlink()
    (folder / "train.parquet").write_bytes(b"PAR1 nothing")
    assert "cannot be read to their end: 1 found\n    train.parquet:1  " in refusal(folder)


# Files that cannot be used at all


@pytest.mark.parametrize("mode", ["stop", "skip"])
@pytest.mark.parametrize("content", ["", "\n\n", '{"text": "", "labels": ["a"]}\n'])
def test_empty_split_is_an_error_in_both_modes(folder: Path, mode: str, content: str):
    (folder / "dev.jsonl").write_text(content)
    assert "dev.jsonl  no usable document for the dev split" in refusal(folder, on_error=mode)


@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_empty_labels_file_is_an_error_in_both_modes(folder: Path, mode: str):
    (folder / "labels.jsonl").write_text("")
    assert "labels.jsonl  no usable label" in refusal(folder, on_error=mode)


PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda raw: zstandard.ZstdCompressor().compress(raw),
}


@pytest.mark.parametrize("mode", ["stop", "skip"])
@pytest.mark.parametrize("suffix", PACK)
def test_cut_off_and_false_compression_is_said(folder: Path, suffix: str, mode: str):
    rng = np.random.default_rng(0)
    rows = [
        json.dumps({"id": str(i), "text": rng.bytes(400).hex(), "labels": ["a"]})
        for i in range(300)
    ]
    packed = PACK[suffix]("\n".join(rows).encode())
    path = folder / f"dev.jsonl.{suffix}"
    for content in (packed[: len(packed) // 2], packed[:-3], b"plain text, not packed"):
        path.write_bytes(content)
        message = refusal(folder, on_error=mode)
        assert "cannot be read to their end: 1 found\n    dev.jsonl" in message
        assert "cannot be skipped" in message
    path.write_bytes(packed)
    assert len(read(folder)["dev"]) == 300


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_said(folder: Path):
    (folder / "train.jsonl").chmod(0)
    assert "train.jsonl:1  Permission denied" in refusal(folder)


# The collector itself


def test_problems_are_counted_and_the_first_five_are_kept():
    problems = Problems()
    assert not problems
    for i in range(8):
        problems.add(Kind.NO_TEXT, f"f:{i}")
    assert problems
    assert not problems.fatal
    assert problems.count(Kind.NO_TEXT) == 8
    assert problems.count(Kind.EMPTY) == 0
    assert problems.listing(remedies=False).count("f:") == 5
