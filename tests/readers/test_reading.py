"""Which folder, which format, which splits; and the writer."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import CorpusError
from depl.readers import FORMATS, read, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small corpus with three splits and a label that no document has."""
    labels = [
        {"id": "b", "name": "beer"},
        {"id": "a", "name": "apples"},
        {"id": "z", "name": "zinc"},
    ]
    dump(tmp_path / "labels.jsonl", labels)
    for split in ("train", "dev", "test"):
        rows = [{"id": f"{split}{i}", "text": f"{split} {i}", "labels": ["a"]} for i in range(2)]
        dump(tmp_path / f"{split}.jsonl", rows)
    return tmp_path


def dump(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# Folders


def test_dataset_is_named_after_its_folder(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    assert read(".").name == folder.name == read(folder).name == read(str(folder)).name


def test_label_order_is_the_files_and_labels_without_documents_stay(folder: Path):
    data = read(folder)
    assert data.labels.ids == ["b", "a", "z"]
    assert data.train.label_counts.tolist() == [0, 2, 0]


def test_missing_folder_is_said_with_the_nearest_name(tmp_path: Path):
    (tmp_path / "eurlex57k").mkdir()
    with pytest.raises(
        CorpusError, match=r"There is no file or folder .*eurlex57.*Did you mean .*57k\?"
    ):
        read(tmp_path / "eurlex57")
    with pytest.raises(CorpusError, match=r"There is no file or folder .*Check the path"):
        read(tmp_path / "no" / "where")


def test_one_file_is_a_corpus_with_one_split(folder: Path):
    data = read(folder / "dev.jsonl")
    assert data.name == "dev.jsonl"
    assert list(data.splits) == ["train"]
    assert data.train.ids == ["dev0", "dev1"]


def test_unrecognised_folder_says_what_was_looked_for_and_found(tmp_path: Path):
    (tmp_path / "notes.md").touch()
    (tmp_path / "sub").mkdir()
    with pytest.raises(CorpusError) as caught:
        read(tmp_path)
    message = str(caught.value)
    assert "Found there: notes.md, sub/." in message
    assert all(f"\n  {name}: " in message for name in FORMATS)
    assert "output-items.txt" in message
    assert "train_labels.txt" in message


def test_long_folder_listing_is_cut(tmp_path: Path):
    for i in range(13):
        (tmp_path / f"{i:02}.md").touch()
    with pytest.raises(CorpusError, match=r"00.md, .*09.md and 3 more\."):
        read(tmp_path)


def test_empty_folder_is_said(tmp_path: Path):
    with pytest.raises(CorpusError, match="The folder is empty"):
        read(tmp_path)


def test_unknown_format_lists_the_formats_with_the_nearest(folder: Path):
    with pytest.raises(CorpusError, match=r"no format 'json-lines'\. Did you mean 'jsonl'\?") as e:
        read(folder, format="json-lines")
    assert all(f"{name}: {text}" in str(e.value) for name, text in FORMATS.items())


def test_files_of_two_formats_ask_for_a_choice(folder: Path):
    (folder / "X.trn.txt").write_text("text\n")
    with pytest.raises(CorpusError, match=r"several formats: jsonl, pecos.*--format"):
        read(folder)
    assert len(read(folder, format="jsonl").splits) == 3


def test_two_files_for_one_split_are_refused(folder: Path):
    (folder / "train.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(CorpusError, match=r"train.jsonl, train.jsonl.gz. Keep one"):
        read(folder)


def test_wrong_on_error_is_refused(folder: Path):
    with pytest.raises(CorpusError, match="'stop' or 'skip'; got 'ignore'"):
        read(folder, on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("train.txt", "15539 5000 3993\n0,5 3:0.2 7:0.1\n"),
        ("eurlex_train.txt", "2 3 4 \n1 0:1\n"),
        ("trn_X_Xf.txt", "15539 5000\n3:0.2 7:0.1\n"),
    ],
)
def test_bag_of_words_is_explained(tmp_path: Path, name: str, start: str):
    (tmp_path / name).write_text(start)
    with pytest.raises(CorpusError, match="sparse bag-of-words") as caught:
        read(tmp_path)
    message = str(caught.value)
    assert "no keywords, no label descriptions, no encoder" in message
    assert "raw-text version" in message
    assert "attentionxml: " in message


def test_bag_of_words_beside_texts_does_no_harm(tmp_path: Path):
    (tmp_path / "train.txt").write_text("1 5 1\n0 3:0.2\n")
    (tmp_path / "train_texts.txt").write_text("some words\n")
    (tmp_path / "train_labels.txt").write_text("a\n")
    assert read(tmp_path).train.texts == ["some words"]


# Splits


def test_only_the_asked_for_splits_are_read(folder: Path):
    (folder / "test.jsonl").write_text("not JSON at all")
    assert list(read(folder, splits=["dev", "train"]).splits) == ["train", "dev"]
    assert list(read(folder, splits={"validation"}).splits) == ["dev"]
    assert list(read(folder, splits="train").splits) == ["train"]


def test_folder_may_hold_some_splits_only(folder: Path):
    (folder / "train.jsonl").unlink()
    (folder / "dev.jsonl").unlink()
    assert list(read(folder).splits) == ["test"]


def test_missing_split_is_said_with_those_that_are_there(folder: Path):
    (folder / "dev.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"has no dev and no holdout split; .*train.jsonl, test"):
        read(folder, splits=["train", "dev", "holdout"])
    with pytest.raises(CorpusError, match="No split was asked for"):
        read(folder, splits=[])


def test_without_a_labels_file_the_labels_of_the_splits_are_the_set(folder: Path):
    (folder / "labels.jsonl").unlink()
    dump(folder / "train.jsonl", [{"text": "t", "labels": ["c", 10]}, {"text": "u", "labels": [9]}])
    data = read(folder)
    assert list(data.labels) == [Label(x, x) for x in ("10", "9", "a", "c")]
    assert data.train.Y.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0]]
    assert data.dev.Y.toarray().tolist() == [[0, 0, 1, 0]] * 2
    assert read(folder, splits=["dev"]).labels.ids == ["a"]


# The writer


def test_writer_refuses_to_overwrite(folder: Path, tmp_path: Path):
    data = read(folder)
    with pytest.raises(CorpusError, match="exists and is not empty"):
        write(data, folder)
    with pytest.raises(CorpusError, match="exists and is not empty"):
        write(data, folder / "train.jsonl")
    (tmp_path / "new").mkdir()
    write(data, tmp_path / "new")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [
        "dev.jsonl",
        "labels.jsonl",
        "test.jsonl",
        "train.jsonl",
    ]


words = st.text(min_size=1)
texts = st.text(min_size=1).filter(lambda text: not text.isspace())


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    label_ids = draw(st.lists(words, min_size=1, max_size=5, unique=True))
    names = st.text(min_size=1).filter(str.strip)
    labels = LabelSet(
        Label(i, draw(names), tuple(draw(st.lists(words, max_size=2)))) for i in label_ids
    )
    splits = {}
    for split in draw(st.sets(st.sampled_from(["train", "dev", "test"]), min_size=1)):
        ids = draw(st.lists(words, min_size=1, max_size=4, unique=True))
        position = st.integers(0, len(labels) - 1)
        rows = [draw(st.lists(position, min_size=1, max_size=4)) for _ in ids]
        splits[split] = Corpus.from_rows(ids, [draw(texts) for _ in ids], rows, labels)
    return Dataset(labels, splits)


@settings(max_examples=60, deadline=None)
@given(data=datasets())
def test_any_dataset_is_equal_after_writing_and_reading(
    data: Dataset, tmp_path_factory: pytest.TempPathFactory
):
    target = tmp_path_factory.mktemp("round") / "trip"
    write(data, target)
    again = read(target)
    assert again.labels == data.labels
    assert again.splits.keys() == data.splits.keys()
    for split, corpus in data.splits.items():
        assert again[split].ids == corpus.ids
        assert again[split].texts == corpus.texts
        assert (again[split].Y != corpus.Y).nnz == 0
        assert again[split].labels is again.labels


def test_importing_the_readers_does_not_import_pyarrow():
    code = "import sys, depl.readers; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
