"""Several reports side by side."""

from __future__ import annotations

import numpy as np
from tests.evaluation.problems import random_problem, report_of

from depl.evaluation.tables import comparison


def test_comparison_puts_reports_side_by_side():
    one, two = report_of(random_problem(0), name="one"), report_of(random_problem(1))
    header, rows = comparison([one, two])
    assert header == ["labels", "metric", "one", "run 2"]
    table = {(row.group, row.metric): row for row in rows}
    assert len(table) == len(rows)
    p5 = table["all", "P@5"]
    assert p5.values == (one.scores["P@5"], two.scores["P@5"])
    assert p5.cells == tuple(f"{value:.2f}" for value in p5.values)
    tail = table["1-9", "macro-F1@5 in split"]
    assert tail.values[0] == one.bands["1-9"]["macroF1@5_in_test"]
    assert table["100+", "labels"].cells[0] == f"{one.bands['100+']['labels']:,}"
    assert ("1-9", "macro-F1@3") not in table


def test_the_best_value_of_a_row_is_marked_when_there_is_one():
    _, rows = comparison([report_of(random_problem(s)) for s in (0, 1, 2)])
    for row in rows:
        if row.metric.startswith("labels"):
            assert row.best == (False,) * 3  # a count is not a score
        elif len(set(row.cells)) > 1:
            top = max(float(cell) for cell in row.cells)
            assert row.best == tuple(float(cell) == top for cell in row.cells)
    _, rows = comparison([report_of(random_problem())] * 2)
    assert not any(flag for row in rows for flag in row.best)


def test_comparison_leaves_gaps_where_cut_offs_differ_and_skips_empty_bands():
    problem = [{0}], [[0, 1]], np.array([4, 0])
    _, rows = comparison([report_of(problem, 2, ks=(1,)), report_of(problem, 2, ks=(1, 2))])
    table = {(row.group, row.metric): row for row in rows}
    assert table["all", "P@2"].cells == ("–", "50.00")
    assert {row.group for row in rows} == {"all", "0", "1-9"}
