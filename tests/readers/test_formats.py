"""Every format on a small folder: recognised, forced, and equal after a round trip."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from scipy.sparse import coo_array, csr_matrix, save_npz

from depl.core.corpus import Dataset, Label
from depl.core.errors import CorpusError
from depl.readers import FORMATS, read, write

WINE, DUTY, LEVY = "http://x/1", "http://x/2", "http://x/3"


def plain(data: Dataset) -> dict[str, object]:
    """A dataset as lists that compare with ``==``."""
    ids = data.labels.ids
    splits = {
        name: [
            (corpus.ids[i], corpus.texts[i], [ids[j] for j in corpus.Y[[i]].indices])
            for i in range(len(corpus))
        ]
        for name, corpus in data.splits.items()
    }
    assert all(corpus.Y.data.tolist() == [1.0] * corpus.Y.nnz for corpus in data.splits.values())
    return {"labels": list(data.labels), **splits}


def dump(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def matrix(path: Path, rows: list[list[int]], n_labels: int) -> None:
    dense = np.zeros((len(rows), n_labels), dtype=np.float32)
    for i, row in enumerate(rows):
        dense[i, row] = 1
    save_npz(path, csr_matrix(dense))


def jsonl_folder(folder: Path) -> dict[str, object]:
    dump(folder / "labels.jsonl", [
        {"id": 7, "name": "wine", "alt_names": ["vin", "Wein"]},
        {"id": "2", "name": "customs duty"},
        {"id": "9", "name": "carbon levy", "alt_names": None},
    ])  # fmt: skip
    dump(folder / "train.jsonl", [
        {"id": "a", "text": "Sparkling\nwine", "labels": ["2", "7", "7"], "date": "1999"},
        {"text": "Duty free", "labels": [2]},
    ])  # fmt: skip
    dump(folder / "valid.jsonl", [{"id": 31, "text": "Red", "labels": ["7"]}])
    return {
        "labels": [Label("7", "wine", ("vin", "Wein")), Label("2", "customs duty"),
                   Label("9", "carbon levy")],
        "train": [("a", "Sparkling\nwine", ["7", "2"]), ("train-2", "Duty free", ["2"])],
        "dev": [("31", "Red", ["7"])],
    }  # fmt: skip


def csv_folder(folder: Path) -> dict[str, object]:
    (folder / "labels.csv").write_text("id,name,alt_names\n7,wine,vin|Wein\n2,customs duty,\n")
    (folder / "train.csv").write_text(
        '\ufeffid,text,labels\r\na,"Sparkling\r\nwine, ""sec""",7;2\r\n'
        ',Duty [free]; now,"[""2""]"\r\n',
        encoding="utf-8",
        newline="",
    )
    return {
        "labels": [Label("7", "wine", ("vin", "Wein")), Label("2", "customs duty")],
        "train": [("a", 'Sparkling\nwine, "sec"', ["7", "2"]),
                  ("train-4", "Duty [free]; now", ["2"])],
    }  # fmt: skip


def tsv_folder(folder: Path) -> dict[str, object]:
    dump(folder / "labels.jsonl", [{"id": "7", "name": "wine"}])
    (folder / "test.tsv").write_text("Labels\tText\n7\tRed, white\n")
    return {"labels": [Label("7", "wine")], "test": [("test-2", "Red, white", ["7"])]}


def parquet_folder(folder: Path) -> dict[str, object]:
    labels = {"id": [7, 2], "name": ["wine", "duty"], "alt_names": [["vin"], None]}
    pq.write_table(pa.table(labels), folder / "labels.parquet")
    lists = {"id": ["a", "b"], "text": ["Sparkling", "Free"], "labels": [["2", "7"], ["2"]]}
    pq.write_table(pa.table(lists), folder / "train.parquet")
    cells = {"text": ["Red"], "labels": ["7|2"]}
    pq.write_table(pa.table(cells), folder / "test.parquet")
    return {
        "labels": [Label("7", "wine", ("vin",)), Label("2", "duty")],
        "train": [("a", "Sparkling", ["7", "2"]), ("b", "Free", ["2"])],
        "test": [("test-1", "Red", ["7", "2"])],
    }


def pecos_folder(folder: Path) -> dict[str, object]:
    (folder / "X.trn.txt").write_text("Sparkling wine\nDuty free\n")
    (folder / "X.tst.txt").write_text("Red wine")
    (folder / "output-items.txt").write_text("wine\ncustoms duty\nwine\n\n")
    matrix(folder / "Y.trn.npz", [[0, 1], [1]], 3)
    matrix(folder / "Y.tst.npz", [[2]], 3)
    return {
        "labels": [Label("0", "wine"), Label("1", "customs duty"), Label("2", "wine")],
        "train": [("train-1", "Sparkling wine", ["0", "1"]), ("train-2", "Duty free", ["1"])],
        "test": [("test-1", "Red wine", ["2"])],
    }


