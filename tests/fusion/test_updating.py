"""A fusion that learns from feedback, against what its trees and a plain fit say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logit

from depl.core.ranking import Ranking
from depl.fusion.calibration import correction
from depl.fusion.candidates import candidate_pairs
from depl.fusion.fusion import FUSION, Fusion
from depl.fusion.growing import grow
from depl.fusion.updating import Foreseen, updated

N_LABELS, COUNTS = 30, np.arange(30)


def documents(seed, n, noise):
    """Documents with about three labels each, and parts that see them through noise."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, N_LABELS)) < 0.1
    scores = {f"part {i}": truth + rng.normal(0, x, truth.shape) for i, x in enumerate(noise)}
    rankings = {name: Ranking.from_scores(x, N_LABELS) for name, x in scores.items()}
    return rankings, csr_array(truth.astype(np.float32)), [f"{seed}-{i}" for i in range(n)]


def carried(ids, Y):
    return {id: set(Y[[i]].indices.tolist()) for i, id in enumerate(ids)}


@pytest.fixture(scope="module")
def fusion():
    """Fitted when the first part was the better one."""
    rankings, Y, _ = documents(0, 200, (0.3, 1.0))
    fitted = Fusion(iterations=40).fit(rankings, Y, COUNTS, 500)
    assert fitted.chosen_ == FUSION
    return fitted


@pytest.fixture(scope="module")
def later(fusion):
    """Documents from after the second part has become the better one."""
    rankings, Y, ids = documents(1, 200, (1.0, 0.3))
    return Foreseen.of(fusion, rankings, COUNTS, ids, Y), carried(ids, Y)


def log_loss(fusion, seed=2):
    rankings, Y, _ = documents(seed, 200, (1.0, 0.3))
    ranked = fusion.rank(rankings, COUNTS, N_LABELS)
    truth = np.take_along_axis(Y.toarray() > 0, ranked.indices, axis=1)
    return -np.log(np.where(truth, ranked.scores, 1 - ranked.scores)).mean()


def test_candidates_are_kept_as_the_fusion_sees_them(fusion, later):
    foreseen, truth = later
    rankings, *_ = documents(1, 200, (1.0, 0.3))
    rows, labels, X = candidate_pairs(rankings, fusion.candidates, COUNTS)
    every = {(row, label): x for row, label, x in zip(rows, labels, X, strict=True)}
    at = np.repeat(np.arange(200), np.diff(foreseen.ends))
    expected = np.array([every[pair] for pair in zip(at, foreseen.labels, strict=True)])
    assert np.array_equal(foreseen.X, expected, equal_nan=True)
    assert np.array_equal(foreseen.log_odds, fusion.log_odds(expected))
    true = {(i, j) for i, id in enumerate(foreseen.ids) for j in truth[id]}
    assert true <= set(zip(at.tolist(), foreseen.labels.tolist(), strict=True))
    assert foreseen.weight.sum() == pytest.approx(len(rows), rel=0.05)
    same = foreseen.among([truth[id] for id in foreseen.ids])
    pairs = zip(at.tolist(), foreseen.labels.tolist(), strict=True)
    assert same.tolist() == [x in true for x in pairs]


def test_trees_of_both_are_mixed_by_their_documents_and_the_line_is_corrected(fusion, later):
    foreseen, truth = later
    new = updated(fusion, 200, 200, foreseen, dict.fromkeys(truth, range(5)), truth, truth)
    y = foreseen.among([truth[id] for id in foreseen.ids])
    trees = grow(foreseen.X, y, foreseen.weight, 2, iterations=60, leaves=8, learning_rate=0.1)
    mean = (fusion.log_odds(foreseen.X) + trees.log_odds(foreseen.X)) / 2
    assert new.log_odds(foreseen.X) == pytest.approx(mean)
    slope, offset = fusion.line
    copies = np.repeat(np.arange(len(y)), foreseen.weight.astype(int))
    shown = fusion.probability(foreseen.log_odds, foreseen.X[:, 4])
    by, plus = correction(shown[copies], y[copies])
    by, plus = (1 + by) / 2, plus / 2  # the feedback is half of all documents
    assert new.line == pytest.approx((by * slope, by * offset + plus), abs=1e-4)
    assert new.order_ == fusion.order_
    before = fusion.probability(foreseen.log_odds, foreseen.X[:, 4])
    after = fusion.recalibrated(by, plus).probability(foreseen.log_odds, foreseen.X[:, 4])
    assert logit(after) == pytest.approx(by * logit(before) + plus)


def test_it_learns_which_part_to_trust(fusion, later):
    foreseen, truth = later
    through = dict.fromkeys(truth, range(5))
    before, after = (
        log_loss(fusion),
        log_loss(updated(fusion, 200, 200, foreseen, through, truth, truth)),
    )
    rankings, Y, _ = documents(3, 200, (1.0, 0.3))
    best = log_loss(Fusion(iterations=40).fit(rankings, Y, COUNTS, 500))
    assert before - after > 0.6 * (before - best)


def test_a_few_documents_hardly_count(fusion):
    rankings, Y, ids = documents(6, 3, (0.3, 1.0))
    foreseen = Foreseen.of(fusion, rankings, COUNTS, ids, Y)
    new = updated(fusion, 200, 200, foreseen, dict.fromkeys(ids, range(5)), ids, carried(ids, Y))
    others, *_ = documents(7, 200, (0.3, 1.0))
    before, after = (x.rank(others, COUNTS, N_LABELS) for x in (fusion, new))
    order = [np.argsort(x.indices, axis=1) for x in (before, after)]
    moved = np.take_along_axis(before.scores, order[0], 1) - np.take_along_axis(
        after.scores, order[1], 1
    )
    assert 0 < np.abs(moved).max() < 0.1
    assert np.abs(moved).mean() < 0.01


