"""Small files that would fill the memory, and long ones that would fill the screen: refused."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from benchmarks.fuzz import FINE, FORMATS, prepare, trial
from scipy.sparse import csr_matrix, save_npz
from tests.readers.reading import refusal, skipped

from depl.core import apart
from depl.core.errors import CorpusError, DeplError
from depl.readers import limits, read
from depl.readers.documents import Documents
from depl.readers.lines import lines

resource = pytest.importorskip("resource", reason="limits of memory need POSIX")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="Excel needs depl[excel]")

GOOD = '{"id": "good", "text": "wine", "labels": ["a"]}'
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A gigabyte more than is taken already; what wants more gets a MemoryError."""
    pa.array(["Arrow reserves a gigabyte of addresses, and uses hardly any of it"])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("how", ["lines", "one line", "document"])
def test_packed_bombs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, how: str
):
    monkeypatch.setattr(limits, "_UNPACKED", 1 << 20)  # bytes, to be quick
    block = (GOOD.encode() + b"\n") * 5_000 if how == "lines" else b"x" * 250_000
    path = tmp_path / f"{'new.txt' if how == 'document' else 'train.jsonl'}.{suffix}"
    # Packed in pieces, which make a file as well: bzip2 needs seconds for the whole.
    path.write_bytes(PACK[suffix](block * 4) * 10)
    if how != "document":
        assert "cannot be read to their end" in (said := refusal(tmp_path, format="jsonl"))
        assert "more than 200 times its size" in said
    else:
        left_out = []
        found = Documents([str(path)], left_out=lambda place, why: left_out.append(why))
        assert not list(found)
        assert "more than 200 times its size" in left_out[0]


def test_a_zstd_block_is_unpacked_a_little_at_a_time(tmp_path: Path, little_memory: None):
    path = tmp_path / "train.jsonl.zst"
    packing = zstandard.ZstdCompressor().compressobj()
    block = b"x" * (1 << 20)
    path.write_bytes(b"".join(packing.compress(block) for _ in range(1_200)) + packing.flush())
    assert "more than 200 times its size" in refusal(tmp_path)


def test_lines_that_are_too_long_cost_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines, "__defaults__", (1_000,))
    monkeypatch.setattr("depl.readers.rows.LONGEST_LINE", 1_000)
    long = GOOD.replace("good", "long").replace("wine", "x" * 5_000)
    last = GOOD.replace("good", "last")
    for encoding in ("utf-8", "utf-16"):
        path = tmp_path / "train.jsonl"
        path.write_text(f"{GOOD}\n{long}\n{last}", encoding=encoding)
        assert "lines longer than 64 MiB: 1 found\n    train.jsonl:2" in refusal(tmp_path)
        assert skipped(tmp_path, caplog)[0] == ["good", "last"]


def test_millions_of_columns_are_refused(tmp_path: Path, little_memory: None):
    path = tmp_path / "all.csv"
    path.write_text(",".join(["text", "labels", *("c" * 1_000_000)]) + "\nwine,a\n")
    assert "a first row of 2,000," in refusal(path)
    path.write_text(",".join(["text", "labels", *("c" * 20_000)]) + "\nwine,a\n")
    assert "20,002 columns; a table has at most 16,384" in refusal(path)
    rows = [{f"c{i}": i for i in range(20_000)}]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    assert "20,000 columns" in refusal(tmp_path / "all.json")


def parquet_bomb(path: Path, value: str, n: int) -> None:
    # As a dictionary of one text, which need not be repeated here to be so in the file.
    zeros = pa.array(np.zeros(n, np.int32))
    columns = {"text": value, "labels": "a"}
    table = pa.table(
        {name: pa.DictionaryArray.from_arrays(zeros, [x]) for name, x in columns.items()}
    )
    pq.write_table(table, path, compression="zstd", store_schema=False)


def test_parquet_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, little_memory: None):
    path = tmp_path / "all.parquet"
    parquet_bomb(path, "x" * 500_000, 800)  # 400 MB in some hundred bytes
    assert path.stat().st_size < 100_000
    assert "more than 200 times its size" in refusal(path)


def test_parquet_of_more_rows_than_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "_MOST_ROWS", 1_000)
    path = tmp_path / "all.parquet"
    parquet_bomb(path, "wine", 1_000_000)
    assert "it declares 1,000,000 rows in " in refusal(path)


