"""What is large goes to disk and comes back the same."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import depl
from depl import Corpus, Dataset
from depl.core import scratch, storage
from depl.core.errors import RunError
from depl.core.scratch import GrowingMatrix, TextSpool, column_counts, portions, rows_of
from depl.core.texts import TextsOnDisk
from depl.sparse.siblings import sibling_groups
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures


@pytest.fixture
def nothing_fits(monkeypatch):
    """Limits so low that matrices and texts of a test go to disk, in many portions."""
    monkeypatch.setattr(scratch, "_PORTION", 7)
    monkeypatch.setattr(scratch, "_SMALL", 5)
    monkeypatch.setattr(scratch, "_PASSING", 5)
    monkeypatch.setattr(scratch, "FEW", 50)
    monkeypatch.setattr(scratch, "_TOGETHER", 1_000)


@pytest.fixture
def matrix() -> csr_array:
    rng = np.random.default_rng(0)
    return csr_array(random_array((40, 9), density=0.3, rng=rng, dtype=np.float32))


def test_matrix_on_disk_is_the_same(matrix: csr_array, nothing_fits):
    grown = GrowingMatrix()
    for some in portions(matrix):
        grown.append(some)
    assert (grown.whole(9) != matrix).nnz == 0
    assert not grown.whole(9).data.flags.writeable  # it is a mapped file
    order = np.random.default_rng(1).permutation(40)[:25]
    assert (rows_of(matrix, order) != matrix[order]).nnz == 0
    np.testing.assert_array_equal(column_counts(matrix), (matrix.toarray() != 0).sum(axis=0))
    empty = GrowingMatrix()
    empty.append(csr_array((3, 2), dtype=np.float32))
    assert empty.whole(2).shape == (3, 2)


def test_texts_on_disk_are_the_same(nothing_fits):
    texts = [f"{'ß' * (i % 5)}\ud800 text {i}" * (i % 70) for i in range(300)]
    spool = TextSpool()
    for text in texts:
        spool.append(text)
    kept = spool.texts()
    assert isinstance(kept, TextsOnDisk)
    assert list(kept) == texts
    assert [kept[0], kept[-1], kept[5:200:7]] == [texts[0], texts[-1], texts[5:200:7]]
    rows = np.random.default_rng(0).permutation(300)
    assert list(kept.take(rows)) == [texts[i] for i in rows]
    assert list(kept.take(np.sort(rows[:9]))) == [texts[i] for i in np.sort(rows[:9])]
    assert pickle.loads(pickle.dumps(kept)) == texts


def test_fitting_on_disk_gives_the_same(dataset: Dataset, nothing_fits):
    texts, Y = dataset.train.texts, dataset.train.Y
    X = TfidfFeatures(n_jobs=1).fit_transform(texts)
    groups, svm = sibling_groups(X), OneVsAllSVM(n_threads=1).fit(X, Y)
    with pytest.MonkeyPatch.context() as usual:
        usual.setattr(scratch, "_PORTION", 10_000)
        usual.setattr(scratch, "_SMALL", 1 << 24)
        usual.setattr(scratch, "_PASSING", 1 << 24)
        expected = TfidfFeatures(n_jobs=1).fit_transform(texts)
        assert (expected != X).nnz == 0
        np.testing.assert_array_equal(groups, sibling_groups(expected))
        np.testing.assert_array_equal(
            svm.weights_.data, OneVsAllSVM(n_threads=1).fit(expected, Y).weights_.data
        )


def test_large_corpus_is_read_to_disk(
    dataset: Dataset, fitted_run: Path, corpus_folder: Path, nothing_fits
):
    train = dataset.train
    for where in (corpus_folder, corpus_folder / "train.jsonl"):
        read: Corpus = depl.read(where, text="text", labels="labels").train
        assert isinstance(read.texts, TextsOnDisk)
        assert (list(read.texts), read.Y.nnz) == (train.texts, train.Y.nnz)
        assert list(read.subset([4, 2]).texts) == [train.texts[4], train.texts[2]]
    model = depl.Classifier.load(fitted_run)
    assert isinstance(read.texts, TextsOnDisk)
    got, expected = model.predict(read.texts, 3), model.predict(list(read.texts), 3)
    np.testing.assert_array_equal(got.indices, expected.indices)


def test_corpus_of_a_run_stays_on_disk_where_it_is_large(dataset: Dataset, tmp_path, monkeypatch):
    path = tmp_path / "train.parquet"
    storage.write_corpus(path, dataset.train)
    monkeypatch.setattr(storage, "FEW", 50)
    read = storage.read_corpus(path, dataset.labels)
    assert isinstance(read.texts, TextsOnDisk)
    assert storage.corpus_fingerprint(read) == storage.corpus_fingerprint(dataset.train)


def test_full_disk_is_said(matrix: csr_array, nothing_fits, monkeypatch):
    monkeypatch.setattr(scratch, "_folder", lambda: scratch.Path("/nowhere"))
    with pytest.raises(RunError, match=r"Cannot write to .nowhere"):
        rows_of(matrix, np.arange(40))