@pytest.mark.parametrize("n_train", [200, 1_800])
def test_the_line_moves_by_the_share_of_the_feedback(fusion, later, n_train):
    foreseen, truth = later
    judged = dict.fromkeys(truth, range(5))
    whole = updated(fusion, 200, 0, foreseen, judged, truth, truth)
    some = updated(fusion, 200, n_train, foreseen, judged, truth, truth)
    moved, by = (np.subtract(x.line, fusion.line) for x in (some, whole))
    assert np.abs(by).max() > 0.01
    assert moved == pytest.approx(200 / (200 + n_train) * by)


def test_what_was_not_judged_is_not_evidence(fusion, later):
    foreseen, truth = later
    assert updated(fusion, 200, 200, foreseen, {}, (), truth).line == fusion.line
    right = {id: truth[id] for id in truth if len(truth[id]) < 5}
    some = updated(fusion, 200, 200, foreseen, right, truth, truth)  # all of them right
    assert some.line == fusion.line
    assert np.array_equal(some.log_odds(foreseen.X), fusion.log_odds(foreseen.X))


@pytest.mark.parametrize(("n", "completed"), [(4, True), (5, False)])
def test_the_rest_of_a_document_is_known_once_it_was_gone_through(fusion, later, n, completed):
    foreseen, truth = later
    judged = {id: range(n) for id in truth}
    some = updated(fusion, 200, 200, foreseen, judged, truth if completed else (), truth)
    assert np.array_equal(some.log_odds(foreseen.X), fusion.log_odds(foreseen.X))
    known = foreseen.labels < n
    y = foreseen.among([truth[id] for id in foreseen.ids])[known]
    slope, offset = fusion.line
    shown = fusion.probability(foreseen.log_odds[known], foreseen.X[known][:, 4])
    by, plus = correction(shown, y, foreseen.weight[known])
    by, plus = (1 + by) / 2, plus / 2
    assert some.line == pytest.approx((by * slope, by * offset + plus))


def test_a_single_part_that_was_chosen_keeps_its_order(later):
    rankings, Y, _ = documents(31, 15, (0.4, 5.0))
    fusion = Fusion(iterations=2).fit(rankings, Y, COUNTS, 500)
    assert fusion.chosen_ == "part 0"
    _, truth = later
    rankings, Y, ids = documents(1, 200, (1.0, 0.3))
    foreseen = Foreseen.of(fusion, rankings, COUNTS, ids, Y)
    new = updated(fusion, 25, 200, foreseen, dict.fromkeys(truth, range(5)), truth, truth)
    assert new.line != fusion.line
    before, after = (x.rank(rankings, COUNTS, 5).indices.tolist() for x in (fusion, new))
    assert before == after


def test_documents_join_leave_and_come_back_from_a_file(fusion, later, tmp_path, monkeypatch):
    foreseen, _ = later
    rankings, Y, ids = documents(5, 10, (1.0, 0.3))
    more = Foreseen.of(fusion, rankings, COUNTS, ids, Y)
    there = {*foreseen.ids[::2], *ids}
    both = foreseen.then(more, there)
    assert both.ids == [*foreseen.ids[::2], *ids]
    at = both.ids.index(foreseen.ids[4])
    mine, own = slice(*both.ends[at : at + 2]), slice(*foreseen.ends[4:6])
    for name in ("labels", "X", "log_odds", "weight"):
        found, expected = getattr(both, name)[mine], getattr(foreseen, name)[own]
        assert np.array_equal(found, expected, equal_nan=True)
    assert both.ends[-1] == len(both.labels)
    assert Foreseen.load(tmp_path) is None
    both.save(tmp_path)
    kept = Foreseen.load(tmp_path)
    assert kept.ids == both.ids
    for name in ("ends", "labels", "X", "log_odds", "weight"):
        assert np.array_equal(getattr(kept, name), getattr(both, name), equal_nan=True)
    monkeypatch.setattr("depl.fusion.updating._MOST", 12)
    latest = foreseen.then(more, there)
    assert latest.ids == both.ids[-12:]
    assert np.array_equal(latest.X, both.X[both.ends[-13] :], equal_nan=True)
    none = Foreseen.none(fusion)
    assert none.then(more, ids).ids == ids
    assert updated(fusion, 200, 200, none, {}, (), {}).line == fusion.line


def test_one_in_four_wrong_pairs_that_looked_so_stand_for_all(fusion):
    rankings, Y, ids = documents(3, 400, (0.3, 0.5))
    foreseen = Foreseen.of(fusion, rankings, COUNTS, ids, Y)
    foreseen = replace(foreseen, log_odds=2 * foreseen.log_odds)  # of a surer fusion
    wrong = ~foreseen.among(list(carried(ids, Y).values()))
    weight = foreseen.thinned(wrong, 0)
    easy = wrong & (foreseen.log_odds < -4.6)
    assert 500 < easy.sum() < len(easy)
    assert np.array_equal(weight[~easy], foreseen.weight[~easy])
    kept = weight[easy] > 0
    assert kept.mean() == pytest.approx(0.25, abs=0.03)
    assert np.array_equal(weight[easy][kept], 4 * foreseen.weight[easy][kept])
