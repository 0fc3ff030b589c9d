"""The scikit-learn estimator: forms of X and y, matrices, and scikit-learn's own checks."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import depl
from depl.core.corpus import Dataset
from depl.core.errors import ConfigError, CorpusError, DeplError
from depl.evaluation import metrics
from depl.evaluation.metrics import Hits

QUICK = {"threads": 1, "features.language": "en"}


@pytest.fixture(scope="module")
def texts(dataset: Dataset) -> list[str]:
    return dataset.train.texts


@pytest.fixture(scope="module")
def names(dataset: Dataset) -> list[list[str]]:
    return [[dataset.labels[j].name for j in row.indices] for row in dataset.train.Y]


@pytest.fixture(scope="module")
def tagger(texts: list[str], names: list[list[str]]) -> depl.Tagger:
    return depl.Tagger(settings=QUICK).fit(texts, names)


def carried(tagger: depl.Tagger) -> list[set[str]]:
    """The labels of the training documents, as the run has them."""
    corpus = tagger.model_._run.train()
    return [{corpus.labels[j].name for j in row.indices} for row in corpus.Y]


# What is fitted


def test_labels_are_sorted_and_documents_carry_their_own(tagger, names):
    assert tagger.classes_.tolist() == sorted({name for row in names for name in row})
    assert carried(tagger) == [set(row) for row in names]


@pytest.mark.parametrize(
    "form",
    [
        tuple,
        lambda texts: np.array(texts),
        lambda texts: np.array(texts, dtype=object)[:, None],
        lambda texts: pd.Series(texts, index=range(7, 7 + len(texts))),
        lambda texts: pd.DataFrame({"title": texts}),
    ],
    ids=["tuple", "array", "column", "Series", "DataFrame"],
)
def test_texts_in_any_form_are_the_same(tagger, texts, form):
    found, expected = tagger.suggest(form(texts)), tagger.suggest(texts)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.scores, expected.scores)


def indicator(names: list[list[str]]) -> pd.DataFrame:
    columns = sorted({name for row in names for name in row})
    return pd.DataFrame([[int(c in row) for c in columns] for row in names], columns=columns)


FORMS = {
    "sets": (lambda y: [set(row) for row in y], {}),
    "series": (lambda y: pd.Series(y), {}),
    "strings": (lambda y: ["; ".join(row) for row in y], {"separator": ";"}),
    "column of strings": (
        lambda y: pd.DataFrame({"s": ["|".join(r) for r in y]}),
        {"separator": "|"},
    ),
    "DataFrame": (indicator, {}),
    "array": (lambda y: indicator(y).to_numpy(), {"label_names": "columns"}),
    "csr_matrix": (lambda y: csr_matrix(indicator(y).to_numpy()), {"label_names": "columns"}),
    "csr_array of bool": (
        lambda y: csr_array(indicator(y).to_numpy(bool)),
        {"label_names": "columns"},
    ),
}
FORMS["other spellings"] = (
    lambda y: [
        [f" {row[0].upper()} ", *row[1:]] if i in (0, 20) else row for i, row in enumerate(y)
    ],
    {},
)


@pytest.mark.parametrize("form", FORMS)
def test_labels_in_any_form_are_the_same(form, texts, names):
    from depl.readers.targets import read_targets

    make, options = FORMS[form]
    if options.get("label_names") == "columns":
        options = options | {"label_names": indicator(names).columns}
    found = read_targets(make(names), **options)
    expected = indicator(names)
    assert found.labels.names == expected.columns.tolist()
    assert found.labels.ids == found.labels.names
    np.testing.assert_array_equal(found.Y.toarray(), expected.to_numpy())


def test_columns_without_names_are_numbered_and_one_without_documents_is_kept(texts):
    Y = np.zeros((len(texts), 3), int)
    Y[:10, 0] = Y[10:30, 2] = 1
    tagger = depl.Tagger(settings=QUICK).fit(texts, Y)
    assert tagger.classes_.tolist() == ["0", "1", "2"]
    assert tagger.predict_proba(texts).shape == (48, 3)
    assert tagger.score(texts, Y) == pytest.approx(30 / 48)  # a document without labels has none


def test_documents_without_labels_may_have_none_nan_or_an_empty_list(texts, names):
    from depl.readers.targets import read_targets

    y = [None, float("nan"), [], *names[3:]]
    assert read_targets(y).Y.sum(axis=1)[:3].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("wine", "got a single text"),
        (None, "got None"),
        (["wine", None], "number 2 of 2 is None"),
        (["wine", float("nan")], "NaN, a missing value"),
        (pd.Series(["wine", np.nan]), "number 2 of 2 is NaN"),
        (pd.DataFrame({"a": ["wine"], "b": ["x"]}), r"table of 2 columns \(a, b\).*df\['a'\]"),
        (np.zeros((3, 2)), r"array of shape \(3, 2\)"),
        ({"text": "wine"}, "of type dict"),
        ([b"wine"], "of type bytes"),
        (3, "3 of type int"),
    ],
)
def test_what_is_no_list_of_texts_is_refused_everywhere(tagger, X, message):
    for call in (tagger.predict, tagger.suggest, tagger.model_.predict, tagger.model_.parts):
        with pytest.raises(CorpusError, match=message):
            call(X)
    with pytest.raises(CorpusError, match=message):
        depl.Tagger().fit(X, [["a"], ["b"]])


@pytest.mark.parametrize("text", [None, float("nan"), ["wine"], pd.Series(["wine"])])
def test_what_is_no_text_cannot_be_explained(tagger, text):
    with pytest.raises(CorpusError, match="explain takes one text; got"):
        tagger.model_.explain(text, "wine")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a"], ["b"], ["c"]], "2 texts, and labels of 3 documents"),
        ([[0, 1], [1, 0]], r"numpy\.array\(y\)"),
        (np.array([[0, 2], [1, 0]]), r"this one holds 2\.0"),
        (np.array([["a", "b"], ["c", "d"]]), "cannot be read as numbers"),
        ([{"a": 1}, {"b": 2}], "got {'a': 1} of type dict"),
        ([1.5, 2.5], "got 1.5 of type float"),
    ],
)
def test_labels_that_make_no_sense_are_refused(y, message):
    with pytest.raises(DeplError, match=message):
        depl.Tagger().fit(["wine and grapes", "oil and olives"], y)


def test_names_must_fit_the_columns():
    with pytest.raises(CorpusError, match="has 2 columns, and there are 1 names"):
        depl.Tagger(label_names=["a"]).fit(["wine", "oil"], np.eye(2))


def test_settings_and_recipe_count(texts, names):
    settings = {"features.analyzer": "words", "linear.C_grid": [0.5]} | QUICK
    fitted = depl.Tagger({"features": {"min_df": 1}}, settings=settings).fit(texts, names)
    config = fitted.model_._run.config()
    assert (config.features.analyzer, config.features.min_df) == ("words", 1)
    assert config.linear.C_grid == (0.5,)
    with pytest.raises(ConfigError, match=r"linear\.c.*Did you mean linear\.C"):
        depl.Tagger(settings={"linear.c": 1}).fit(texts, names)


# What is predicted


def test_predictions_are_the_suggestions_above_the_threshold(tagger, dataset):
    dev = dataset.dev.texts
    P = tagger.predict_proba(dev)
    assert P.shape == (len(dev), len(tagger.classes_))
    assert (P >= 0).all()
    assert (P <= 1).all()
    best = tagger.model_.thresholds.best_f1
    np.testing.assert_array_equal(tagger.predict(dev).toarray(), P.astype(np.float64) >= best)
    strict = copy.copy(tagger).set_params(threshold=0.9)
    np.testing.assert_array_equal(strict.predict(dev).toarray(), P >= 0.9)


def test_predictions_can_be_the_k_best(tagger, dataset):
    two = copy.copy(tagger).set_params(k=2).predict(dataset.dev.texts)
    assert issparse(two)
    assert two.sum(axis=1).tolist() == [2] * len(dataset.dev)
    ranking = tagger.suggest(dataset.dev.texts, 2)
    assert [set(row.indices) for row in two] == [set(row.tolist()) for row in ranking.indices]


def test_decision_function_orders_like_the_probabilities(tagger, dataset):
    P, D = tagger.predict_proba(dataset.dev.texts), tagger.decision_function(dataset.dev.texts)
    assert np.isfinite(D).all()
    found = P > 0
    np.testing.assert_allclose(1 / (1 + np.exp(-D[found].astype(float))), P[found], atol=1e-5)
    assert (D[~found] <= D[found].min()).all()


def test_matrix_that_would_be_huge_is_refused_with_another_way(tagger, monkeypatch):
    monkeypatch.setattr("depl.tagger._DENSE", 20)
    with pytest.raises(DeplError, match=r"2 documents and 11 labels would take.*suggest\(X, k\)"):
        tagger.predict_proba(["wine", "oil"])
    assert tagger.suggest(["wine", "oil"], 3).to_csr().shape == (2, 11)


def test_score_is_the_ndcg_of_the_first_five(tagger, dataset):
    y = [[dataset.labels[j].name for j in row.indices] for row in dataset.dev.Y]
    aligned = dataset.dev.aligned(dataset.labels)
    order = [
        tagger.classes_.tolist().index(x.name) for x in dataset.labels if x.name in tagger.classes_
    ]
    ranking = tagger.suggest(dataset.dev.texts, 5)
    place = np.full(12, -1)
    place[order] = [i for i, x in enumerate(dataset.labels) if x.name in tagger.classes_]
    expected = metrics.ndcg_at_k(Hits.of(place[ranking.indices], aligned.Y), 5)
    assert tagger.score(dataset.dev.texts, y) == pytest.approx(expected)
    assert tagger.score(dataset.dev.texts, ["unheard of"] * 12) == 0


def test_suggestions_name_their_labels(tagger):
    table = tagger.suggest(["Council Regulation on sparkling wine", "xyzzy"], 2).to_pandas()
    assert table.columns.tolist() == ["document", "rank", "id", "label", "score"]
    assert table.loc[0, ["document", "rank", "label"]].tolist() == [0, 1, "wine"]


# As scikit-learn uses it


def test_tagger_that_is_not_fitted_says_so_in_scikit_learns_way():
    with pytest.raises(NotFittedError, match="This Tagger instance is not fitted yet"):
        depl.Tagger().predict(["wine"])


def test_clone_has_the_parameters_and_nothing_learned(tagger):
    cloned = clone(tagger)
    assert cloned.get_params() == tagger.get_params()
    assert not hasattr(cloned, "classes_")


def test_cross_validation_takes_names_as_they_are(texts, names):
    found = cross_val_score(depl.Tagger(settings=QUICK), texts, names, cv=KFold(2, shuffle=True))
    assert found.shape == (2,)
    assert (found > 0.1).all()


def test_cross_validation_of_a_matrix_takes_scikit_learns_measures(texts, names):
    Y = indicator(names).to_numpy()
    tagger = depl.Tagger(settings=QUICK)
    assert not is_classifier(tagger)
    scorer = make_scorer(
        average_precision_score, response_method="decision_function", average="micro"
    )
    [first, _] = cross_val_score(tagger, texts, Y, cv=2, scoring=scorer)
    half = clone(tagger).fit(texts[24:], Y[24:])
    assert is_classifier(half)
    assert first == pytest.approx(
        average_precision_score(Y[:24], half.decision_function(texts[:24]), average="micro")
    )
    assert 0 < f1_score(Y[:24], half.predict(texts[:24]), average="micro") <= 1


def test_grid_search_in_a_pipeline(texts, names):
    lower = FunctionTransformer(lambda X: [text.lower() for text in X])
    pipeline = make_pipeline(lower, depl.Tagger(settings=QUICK))
    grid = {"tagger__settings": [QUICK | {"features.max_df": share} for share in (0.05, 0.7)]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(texts, names)
    assert search.best_params_["tagger__settings"]["features.max_df"] == 0.7
    assert search.predict(["Sparkling WINE of grapes"]).shape == (1, 11)


# Keeping it


@pytest.mark.parametrize("way", ["pickle", "joblib", "deepcopy"])
def test_copy_of_a_fitted_tagger_lives_without_the_first(way, texts, names, tmp_path):
    tagger = depl.Tagger(settings=QUICK, k=1).fit(texts, names)
    expected = tagger.predict_proba(texts)
    folder = tagger._path
    assert folder.is_dir()
    if way == "pickle":
        again = pickle.loads(pickle.dumps(tagger))
    elif way == "joblib":
        joblib.dump(tagger, tmp_path / "tagger.joblib")
        again = joblib.load(tmp_path / "tagger.joblib")
    else:
        again = copy.deepcopy(tagger)
    del tagger
    assert not folder.exists()
    assert again._path.is_dir()
    assert again.get_params()["k"] == 1
    np.testing.assert_array_equal(again.predict_proba(texts), expected)
    assert again.model_.explain("sparkling wine", "wine").keywords


def test_pickle_with_files_outside_its_folder_is_refused(tagger):
    state = tagger.__getstate__()
    state["files"] = {"../evil": b""}
    with pytest.raises(DeplError, match="outside its run folder"):
        depl.Tagger().__setstate__(state)


def test_run_folder_stays_and_is_not_replaced_unasked(texts, names, tmp_path):
    out = tmp_path / "run"
    tagger = depl.Tagger(settings=QUICK, out=out).fit(texts, names)
    del tagger
    assert depl.Classifier.load(out).n_train == 48
    with pytest.raises(DeplError, match="another corpus"):
        depl.Tagger(settings=QUICK, out=out).fit(texts[:40], names[:40])
    depl.Tagger(settings=QUICK, out=out, overwrite=True).fit(texts[:40], names[:40])
    assert depl.Classifier.load(out).n_train == 40


# Scikit-learn's own checks, whose X are numbers: each row becomes a text of words.


class NumberTagger(depl.Tagger):
    """A tagger of rows of numbers: which column has which value, in words."""

    def _words(self, X):
        rows = np.asarray(X)
        return [" ".join(f"c{j}v{round(v)}" for j, v in enumerate(row)) for row in rows.tolist()]

    def fit(self, X, y):
        return super().fit(self._words(X), y)

    def _texts(self, X):
        return super()._texts(X if isinstance(X, list) else self._words(X))

    def score(self, X, y):
        return super().score(self._words(X), y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.no_validation = True
        return tags


# With the first three, what is refused depends on how this test makes texts of numbers.
WHY_NOT = {
    "check_estimator_sparse_tag": "a sparse matrix is no list of texts",
    "check_estimator_sparse_array": "a sparse matrix is no list of texts",
    "check_estimator_sparse_matrix": "a sparse matrix is no list of texts",
    "check_fit2d_1sample": "one document is refused with a DeplError, not a ValueError",
}
QUICK_NUMBERS = NumberTagger(settings=QUICK | {"features.min_df": 1, "features.max_df": 1.0})


@parametrize_with_checks(
    [QUICK_NUMBERS],
    expected_failed_checks=lambda estimator: WHY_NOT,
    xfail_strict=True,
)
def test_scikit_learns_checks_of_the_interface(estimator, check):
    check(estimator)


def test_strings_that_look_like_several_labels_are_warned_of(texts):
    from depl.readers.targets import read_targets

    with pytest.warns(UserWarning, match=r"'wine; oil' are taken for one label.*separator=';'"):
        read_targets(["wine; oil", "wine", "tin; oil"])
    with warnings.catch_warnings(action="error"):
        read_targets(["wine; oil", "wine"], separator=";")
        read_targets(["wine, red", "oil;"])


def test_scikit_learn_sees_texts_and_several_labels(tagger):
    tags = tagger.__sklearn_tags__()
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.multi_output
    assert Path(tagger._path).is_dir()