def test_parquet_with_names_that_are_not_utf8_is_refused(tmp_path: Path):
    path = tmp_path / "all.parquet"
    pq.write_table(pa.table({"textq": ["wine"], "labels": ["a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"textq", b"text\xff"))
    said = refusal(path)
    assert "all.parquet:1" in said
    assert "cannot be read to their end" in said


def test_a_matrix_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, little_memory: None):
    (tmp_path / "X.trn.txt").write_text("wine\n")
    (tmp_path / "output-items.txt").write_text("a\n")
    n = 60_000_000
    whole = csr_matrix((np.zeros(n, np.uint8), np.zeros(n, np.int32), [0, n]), shape=(1, 1))
    save_npz(tmp_path / "Y.trn.npz", whole)
    del whole
    assert "Y.trn.npz  not a scipy sparse matrix: it unpacks to more than" in refusal(tmp_path)


def test_a_cell_far_out_does_not_fill_the_memory(tmp_path: Path):
    path = tmp_path / "all.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["text", "labels"])
        sheet.write(1_048_575, 16_383, "x")
    assert "a sheet of 1,048,576 rows and 16,384 columns" in refusal(path)
    # As another program might write it.
    quoted = tmp_path / "quoted.xlsx"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(quoted, "w") as changed:
        for name in whole.namelist():
            raw = whole.read(name)
            far = raw.replace(b' r="XFD1048576"', b" r = 'XFD1048576'")
            changed.writestr(name, far.replace(b' r="1048576"', b" r = '1048576'"))
    assert "a sheet of 1,048,576 rows and 16,384 columns" in refusal(quoted)


def ods(path: Path, *rows: str) -> Path:
    """An OpenDocument sheet; of its parts, these are what is read."""
    uri = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = "".join(f' xmlns:{x}="{uri}:{x}:1.0"' for x in ("office", "table", "text"))
    body = f'<table:table table:name="s">{"".join(rows)}</table:table>'
    inner = f"<office:body><office:spreadsheet>{body}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        content = f"<office:document-content{spaces}>{inner}</office:document-content>"
        archive.writestr("content.xml", content)
        manifest = '<manifest:manifest xmlns:manifest="urn:x"/>'
        archive.writestr("META-INF/manifest.xml", manifest)
    return path


def ods_row(*cells: str, times: int = 1, wide: int = 1) -> str:
    repeated = f' table:number-columns-repeated="{wide}" office:value-type="string"'
    made = "".join(
        f"<table:table-cell{repeated}><text:p>{x}</text:p></table:table-cell>" for x in cells
    )
    return f'<table:table-row table:number-rows-repeated="{times}">{made}</table:table-row>'


def test_cells_of_an_opendocument_sheet_that_are_repeated_do_not_fill_the_memory(tmp_path: Path):
    head, rows = ods_row("text", "labels"), [ods_row("wine", "a"), ods_row("milk", "b")]
    # Programs fill a sheet with rows of nothing.
    empty = (
        '<table:table-row table:number-rows-repeated="1048000">'
        '<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
    )
    good = ods(tmp_path / "good.ods", head, *rows, ods_row("wine", "a", times=3), empty)
    assert len(read(good, text="text", labels="labels").train) == 5
    bad = ods(tmp_path / "bad.ods", head, *rows, ods_row("x", times=1_000_000, wide=16_000))
    assert "a sheet of 1,000,003 rows and 16,000 columns" in refusal(bad)


def test_a_spreadsheet_that_needs_more_memory_than_there_is_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "all.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet().write(1_048_575, 60, "x")
    monkeypatch.setattr(apart, "MEMORY", 1 << 30)
    assert "all.xlsx  not a spreadsheet that can be opened: what reads it crashed" in refusal(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_messages_stay_short_whatever_the_input_holds(tmp_path: Path, suffix: str):
    rng = random.Random(0)
    path = tmp_path / f"all.{suffix}"
    names = ["".join(rng.choices("abcdefgh", k=3_000)) for _ in range(300)]
    if suffix == "csv":
        path.write_text(",".join(names) + "\n" + ",".join(names) + "\n")
    else:
        path.write_text(json.dumps(dict.fromkeys(names, 1)))
    said = refusal(path)
    assert len(said) <= 2_000
    assert "300" in said or "280 others" in said
    assert "give --" in said  # what to do is at its end, and kept


def test_an_error_keeps_its_beginning_and_its_end():
    said = str(CorpusError("Bad value " + "x" * 5_000 + ". Give another."))
    assert len(said) <= 2_000
    assert said.startswith("Bad value x")
    assert said.endswith("x. Give another.")
    assert str(DeplError("short")) == "short"


def test_problems_of_all_kinds_fit_in_one_message(tmp_path: Path):
    bad = ["{", '{"id": 1.5}', '{"text": "", "labels": ["a"]}', '{"text": "x", "labels": ["?"]}']
    rows = [row.replace("?", "?" * 900 + str(i)) for i in range(8) for row in (GOOD, *bad)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    (tmp_path / "labels.jsonl").write_text('{"id": "a", "name": "apples"}\n{"id": "b"}\n')
    said = refusal(tmp_path)
    assert len(said) <= 2_000
    for words in ("broken JSON: 8", "wrong type: 8", "no text: 8", "no name: 1", "--on-error skip"):
        assert words in said


def test_changed_files_are_read_or_refused(tmp_path: Path):
    formats = list(FORMATS)
    prepare(tmp_path, formats)
    found = trial(range(800), 1, tmp_path, formats)
    assert [(n, case, said) for n, case, what, said in found if what not in FINE] == []
    outcomes = {(case.format, what) for _, case, what, _ in found}
    assert outcomes == {(format, what) for format in formats for what in FINE}


def test_prepared_files_are_read(tmp_path: Path):
    prepare(tmp_path, ["marcxml"])
    assert read(tmp_path / "marcxml" / "all.marcxml").train.ids == ["d1", "d2", "d3", "d4"]