def dexml_folder(folder: Path) -> dict[str, object]:
    (folder / "raw").mkdir()
    (folder / "raw" / "trn_X.txt").write_text("Sparkling wine\n")
    (folder / "raw" / "Y.txt").write_text("wine\ncustoms duty\n")
    save_npz(folder / "Y.trn.npz", coo_array(([1, 0], ([0, 0], [1, 0])), shape=(1, 2)))
    return {
        "labels": [Label("0", "wine"), Label("1", "customs duty")],
        "train": [("train-1", "Sparkling wine", ["1"])],
    }


def attentionxml_folder(folder: Path) -> dict[str, object]:
    (folder / "train_texts.txt").write_text("sparkling wine\nduty free\n")
    (folder / "train_raw_texts.txt").write_text("Sparkling Wine\nDuty free\n")
    (folder / "train_labels.txt").write_text("wine customs_duty\ncustoms_duty\n\n")
    (folder / "test_texts.txt").write_text("levies\n")
    (folder / "test_labels.txt").write_text("carbon-border_levy\n")
    return {
        "labels": [Label("carbon-border_levy", "carbon border levy"),
                   Label("customs_duty", "customs duty"), Label("wine", "wine")],
        "train": [("train-1", "Sparkling Wine", ["customs_duty", "wine"]),
                  ("train-2", "Duty free", ["customs_duty"])],
        "test": [("test-1", "levies", ["carbon-border_levy"])],
    }  # fmt: skip


def xtransformer_folder(folder: Path) -> dict[str, object]:
    (folder / "train_raw_texts.txt").write_text("Sparkling Wine\n")
    (folder / "label_map.txt").write_text("wine\ncustoms_duty\n")
    matrix(folder / "Y.trn.npz", [[1]], 2)
    return {
        "labels": [Label("wine", "wine"), Label("customs_duty", "customs duty")],
        "train": [("train-1", "Sparkling Wine", ["customs_duty"])],
    }


def lf_folder(folder: Path) -> dict[str, object]:
    def dump_gz(name: str, rows: list[dict[str, object]]) -> None:
        (folder / name).write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))

    dump_gz("lbl.json.gz", [{"uid": "B1", "title": "wine"}, {"uid": "B0", "title": "duty"}])
    dump_gz("trn.json.gz", [
        {"uid": "D1", "title": "Sparkling", "content": "A wine.", "target_ind": [1, 0],
         "target_rel": [1.0, 1.0]},
        {"uid": "D2", "title": "Free", "content": "", "target_ind": [1], "target_rel": [1.0]},
    ])  # fmt: skip
    dump_gz("tst.json.gz", [{"uid": "D1", "title": "Red", "target_ind": [0]}])
    return {
        "labels": [Label("B1", "wine"), Label("B0", "duty")],
        "train": [("D1", "Sparkling\nA wine.", ["B1", "B0"]), ("D2", "Free", ["B0"])],
        "test": [("D1", "Red", ["B1"])],
    }


def annif_tsv_folder(folder: Path) -> dict[str, object]:
    (folder / "vocab.tsv").write_text(f"<{WINE}>\twine\n<{DUTY}>\tcustoms duty\t38.2\n")
    (folder / "train.tsv").write_text(f"Sparkling wine\t<{DUTY}> <{WINE}>\nDuty\t{DUTY}\n")
    return {
        "labels": [Label(WINE, "wine"), Label(DUTY, "customs duty")],
        "train": [("train-1", "Sparkling wine", [WINE, DUTY]), ("train-2", "Duty", [DUTY])],
    }


def annif_csv_folder(folder: Path) -> dict[str, object]:
    (folder / "subjects.csv").write_text(
        f"uri,notation,label_en,label_fr\n{WINE},1,wine,vin\n{DUTY},,,droit de douane\n"
    )
    (folder / "train.csv").write_text(
        f'document_id,text,subject_uris\nD1,"Sparkling, white",<{WINE}> <{DUTY}>\n,Duty,<{DUTY}>\n'
    )
    return {
        "labels": [Label(WINE, "wine"), Label(DUTY, "droit de douane")],
        "train": [("D1", "Sparkling, white", [WINE, DUTY]), ("train-3", "Duty", [DUTY])],
    }


def annif_json_folder(folder: Path) -> dict[str, object]:
    (folder / "vocabulary.tsv").write_text(f"<{WINE}>\twine\n<{DUTY}>\tcustoms duty\n")
    dump(folder / "train.jsonl", [
        {"document_id": "D1", "text": "Sparkling", "metadata": {"title": "x"},
         "subjects": [{"uri": WINE}, {"label": "customs duty"}]},
        {"text": "Duty", "subjects": [{"uri": f"<{DUTY}>", "label": "other words"}]},
    ])  # fmt: skip
    return {
        "labels": [Label(WINE, "wine"), Label(DUTY, "customs duty")],
        "train": [("D1", "Sparkling", [WINE, DUTY]), ("train-2", "Duty", [DUTY])],
    }


