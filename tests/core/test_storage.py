"""Files: what is written comes back, damage is named, and nothing is ever half there."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.core.tensors import read_ranking, read_tensors, write_ranking, write_tensors

# Everything but lone surrogates, which the readers refuse: NUL, line ends, emoji, right-to-left.
odd = st.text(max_size=8) | st.sampled_from(
    ["", "\0", "a\0b", "\r\n\x85\u2028", "👩‍🚒", "שלום", "é"]
)


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    ids = draw(st.lists(odd, unique=True, max_size=4))
    labels = LabelSet(Label(i, draw(odd), tuple(draw(st.lists(odd, max_size=2)))) for i in ids)
    row = st.lists(st.integers(0, len(ids) - 1), max_size=4) if ids else st.just([])
    rows = draw(st.lists(row, max_size=5))
    documents = draw(st.lists(odd, unique=True, min_size=len(rows), max_size=len(rows)))
    return Corpus.from_rows(documents, [draw(odd) for _ in rows], rows, labels)


def assert_same_matrix(a: csr_array, b: csr_array) -> None:
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a, part), getattr(b, part))


# Round trips


@settings(max_examples=25)
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
        elements=st.sampled_from([0.0, 0.0, 0.5, -2.0]),
    )
)
def test_sparse_matrices_come_back(dense: np.ndarray):
    matrix = csr_array(dense)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "X.safetensors"
        write_tensors(path, {"X": matrix, "b": np.ones(2)})
        back = read_tensors(path, "X", "b")
        assert set(back) == {"X", "b"}
        assert_same_matrix(back["X"], matrix)


@settings(max_examples=25)
@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
        elements=st.sampled_from([-np.inf, 0.5, 0.25]),
    )
)
def test_rankings_come_back(scores: np.ndarray):
    ranking = Ranking.from_scores(scores, 3)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ranking.safetensors"
        write_ranking(path, ranking)
        back = read_ranking(path)
    np.testing.assert_array_equal(back.indices, ranking.indices)
    np.testing.assert_array_equal(back.scores, ranking.scores)
    assert (back.indices.dtype, back.scores.dtype) == (np.int32, np.float32)


@settings(max_examples=25)
@given(corpora())
def test_corpora_with_odd_characters_come_back(corpus: Corpus):
    with TemporaryDirectory() as folder:
        storage.write_labels(Path(folder) / "labels.parquet", corpus.labels)
        storage.write_corpus(Path(folder) / "train.parquet", corpus)
        labels = storage.read_labels(Path(folder) / "labels.parquet")
        back = storage.read_corpus(Path(folder) / "train.parquet", labels)
    assert labels == corpus.labels
    assert (back.ids, back.texts) == (corpus.ids, corpus.texts)
    assert_same_matrix(back.Y, corpus.Y)
    assert storage.corpus_fingerprint(back) == storage.corpus_fingerprint(corpus)


@settings(max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.integers() | odd, lambda x: st.lists(x)))
def test_json_comes_back(value: object):
    with TemporaryDirectory() as folder:
        storage.write_json(Path(folder) / "deeper" / "x.json", value)
        assert storage.read_json(Path(folder) / "deeper" / "x.json") == value


def test_json_is_readable_as_it_lies(tmp_path: Path):
    storage.write_json(tmp_path / "x.json", {"name": "été"})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "name": "été"\n}\n'


def test_arrays_that_are_views_come_back(tmp_path: Path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    write_tensors(tmp_path / "t.safetensors", {"a": array})
    np.testing.assert_array_equal(read_tensors(tmp_path / "t.safetensors")["a"], array)


# Damage


def write_some(path: Path) -> None:
    """A whole file of the kind that its name says."""
    if path.name == "x.json":
        storage.write_json(path, {"a": list(range(100))})
    elif path.name == "X.safetensors":
        write_tensors(path, {"X": csr_array(np.eye(50, dtype=np.float32))})
    elif path.name == "ranking.safetensors":
        write_ranking(path, Ranking.empty(50, 5))
    elif path.name == "labels.parquet":
        storage.write_labels(path, LabelSet(Label(str(i), str(i)) for i in range(50)))
    else:
        labels = LabelSet([Label("a", "apples")])
        storage.write_corpus(path, Corpus.from_rows(["1"], ["text"], [[0]], labels))


READERS: dict[str, Callable[[Path], object]] = {
    "x.json": storage.read_json,
    "X.safetensors": lambda path: read_tensors(path, "X"),
    "ranking.safetensors": read_ranking,
    "labels.parquet": storage.read_labels,
    "train.parquet": lambda path: storage.read_corpus(path, LabelSet([Label("a", "apples")])),
}


@pytest.mark.parametrize("name", READERS)
def test_missing_file_is_said_by_name(tmp_path: Path, name: str):
    with pytest.raises(RunError, match=rf"{name} is missing\. (Run|Fit) .* again"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("damage", ["cut in half", "emptied", "overwritten"])
@pytest.mark.parametrize("name", READERS)
def test_damaged_file_is_said_by_name(tmp_path: Path, name: str, damage: str):
    path = tmp_path / name
    write_some(path)
    READERS[name](path)
    whole = path.read_bytes()
    halves = {"cut in half": whole[: len(whole) // 2], "emptied": b"", "overwritten": b"\xff" * 999}
    path.write_bytes(halves[damage])
    with pytest.raises(RunError, match=rf"(?s){name} is damaged .* fit again"):
        READERS[name](path)


@pytest.mark.parametrize("name", ["X.safetensors", "ranking.safetensors"])
def test_tensors_of_another_kind_are_said_by_name(tmp_path: Path, name: str):
    write_tensors(tmp_path / name, {"something": np.ones(3)})
    with pytest.raises(RunError, match=name):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("part", ["indices", "indptr", "shape"])
def test_a_matrix_that_would_lead_compiled_code_astray_is_damaged(tmp_path: Path, part: str):
    path = tmp_path / "X.safetensors"
    write_tensors(path, {"X": csr_array(np.eye(5, dtype=np.float32))})
    tensors = load_file(path)
    tensors[f"X.{part}"][-1] = {"indices": 2**30, "indptr": 99, "shape": 3}[part]
    save_file(tensors, path)
    with pytest.raises(RunError, match=r"X\.safetensors is damaged"):
        read_tensors(path, "X")


# Whole or not at all


def test_folder_appears_when_it_is_whole(tmp_path: Path):
    target = tmp_path / "deeper" / "stage"
    with storage.whole_folder(target) as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "file").write_text("new")
        assert not target.exists()
    assert (target / "sub" / "file").read_text() == "new"
    assert os.listdir(target.parent) == ["stage"]


def test_folder_replaces_the_old_one_as_a_whole(tmp_path: Path):
    target = tmp_path / "stage"
    target.mkdir()
    (target / "old").touch()
    with storage.whole_folder(target) as temporary:
        (temporary / "new").touch()
    assert os.listdir(target) == ["new"]


@pytest.mark.parametrize("error", [RuntimeError("trouble"), KeyboardInterrupt()])
def test_exception_leaves_nothing_and_keeps_the_old_folder(tmp_path: Path, error: BaseException):
    target = tmp_path / "stage"
    target.mkdir()
    (target / "old").touch()

    def fail() -> None:
        with storage.whole_folder(target) as temporary:
            (temporary / "new").touch()
            raise error

    with pytest.raises(type(error)):
        fail()
    assert os.listdir(tmp_path) == ["stage"]
    assert os.listdir(target) == ["old"]


def test_what_a_killed_process_left_does_not_get_into_the_next_folder(tmp_path: Path):
    left = tmp_path / ".stage.tmp"
    left.mkdir()
    (left / "half a file").touch()
    with storage.whole_folder(tmp_path / "stage") as temporary:
        (temporary / "new").touch()
    assert os.listdir(tmp_path / "stage") == ["new"]
    assert os.listdir(tmp_path) == ["stage"]


def test_folders_are_flushed_where_the_system_can_and_passed_over_on_windows(
    tmp_path: Path, monkeypatch
):
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    storage.flush(tmp_path)
    assert len(flushed) == 1
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(storage.os, "name", "nt")
    folder, file = FlushedAsOnWindows(tmp_path), FlushedAsOnWindows(tmp_path / "file")
    storage.flush(folder)
    assert len(flushed) == 1
    storage.flush(file)
    assert len(flushed) == 2


class FlushedAsOnWindows(type(Path())):
    """A path of this system: with os.name changed, Path() would make one of Windows."""


# Errors of the disk


def test_target_below_a_file_is_said_with_what_to_do(tmp_path: Path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(RunError, match=r"Cannot write to .*stage: .*fix the permissions"),
        storage.whole_folder(tmp_path / "file" / "stage"),
    ):
        pass
    with pytest.raises(RunError, match=r"Cannot write to .*x\.json: .*fix the permissions"):
        storage.write_json(tmp_path / "file" / "x.json", {})


@pytest.fixture
def full_disk(monkeypatch):
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


FULL = r"Cannot write to .*: No space left on device\. .* free some space .* same command again"


def test_full_disk_keeps_the_old_folder(tmp_path: Path, full_disk):
    target = tmp_path / "stage"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(RunError, match=FULL), storage.whole_folder(target) as temporary:
        (temporary / "new").touch()
    assert os.listdir(tmp_path) == ["stage"]
    assert os.listdir(target) == ["old"]


def test_full_disk_keeps_the_old_file(tmp_path: Path, full_disk):
    (tmp_path / "x.json").write_text('{"old": 1}')
    with pytest.raises(RunError, match=FULL):
        storage.write_json(tmp_path / "x.json", {"new": 2})
    assert json.loads((tmp_path / "x.json").read_text()) == {"old": 1}


WRITERS: dict[str, Callable[[Path], None]] = {
    "json": lambda folder: storage.write_json(folder / "x", list(range(50_000))),
    "safetensors": lambda folder: write_tensors(folder / "x", {"a": np.arange(50_000)}),
    "parquet": lambda folder: storage.write_table(
        folder / "x", {"a": np.random.default_rng(0).random(50_000)}
    ),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_disk_that_refuses_in_the_middle_of_a_file_is_said(tmp_path: Path, kind: str):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))  # a real error of the system
    try:
        with (
            pytest.raises(RunError, match=r"Cannot write to .*stage.* same command again"),
            storage.whole_folder(tmp_path / "stage") as temporary,
        ):
            WRITERS[kind](temporary)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


# Fingerprints


def test_fingerprint_depends_on_values_and_where_they_begin():
    assert storage.fingerprint("a", {"x": 1, "y": 2}) == storage.fingerprint("a", {"y": 2, "x": 1})
    different = [("ab", "c"), ("a", "bc"), ("abc",), (b"ab", "c"), (["ab", "c"],), ("ab", "c", "")]
    assert len({storage.fingerprint(*parts) for parts in different}) == len(different)
    assert storage.fingerprint((1, 2)) == storage.fingerprint([1, 2])  # as it comes back from JSON


def test_plain_is_what_comes_back_from_json():
    assert storage.plain({"grid": (0.5, 1.0)}) == {"grid": [0.5, 1.0]}


def with_label(corpus: Corpus, position: int, **changes: object) -> Corpus:
    labels = list(corpus.labels)
    labels[position] = replace(labels[position], **changes)
    return replace(corpus, labels=LabelSet(labels))


def with_assignment(corpus: Corpus, row: int, column: int) -> Corpus:
    Y = corpus.Y.toarray()
    Y[row, column] = 1 - Y[row, column]
    return replace(corpus, Y=csr_array(Y))


def test_corpus_fingerprint_changes_with_anything_it_holds(dataset: Dataset):
    train = dataset.train
    changed = {
        "nothing": train,
        "a text": replace(train, texts=[*train.texts[:-1], train.texts[-1] + "."]),
        "a document's id": replace(train, ids=["new", *train.ids[1:]]),
        "a label's id": with_label(train, 3, id="new"),
        "a name": with_label(train, 3, name="new"),
        "another name": with_label(train, 3, alt_names=("new",)),
        "a description": with_label(train, 3, description="new"),
        "a broader label": with_label(train, 3, broader=("new",)),
        "a label more": with_assignment(train, 0, 5),
        "a label less": with_assignment(train, 0, 0),
        "the same label in the next document": with_assignment(with_assignment(train, 5, 0), 6, 0),
        "a document less": train.subset(range(len(train) - 1)),
        "the order of documents": train.subset([1, 0, *range(2, len(train))]),
        "two texts": replace(train, texts=[train.texts[1], train.texts[0], *train.texts[2:]]),
        "the order of labels": train.aligned(LabelSet(reversed(train.labels))),
    }
    prints = {what: storage.corpus_fingerprint(corpus) for what, corpus in changed.items()}
    assert len(set(prints.values())) == len(prints)
    assert storage.corpus_fingerprint(train.subset(range(len(train)))) == prints["nothing"]


@pytest.mark.parametrize(("a", "b"), [(("a\0b", "c"), ("a", "b\0c")), (("a", "b\0"), ("a\0b", ""))])
def test_corpus_fingerprint_knows_where_strings_begin(a: tuple[str, str], b: tuple[str, str]):
    labels = LabelSet([Label("a", "apples")])
    one, other = (Corpus.from_rows([x[0]], [x[1]], [[0]], labels) for x in (a, b))
    assert storage.corpus_fingerprint(one) != storage.corpus_fingerprint(other)


def test_labels_keep_all_their_fields(tmp_path: Path):
    labels = LabelSet(
        [Label("1", "drink"), Label("2", "wine", ("vin",), "Of grapes\nonly.", ("1", "x"))]
    )
    storage.write_labels(tmp_path / "labels.parquet", labels)
    assert storage.read_labels(tmp_path / "labels.parquet") == labels


def test_labels_of_runs_without_descriptions_are_read(tmp_path: Path):
    columns = {"id": ["1"], "name": ["wine"], "alt_names": [["vin"]]}
    storage.write_table(tmp_path / "labels.parquet", columns)
    assert list(storage.read_labels(tmp_path / "labels.parquet")) == [Label("1", "wine", ("vin",))]


def test_texts_on_disk_are_those_of_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_PORTION", 3)
    texts = [f"text {i}" for i in range(8)]
    labels = LabelSet([Label("a", "apples"), Label("b", "bread")])
    rows = [[0], [], [0, 1], [1], [], [], [1], [0]]
    corpus = Corpus.from_rows([str(i) for i in range(8)], texts, rows, labels)
    storage.write_corpus(tmp_path / "t.parquet", corpus)
    whole = storage.read_corpus(tmp_path / "t.parquet", labels)
    assert (whole.ids, whole.texts) == (corpus.ids, texts)
    np.testing.assert_array_equal(whole.Y.toarray(), corpus.Y.toarray())
    found = storage.read_texts(tmp_path / "t.parquet")
    assert (len(found), list(found)) == (8, texts)
    assert [found[i] for i in (0, 2, 3, 7, -1)] == [texts[i] for i in (0, 2, 3, 7, -1)]
    for part in (
        slice(None),
        slice(2, 7),
        slice(None, None, 3),
        slice(5, 5),
        slice(None, None, -1),
    ):
        assert found[part] == texts[part]
    with pytest.raises(IndexError):
        found[8]
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunError, match="damaged"):
        list(found)
