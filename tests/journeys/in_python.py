"""The journey of a data scientist: DataFrames, the scikit-learn estimator, short displays.

``walk.py`` runs it with a folder that holds ``records.csv``; each line that it prints is a step
that went well, and an assertion ends it.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

import depl
from depl.core.errors import DeplError


def refused(*call: object) -> None:
    """The call must raise an error in words."""
    function, *arguments = call
    said = ""
    try:
        function(*arguments)
    except (DeplError, ValueError, TypeError) as error:
        said = str(error)
    assert 20 < len(said) < 1000, f"not refused: {arguments!r:.80}"


def main(folder: Path) -> None:
    """All steps."""
    table = pd.read_csv(folder / "records.csv", sep=";", encoding="utf-8-sig").dropna(how="all")
    data = depl.read(table, text=["Titel", "Abstract"], labels="Schlagwörter")
    same = depl.read(folder / "records.csv")
    assert data.labels.names == same.labels.names
    assert data.train.texts == same.train.texts
    rows = table.to_dict("records")
    assert depl.read(rows, text=["Titel", "Abstract"]).train.texts == same.train.texts
    print("a DataFrame and a list of dicts give the documents of the file")

    table = table.dropna(subset="Schlagwörter")
    X, y = table["Titel"] + " " + table["Abstract"], table["Schlagwörter"]
    tagger = depl.Tagger(separator=";").fit(X, y)
    suggested = tagger.suggest(list(X[:3]), k=2).to_pandas()
    assert len(suggested) == 6, suggested
    print("Tagger.fit takes a Series of strings with a separator, and suggest().to_pandas()")
    names = [[x.strip().title() for x in cell.split(";")] for cell in y]
    by_lists = depl.Tagger().fit(list(X), names)
    by_sets = depl.Tagger().fit(X.to_frame(), [set(row) for row in names])
    assert (by_lists.predict(X[:9]) != by_sets.predict(X[:9])).nnz == 0
    matrix = by_lists.predict(X)
    frame = pd.DataFrame(matrix.toarray(), columns=by_lists.classes_)
    named = depl.Tagger().fit(X, frame)
    assert list(named.classes_) == list(by_lists.classes_)
    depl.Tagger().fit(X, matrix)
    print("labels as lists, sets, an indicator matrix and one with names")
    assert np.shape(by_lists.predict_proba(X[:4])) == (4, len(by_lists.classes_))
    assert np.shape(by_lists.decision_function(X[:4])) == (4, len(by_lists.classes_))
    assert 0 <= by_lists.score(X, names) <= 1
    again = pickle.loads(pickle.dumps(by_lists))
    assert (again.predict(X[:9]) != by_lists.predict(X[:9])).nnz == 0
    print("predict_proba, decision_function, score and pickle")
    few, known = list(X[:60]), names[:60]
    scores = cross_val_score(clone(by_lists), few, known, cv=2)
    assert len(scores) == 2
    steps = Pipeline([("tagger", depl.Tagger())])
    search = GridSearchCV(steps, {"tagger__settings": [{}, {"linear": {"C": 0.3}}]}, cv=2)
    assert search.fit(few, known).best_params_
    print("clone, cross_val_score, Pipeline and GridSearchCV")

    model = tagger.model_
    for wrong in (table, None, [None], [float("nan")], 3):
        refused(model.predict, wrong)
    refused(tagger.predict, table)
    print("a table, None or NaN where texts are expected is refused")
    report = depl.evaluate(model, data.train)
    shown = [data, data.train, model, report, report.mistakes, model.predict(list(X[:2]))]
    assert all(len(repr(x)) < 300 and "<table" in x._repr_html_() for x in shown)
    print("all objects show themselves in a line, and as tables in notebooks")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