CASES = [
    ("jsonl", jsonl_folder),
    ("table", csv_folder),
    ("table", tsv_folder),
    ("table", parquet_folder),
    ("pecos", pecos_folder),
    ("pecos", dexml_folder),
    ("attentionxml", attentionxml_folder),
    ("attentionxml", xtransformer_folder),
    ("lf-json", lf_folder),
    ("annif", annif_tsv_folder),
    ("annif", annif_csv_folder),
    ("annif", annif_json_folder),
]
every_format = pytest.mark.parametrize(
    ("name", "make"), CASES, ids=[make.__name__ for _, make in CASES]
)
Make = Callable[[Path], dict[str, object]]


def test_every_format_has_a_case_and_a_description():
    assert {name for name, _ in CASES} == set(FORMATS)
    assert all(20 < len(text) < 100 for text in FORMATS.values())


@every_format
def test_format_is_recognised_and_read(tmp_path: Path, name: str, make: Make):
    expected = make(tmp_path)
    assert plain(read(tmp_path)) == expected


@every_format
def test_format_can_be_forced(tmp_path: Path, name: str, make: Make):
    expected = make(tmp_path)
    assert plain(read(tmp_path, format=name)) == expected


@every_format
def test_dataset_survives_writing_and_reading_again(tmp_path: Path, name: str, make: Make):
    (tmp_path / "raw-files").mkdir()
    expected = make(tmp_path / "raw-files")
    write(read(tmp_path / "raw-files"), tmp_path / "converted")
    assert plain(read(tmp_path / "converted")) == expected


@every_format
def test_other_formats_are_not_recognised_by_force(tmp_path: Path, name: str, make: Make):
    make(tmp_path)
    for other in {"pecos", "attentionxml", "lf-json"} - {name}:
        with pytest.raises(CorpusError, match=f"not in the format '{other}'.*Found there: "):
            read(tmp_path, format=other)


COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda raw: zstandard.ZstdCompressor().compress(raw),
}


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize(
    "make",
    [jsonl_folder, csv_folder, tsv_folder, annif_tsv_folder, pecos_folder, attentionxml_folder],
)
def test_text_files_may_be_compressed(tmp_path: Path, make: Make, suffix: str):
    expected = make(tmp_path)
    for path in list(tmp_path.iterdir()):
        if path.suffix != ".npz":
            path.with_name(path.name + suffix).write_bytes(COMPRESS[suffix](path.read_bytes()))
            path.unlink()
    assert plain(read(tmp_path)) == expected


@pytest.mark.parametrize("suffix", COMPRESS)
def test_several_compressed_streams_in_one_file_are_read_through(tmp_path: Path, suffix: str):
    rows = [json.dumps({"text": f"t{i}", "labels": ["a"]}).encode() + b"\n" for i in range(9)]
    packed = b"".join(COMPRESS[suffix](row) for row in rows)
    (tmp_path / f"train.jsonl{suffix}").write_bytes(packed)
    assert read(tmp_path).train.texts == [f"t{i}" for i in range(9)]


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_large_compressed_file_is_read_whole(tmp_path: Path, suffix: str):
    texts = [f"{i} " * 5000 for i in range(200)]
    raw = "\n".join(json.dumps({"text": text, "labels": ["a"]}) for text in texts).encode()
    packed = COMPRESS[suffix](raw) if suffix else raw
    (tmp_path / f"train.jsonl{suffix}").write_bytes(packed)
    assert read(tmp_path).train.texts == texts


@pytest.mark.parametrize("end", ["\u2028", "\x0b", "\x0c", "\x85", "\x1e"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, end: str):
    (tmp_path / "X.trn.txt").write_text(f"one{end}two\nthree\n", encoding="utf-8")
    (tmp_path / "output-items.txt").write_text("wine\n")
    matrix(tmp_path / "Y.trn.npz", [[0], [0]], 1)
    assert read(tmp_path).train.texts == [f"one{end}two", "three"]
    assert unicodedata.category(end) in ("Zl", "Cc")


def test_windows_line_ends_are_no_part_of_the_text(tmp_path: Path):
    (tmp_path / "train_texts.txt").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / "train_labels.txt").write_bytes(b"a b\r\nb\r\n")
    assert plain(read(tmp_path))["train"] == [
        ("train-1", "one", ["a", "b"]),
        ("train-2", "two", ["b"]),
    ]


def test_csv_cell_may_be_longer_than_the_csv_modules_default(tmp_path: Path):
    with (tmp_path / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "labels"], ["word " * 60_000, "a"]])
    assert len(read(tmp_path).train.texts[0]) == 300_000


def test_labels_file_may_be_a_table_beside_json_lines(tmp_path: Path):
    dump(tmp_path / "train.jsonl", [{"text": "Sparkling", "labels": ["7"]}])
    (tmp_path / "labels.csv").write_text("id,name\n7,wine\n")
    assert read(tmp_path).labels.names == ["wine"]
