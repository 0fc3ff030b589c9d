"""Bad input in the layouts of other tools, whose files belong together line by line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz
from tests.readers.reading import refusal, skipped

from depl.readers import read


@pytest.mark.parametrize("mode", ["stop", "skip"])
@pytest.mark.parametrize(("texts", "labels"), [("x\ny\n", "a\n"), ("x\n", "a\nb\n")])
def test_text_and_label_lines_must_match_in_number(
    tmp_path: Path, texts: str, labels: str, mode: str
):
    (tmp_path / "train_texts.txt").write_text(texts)
    (tmp_path / "train_labels.txt").write_text(labels)
    counts = f"{texts.count(chr(10))}, against {labels.count(chr(10))} in train_labels.txt"
    message = refusal(tmp_path, on_error=mode)
    assert f"differ in length: 1 found\n    train_texts.txt  {counts}" in message


def pecos(folder: Path, texts: bytes, names: bytes, rows: list[list[int]]) -> None:
    (folder / "X.trn.txt").write_bytes(texts)
    (folder / "output-items.txt").write_bytes(names)
    save_npz(folder / "Y.trn.npz", csr_matrix(rows))


@pytest.mark.parametrize("mode", ["stop", "skip"])
@pytest.mark.parametrize(
    ("texts", "names", "detail"),
    [
        (b"x\ny\nz\n", b"a\nb\n", "X.trn.txt  3, against 2 in Y.trn.npz (rows)"),
        (b"x\n", b"a\nb\n", "X.trn.txt  1, against 2 in Y.trn.npz (rows)"),
        (b"x\ny\n", b"a\n", "Y.trn.npz (columns)  2, against 1 in output-items.txt"),
    ],
)
def test_matrix_must_match_texts_and_labels(
    tmp_path: Path, texts: bytes, names: bytes, detail: str, mode: str
):
    pecos(tmp_path, texts, names, [[1, 0], [0, 1]])
    assert f"differ in length: 1 found\n    {detail}\n" in refusal(tmp_path, on_error=mode)


def test_blank_and_bad_lines_do_not_shift_the_pairs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    texts = b"one\n\ncaf\xe9\nfour\nfive\n\n"
    pecos(tmp_path, texts, b"wine\n\nb\xe9\nduty\n", [*np.eye(4, dtype=int).tolist(), [0, 1, 0, 1]])
    message = refusal(tmp_path)
    assert "not UTF-8: 2 found\n    output-items.txt:3  byte 2" in message
    assert "no text: 1 found\n    X.trn.txt:2\n" in message
    assert "no name: 1 found\n    output-items.txt:2  '1'" in message
    assert skipped(tmp_path, caplog)[0] == ["train-1", "train-4", "train-5"]
    data = read(tmp_path, on_error="skip")
    assert data.labels.names == ["wine", "1", "duty"]
    assert data.train.Y.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 1]]


def test_bad_label_lines_do_not_shift_the_pairs(tmp_path: Path):
    (tmp_path / "train_texts.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "train_labels.txt").write_bytes(b"a\nb\xe9\nc\n")
    assert "not UTF-8: 1 found\n    train_labels.txt:2" in refusal(tmp_path)
    data = read(tmp_path, on_error="skip")
    assert (data.train.texts, data.labels.ids) == (["one", "three"], ["a", "c"])


@pytest.mark.parametrize("damage", ["not a zip", "pickle", "out of range"])
def test_bad_matrix_is_said_and_runs_no_code(tmp_path: Path, damage: str):
    pecos(tmp_path, b"x\n", b"a\n", [[1]])
    path = tmp_path / "Y.trn.npz"
    if damage == "not a zip":
        path.write_bytes(b"nothing of the kind")
    elif damage == "pickle":
        np.savez(path, data=np.array([object()], dtype=object), format=np.array([b"csr"]))
    else:
        index = {"indices": [7], "indptr": [0, 1], "shape": [1, 1]}
        np.savez(path, format=b"csr", data=[1.0], **index)  # type: ignore[arg-type]
    assert "Y.trn.npz  not a scipy sparse matrix" in refusal(tmp_path, on_error="skip")


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (["X.trn.txt", "Y.trn.npz"], "output-items.txt or raw/Y.txt"),
        (["X.trn.txt", "output-items.txt"], "Y.train.npz or Y.trn.npz"),
        (["train_texts.txt"], "train_labels.txt"),
        (["train_raw_texts.txt", "label_map.txt"], "Y.trn.npz"),
        (["trn.json"], "lbl.json"),
    ],
)
@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_missing_companion_file_is_said(tmp_path: Path, files: list[str], missing: str, mode: str):
    for name in files:
        (tmp_path / name).write_text("x\n")
    message = refusal(tmp_path, on_error=mode)
    assert "lacks " in message
    assert missing in message


def test_annif_needs_its_vocabulary(tmp_path: Path):
    (tmp_path / "train.tsv").write_text("wine\t<http://x/1>\n")
    assert "lacks vocab.tsv or vocab.csv" in refusal(tmp_path)


def test_bad_annif_rows_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "vocab.tsv").write_text("<http://x/1>\twine\n<http://x/2>\n")
    (tmp_path / "train.tsv").write_text("wine\t<http://x/1>\nno tab\nbeer\t<http://x/9>\n\n")
    message = refusal(tmp_path)
    assert "train.tsv:2  no tab between text and subjects" in message
    assert "train.tsv:3  'http://x/9'" in message
    assert "no name: 1 found\n    vocab.tsv:2  'http://x/2'" in message
    assert skipped(tmp_path, caplog)[0] == ["train-1"]


def test_bad_annif_subjects_are_said(tmp_path: Path):
    (tmp_path / "vocab.tsv").write_text("<http://x/1>\twine\n")
    rows = ['{"text": "t", "subjects": [{"label": "vine"}]}', '{"text": "t", "subjects": ["x"]}']
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    message = refusal(tmp_path)
    assert "train.jsonl:1  'vine'" in message
    assert "train.jsonl:2  an item of subjects is 'x'" in message


def test_bad_lf_rows_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    labels = ['{"uid": "A", "title": "a"}', "{", '{"uid": "C", "title": "c"}', '{"title": 4}']
    (tmp_path / "lbl.json").write_text("\n".join(labels))
    rows = [[0, 2], [1], [3, 0], ["0"], None]
    lines = [json.dumps({"uid": i, "title": "t", "target_ind": row}) for i, row in enumerate(rows)]
    (tmp_path / "trn.json").write_text("\n".join(lines))
    message = refusal(tmp_path)
    assert "2 found, 2 different\n    trn.json:2  'target_ind 1'\n    trn.json:3" in message
    assert "wrong type: 2 found\n    lbl.json:4  title is 4\n" in message
    assert "trn.json:4  an item of target_ind is '0'" in message
    assert skipped(tmp_path, caplog)[0] == ["0", "2"]
    assert read(tmp_path, on_error="skip").train.Y.toarray().tolist() == [[1, 1], [1, 0]]
