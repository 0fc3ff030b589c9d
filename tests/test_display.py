"""How objects show themselves: short in a console, as small escaped tables in a notebook."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import depl
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import CorpusError

EVIL = "<script>alert('x')</script>"


class Reader(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def model(fitted_run: Path) -> depl.Classifier:
    return depl.Classifier.load(fitted_run)


@pytest.fixture(scope="module")
def evil() -> Corpus:
    labels = LabelSet([Label(EVIL, EVIL)])
    return Corpus.from_rows([EVIL] * 400, [EVIL * 1000] * 400, [[0]] * 400, labels)


def shown(model: depl.Classifier, dataset: Dataset, evil: Corpus) -> list[tuple[object, str]]:
    ranking = model.predict(["Sparkling wine of grapes", "olive oil"], k=3)
    return [
        (dataset.train, "Corpus(48 documents, 12 labels, 1.2 each)"),
        (dataset, "Dataset(laws: train 48, dev 12 documents, 12 labels)"),
        (
            model,
            "Classifier(fitted: 12 labels, 48 training documents; "
            "parts: svm, names, name coverage, whole names, word neighbours, characters)",
        ),
        (ranking, f"Ranking(2 documents, 3 labels each; first: wine {ranking.scores[0, 0]:.2f}, "),
        (depl.Ranking.empty(3, 2), "Ranking(3 documents, 2 labels each)"),
        (depl.evaluate(model, dataset.dev), "Report(fitted: 12 documents, P@1 "),
        (model.explain("Sparkling wine of grapes", "wine"), "Explanation(wine, probability "),
        (evil, "Corpus(400 documents, 1 label, 1.0 each)"),
        (Dataset(evil.labels, {"train": evil}, EVIL), f"Dataset({EVIL}: train 400"),
        (
            depl.Ranking(np.array([[0]]), np.array([[0.5]]), evil.labels),
            "Ranking(1 document, 1 label each",
        ),
    ]


def test_what_is_shown_is_short_and_says_what_it_is(model, dataset, evil):
    for thing, beginning in shown(model, dataset, evil):
        assert repr(thing).startswith(beginning)
        assert len(repr(thing)) < 200


def test_notebooks_show_tables_and_run_nothing_that_was_read(model, dataset, evil):
    for thing, _ in shown(model, dataset, evil):
        page = Reader(thing._repr_html_())
        assert page.tags == {"p", "b", "table", "tr", "th", "td"} - (
            {"td"} if "td" not in page.tags else set()
        )
        assert repr(thing) in page.text
        assert len(page.text) < 5_000


def test_tables_have_what_one_looks_for(model, dataset):
    assert "bottling of sparkling wine" in dataset.train._repr_html_()
    report = depl.evaluate(model, dataset.dev)
    assert f"<td>{report.scores['nDCG@5']:.1f}</td>" in report._repr_html_()
    assert "<td>10-99</td>" in report._repr_html_()
    explained = model.explain("Sparkling wine of grapes", "wine")._repr_html_()
    assert "<td>grape</td>" in explained
    assert "Similar training documents" in explained


def test_an_explanation_by_the_name_alone_shows_its_words(model):
    explained = model.explain("new rules for apiculture", "77")
    assert not explained.keywords
    assert re.fullmatch(
        r"Explanation\(bee-keeping, probability 0\.\d\d: apiculture\)", repr(explained)
    )
    assert "<td>apiculture</td>" in explained._repr_html_()


def test_one_document_is_one_document(evil):
    one = Dataset(evil.labels, {"train": evil.subset([0])}, "x")
    assert repr(one) == "Dataset(x: train 1 document, 1 label)"


@pytest.mark.parametrize("given", ["records.csv", [["text"]], None])
def test_what_is_no_corpus_is_refused_in_words(model, given, tmp_path):
    for call in (
        lambda: depl.fit(given, out=tmp_path / "run"),
        lambda: depl.evaluate(model, given),
    ):
        with pytest.raises(CorpusError, match=r"A corpus is needed; got \w+\. Read it first"):
            call()


def test_all_splits_together_are_refused(model, dataset, tmp_path):
    with pytest.raises(CorpusError, match=r"Give its \.train or \.dev\."):
        depl.fit(dataset, out=tmp_path / "run")
