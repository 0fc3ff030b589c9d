"""Tables in memory: DataFrames, Hugging Face datasets, lists of dicts."""

from __future__ import annotations

import logging

import datasets
import numpy as np
import pandas as pd
import pytest

import depl
from depl.core.corpus import Corpus
from depl.core.errors import CorpusError

TITLES = ["Sparkling wine", "Olive oil", "Wine and oil", "Table wine"]
ABSTRACTS = ["From white grapes.", None, "On a table.", "Red"]
SUBJECTS = ["wine; grapes", "Oil", "oil;Wine", "wine "]
FRAME = pd.DataFrame(
    {"Titel": TITLES, "Jahr": 1999, "Abstract": ABSTRACTS, "Schlagwörter": SUBJECTS}
)


def carried(corpus: Corpus) -> list[set[str]]:
    return [{corpus.labels[j].name for j in row.indices} for row in corpus.Y]


EXPECTED = [{"wine", "grapes"}, {"Oil"}, {"Oil", "wine"}, {"wine"}]


def test_columns_are_those_asked_for_and_a_missing_value_is_no_text():
    data = depl.read(FRAME, text=["Titel", "Abstract"], labels="Schlagwörter")
    assert list(data.splits) == ["train"]
    assert data.train.texts[:2] == ["Sparkling wine\nFrom white grapes.", "Olive oil"]
    assert carried(data.train) == EXPECTED


def test_columns_are_found_and_said(caplog):
    with caplog.at_level(logging.INFO, "depl"):
        data = depl.read(FRAME)
    assert carried(data.train) == EXPECTED
    assert "text: Titel + Abstract; labels: Schlagwörter, split at ';'" in caplog.text


LISTS = [sorted(row) for row in EXPECTED]
ROWS = [{"title": t, "subjects": y} for t, y in zip(TITLES, LISTS, strict=True)]


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        iter(ROWS),
        [row | {"subjects": set(row["subjects"])} for row in ROWS],
        [row | {"subjects": np.array(row["subjects"])} for row in ROWS],
        pd.DataFrame(ROWS, index=[7, 7, 8, 9]),
        datasets.Dataset.from_list(ROWS),
    ],
    ids=["dicts", "iterator", "sets", "arrays", "DataFrame", "Dataset"],
)
def test_lists_of_labels_in_any_table(given):
    corpus = depl.read(given, text="title", labels="subjects").train
    assert corpus.texts == TITLES
    assert carried(corpus) == EXPECTED


def test_splits_of_a_dataset_and_the_names_of_its_classes():
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["oil", "wine"])}
    )
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TITLES)]
    whole = datasets.Dataset.from_list(rows, features=features)
    data = depl.read(datasets.DatasetDict(train=whole, validation=whole.select([1])))
    assert sorted(data.splits) == ["dev", "train"]
    assert carried(data.train) == [{"oil"}, {"wine"}, {"oil"}, {"wine"}]
    assert data.dev.texts == ["Olive oil"]
    assert list(depl.read({"train": rows, "test": rows}, splits=["test"]).splits) == ["test"]


def test_labels_that_are_lists_of_class_numbers_have_names():
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "labels": datasets.Sequence(datasets.ClassLabel(names=["oil", "wine"])),
        }
    )
    rows = [{"text": "Wine and oil", "labels": [1, 0]}, {"text": "Wine", "labels": [1]}]
    data = depl.read(datasets.Dataset.from_list(rows, features=features))
    assert carried(data.train) == [{"oil", "wine"}, {"wine"}]


def test_rows_without_text_or_labels_are_left_out():
    frame = pd.DataFrame({"text": ["wine", None, "oil", "x"], "labels": ["a", "b", np.nan, pd.NA]})
    assert depl.read(frame).train.texts == ["wine"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "Cannot read documents from int"),
        (b"x", "Cannot read documents from bytes"),
        (["wine"], "A row must be a dict; got 'wine'"),
        ({"tests": ROWS}, "names train, dev and test; got 'tests'"),
        ({"train": ROWS, "test": "x"}, "Cannot read documents from str"),
        (pd.DataFrame({"a": []}), "There is no record in the table"),
    ],
)
def test_what_is_no_table_is_refused(given, message):
    with pytest.raises(CorpusError, match=message):
        depl.read(given)


def test_column_that_is_not_there_is_said():
    with pytest.raises(CorpusError, match=r"no column 'Title'.*Did you mean 'Titel'"):
        depl.read(FRAME, text="Title")
    with pytest.raises(CorpusError, match="no format"):
        depl.read(FRAME, format="csv")
    with pytest.raises(CorpusError, match="There is no split 'dev'"):
        depl.read(FRAME, splits=["dev"])
