"""What `import depl` offers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import depl
from depl.core.corpus import Corpus, Dataset, Label, LabelSet


def test_all_is_sorted_and_every_name_has_its_home():
    assert depl.__all__ == sorted(depl.__all__)
    assert depl.__all__ == list(depl._HOME)


@pytest.mark.parametrize("name", depl.__all__)
def test_every_public_name_is_what_its_home_calls_by_it(name: str):
    home = depl._HOME[name]
    thing = getattr(depl, name)
    assert thing is getattr(import_module(home), name)
    assert thing.__doc__
    assert thing.__module__ == home


def test_dir_lists_the_public_names():
    assert dir(depl) == sorted([*depl.__all__, "__version__"])


def test_star_import_brings_the_public_names():
    brought: dict[str, object] = {}
    exec("from depl import *", brought)
    assert set(depl.__all__) <= set(brought)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'depl' has no attribute 'nonsense'"):
        _ = depl.nonsense


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert depl.__version__ == version("depl")


def test_the_five_lines_of_the_manual(corpus_folder: Path, tmp_path: Path):
    data = depl.read(corpus_folder)
    model = depl.fit(data.train, out=tmp_path / "run")
    ranking = model.predict(["Council Regulation on sparkling wine"], k=3)
    report = depl.evaluate(model, data.dev)
    assert model.labels[int(ranking.indices[0, 0])].name == "wine"
    assert report.name == "run"
    assert report.documents == 12
    # By hand: the share of documents whose best label is right.
    best = model.predict(data.dev.texts, k=1).indices[:, 0]
    right = data.dev.Y.toarray()[np.arange(12), best]
    assert report.scores["P@1"] == pytest.approx(100 * right.mean())


def test_fit_refuses_another_corpus_unless_told(dataset: Dataset, own_run: Path):
    other = dataset.train.subset(range(40))
    with pytest.raises(depl.DeplError, match="another corpus"):
        depl.fit(other, out=own_run)
    assert depl.Classifier.load(own_run).n_train == 48
    assert depl.fit(other, out=own_run, overwrite=True).n_train == 40


def test_settings_of_a_fit_count(dataset: Dataset, tmp_path: Path):
    config = depl.Config.from_dict({"features": {"analyzer": "words"}})
    model = depl.fit(dataset.train, out=tmp_path / "run", config=config)
    assert "wines" in model.features.terms_


def test_labels_that_the_model_does_not_know_count_as_missed(fitted_run: Path):
    model = depl.Classifier.load(fitted_run)
    labels = LabelSet([Label("new", "zeppelins"), Label("2560", "wine")])
    texts = ["sparkling wine of grapes", "sparkling wine of vineyards"]
    report = depl.evaluate(model, Corpus.from_rows(["a", "b"], texts, [[0, 1], [1]], labels))
    assert report.labels == 13
    assert report.scores["P@1"] == 100
    assert report.scores["R@5"] == pytest.approx(75)  # of document a, half
    assert report.bands["0"]["labels"] == 2
    assert report.bands["0"]["labels_in_test"] == 1


def test_cut_offs_of_an_evaluation_are_a_setting(fitted_run: Path, dataset: Dataset):
    report = depl.evaluate(depl.Classifier.load(fitted_run), dataset.dev, ks=(2, 11))
    assert {"P@2", "P@11"} <= set(report.scores)
    assert "P@5" not in report.scores


def test_evaluation_without_a_cut_off_is_refused(fitted_run: Path, dataset: Dataset):
    with pytest.raises(depl.DeplError, match="at least one k"):
        depl.evaluate(depl.Classifier.load(fitted_run), dataset.dev, ks=())
