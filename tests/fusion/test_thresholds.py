"""Thresholds against brute force on small data, and against fresh documents on large."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.conftest import accept_changes
from typer.testing import CliRunner

import depl.fusion.fusion
from depl.cli.app import app
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import ConfigError, DeplError, RunError
from depl.core.ranking import Ranking
from depl.evaluation.bands import BANDS
from depl.evaluation.html import write_report
from depl.evaluation.metrics import Hits
from depl.evaluation.reliability import reliability
from depl.evaluation.scores import Report, evaluate
from depl.evaluation.tables import comparison
from depl.fusion.fusion import Fusion
from depl.fusion.thresholds import Curve, Thresholds, keep
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.folder import Run

suggestions = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=25)


def exact(pairs: list[tuple[int, bool]], missed: int) -> tuple[Curve, np.ndarray, np.ndarray, int]:
    """The curve without any smoothing but the order's, and what it was made of."""
    probability = np.array([p / 16 for p, _ in pairs], np.float32)
    right = np.array([r for _, r in pairs])
    true = int(right.sum()) + missed
    return Curve.fit(probability, right, true, mass=0, prior=0), probability, right, true


# Small data: brute force


@given(suggestions, st.integers(0, 5))
def test_precision_is_that_of_the_least_concave_curve_above_the_counts(pairs, missed):
    curve, probability, right, _ = exact(pairs, missed)
    levels = sorted(set(probability.tolist()), reverse=True)
    assert curve.thresholds.tolist() == levels
    # (suggested, right) at every threshold, from none on; a chord between any two bounds it.
    points = [(0, 0)] + [
        (int((probability >= t).sum()), int(right[probability >= t].sum())) for t in levels
    ]
    for i, (n, found) in enumerate(points[1:], 1):
        best = Fraction(found)
        for a, r_a in points[:i]:
            for b, r_b in points[i + 1 :]:
                best = max(best, r_a + Fraction(r_b - r_a, b - a) * (n - a))
        assert curve.suggested[i - 1] == n
        assert curve.precision[i - 1] == pytest.approx(float(best / n))


@given(suggestions, st.integers(0, 5), st.integers(1, 20))
def test_threshold_for_a_precision_is_the_lowest_that_reaches_it_less_its_error(
    pairs, missed, twentieths
):
    curve, *_ = exact(pairs, missed)
    wanted = twentieths / 20
    reaching = [
        t
        for t, p, n in zip(curve.thresholds, curve.precision, curve.suggested, strict=True)
        if p - np.sqrt(p * (1 - p) / n) >= wanted - 1e-9
    ]
    assert curve.lowest(wanted) == (min(reaching) if reaching else None)


@given(suggestions, st.integers(0, 5))
def test_best_f1_is_the_best_that_any_threshold_gives(pairs, missed):
    curve, probability, right, true = exact(pairs, missed)

    def f1(threshold: float) -> float:
        above = probability >= threshold
        return 2 * int(right[above].sum()) / (int(above.sum()) + true)

    if not right.any():
        assert curve.best() is None
        return
    assert f1(curve.best()) == pytest.approx(max(f1(t) for t in probability))


@given(suggestions, st.integers(0, 5), st.floats(0.1, 5), st.floats(0, 5))
def test_smoothed_curves_still_fall_and_end_with_all_suggestions(pairs, missed, mass, prior):
    probability = np.array([p / 16 for p, _ in pairs], np.float32)
    right = np.array([r for _, r in pairs])
    curve = Curve.fit(probability, right, int(right.sum()) + missed, mass=mass, prior=prior)
    assert (np.diff(curve.precision) <= 1e-12).all()
    assert (np.diff(curve.thresholds) < 0).all()
    assert curve.suggested[-1] == len(pairs)
    for t, n in zip(curve.thresholds, curve.suggested, strict=True):
        assert n == (probability >= t).sum()
    assert ((curve.precision >= 0) & (curve.precision <= 1) & (curve.recall <= 1)).all()


def test_a_few_lucky_suggestions_promise_no_more_than_their_probabilities_and_counts_together():
    lucky = Curve.fit(np.full(10, 0.6), np.ones(10, bool), 10)
    assert lucky.precision.tolist() == [pytest.approx((10 + 10 * 0.6) / 20)]
    assert lucky.lowest(0.9) is None
    sure = Curve.fit(np.full(2_000, 0.6), np.ones(2_000, bool), 2_000)
    assert sure.lowest(0.9) == pytest.approx(0.6)


def test_what_to_expect_of_a_threshold_is_told():
    curve, *_ = exact([(12, True), (8, True), (4, False), (2, False)], missed=2)
    assert curve.at(0.5) == (0.5, 1.0, 0.5)
    assert curve.at(0.2) == (0.2, pytest.approx(2 / 3), 0.5)
    assert curve.at(0.9) == (0.9, 1.0, 0.0)


# Large data: fresh documents


def documents(seed: int, n: int = 3_000) -> tuple[Ranking, csr_array, np.ndarray]:
    """Suggestions of 40 labels, ten a band; those of rare labels promise too much."""
    rng = np.random.default_rng(seed)
    counts = np.repeat([0, 5, 50, 500], 10)
    probability = rng.beta(0.4, 1.6, (n, 40))
    truth = rng.random((n, 40)) < probability ** np.array([4, 2.5, 1.5, 1])[np.arange(40) // 10]
    return Ranking.from_scores(probability, 40), csr_array(truth.astype(np.float32)), counts


def is_reached(wanted: float, kept: Ranking, Y: csr_array, among: np.ndarray) -> bool:
    """Whether the precision is as wanted, as far as chance on both sides lets it be."""
    rows, places = np.nonzero((kept.indices >= 0) & among[kept.indices])
    got = float(np.mean(Y.toarray()[rows, kept.indices[rows, places]]))
    chance = np.sqrt(2 * wanted * (1 - wanted) / len(rows))
    return len(rows) > 30 and abs(got - wanted) < 3 * chance


@pytest.fixture(scope="module")
def fitted() -> Thresholds:
    return Thresholds.fit(*documents(0))


@pytest.mark.parametrize("wanted", [0.5, 0.7, 0.8, 0.9])
def test_wanted_precision_is_got_on_fresh_documents_over_all_and_in_each_band(fitted, wanted):
    ranking, Y, counts = documents(1)
    assert is_reached(wanted, keep(ranking, fitted.for_precision(wanted)), Y, np.ones(40, bool))
    own = keep(ranking, fitted.of_labels(counts, wanted))
    for i, band in enumerate(BANDS):
        there = np.arange(40) // 10 == i
        by_band = keep(ranking, fitted.for_precision(wanted, band.name))
        assert is_reached(wanted, by_band, Y, there)
        assert is_reached(wanted, own, Y, there)


def test_rarer_bands_that_promise_too_much_need_higher_thresholds(fitted):
    found = [fitted.for_precision(0.6, band.name) for band in BANDS]
    assert found == sorted(found, reverse=True)
    best = [fitted.for_f1(band.name) for band in BANDS]
    assert best == sorted(best, reverse=True)
    assert fitted.best_f1 == fitted.for_f1()


def test_curves_have_a_few_hundred_points_and_are_kept_as_they_are(fitted, tmp_path):
    assert all(len(curve.thresholds) <= 202 for curve in fitted.curves.values())
    fitted.save(tmp_path / "t.json")
    again = Thresholds.load(tmp_path / "t.json")
    assert (tmp_path / "t.json").stat().st_size < 100_000
    for wanted in np.linspace(0.05, 1, 39):
        for band in (None, *(b.name for b in BANDS)):
            assert again.for_precision(wanted, band) == fitted.for_precision(wanted, band)
            assert again.for_f1(band) == fitted.for_f1(band)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"all": {"true": 1, "thresholds": [1], "suggested": []}}']
)
def test_damaged_file_is_said_by_name(tmp_path, content):
    (tmp_path / "thresholds.json").write_text(content)
    with pytest.raises(RunError, match=r"thresholds\.json is damaged"):
        Thresholds.load(tmp_path)


def test_a_band_without_suggestions_and_a_precision_out_of_reach_are_none():
    ranking = Ranking(np.array([[0], [0]]), np.array([[0.4], [0.3]], np.float32))
    found = Thresholds.fit(ranking, csr_array([[1, 1], [0, 0]]), np.array([5, 50]))
    assert found.for_precision(0.9) is None
    assert found.for_precision(0.001) == pytest.approx(0.3)
    assert found.for_precision(0.1, "10-99") is None
    assert found.for_f1("10-99") is None
    assert found.for_f1("100+") is None
    # Bands without anything to find a threshold on have that of all labels.
    assert not found.has_own("10-99")
    assert found.of_labels(np.array([5, 50, 0]), 0.001).tolist() == [pytest.approx(0.3)] * 3


def test_a_band_that_no_held_out_document_carries_has_the_threshold_of_all_labels():
    # In a small run every document is held out once, so a label without documents is never right.
    ranking = Ranking(np.array([[0, 1], [0, 1]]), np.array([[0.8, 0.7], [0.6, 0.5]], np.float32))
    found = Thresholds.fit(ranking, csr_array([[1, 0], [1, 0]]), np.array([5, 0]))
    assert not found.has_own("0")
    assert found.of_band("0") == found.for_f1()
    assert found.of_labels(np.array([0]), 0.1).tolist() == [found.for_precision(0.1)]


def test_bands_are_those_of_what_the_parts_of_a_fold_knew():
    rng = np.random.default_rng(0)
    ranking = Ranking.from_scores(rng.random((400, 12)), 12)
    Y = csr_array((rng.random((400, 12)) < 0.5).astype(np.float32))
    counts, fold = rng.choice([0, 5, 50, 500], (3, 12)), rng.integers(0, 3, 400)
    found = Thresholds.fit(ranking, Y, counts, fold)
    rows = np.arange(400)[:, None]
    right = Y.toarray()[rows, ranking.indices] > 0
    of = counts[fold[:, None], ranking.indices]
    for band, count in zip(BANDS, (0, 5, 50, 500), strict=True):
        true = int(Y.toarray()[counts[fold] == count].sum())
        mine = Curve.fit(ranking.scores[of == count], right[of == count], true)
        curve = found.curve(band.name)
        assert curve.true == true
        assert curve.precision.tolist() == mine.precision.tolist()


@pytest.mark.parametrize("wanted", [0, -0.5, 1.01, 80, float("nan")])
def test_what_is_no_precision_is_refused(fitted, wanted):
    with pytest.raises(ConfigError, match="precision lies above 0"):
        fitted.for_precision(wanted)


def test_unknown_band_is_refused_with_those_there_are(fitted):
    with pytest.raises(ConfigError, match=r"no band '1-10'; the bands are 0, 1-9, 10-99, 100\+"):
        fitted.for_precision(0.8, band="1-10")


@given(st.integers(0, 1_000), st.booleans())
def test_kept_suggestions_are_those_of_a_plain_filter(seed, each):
    rng = np.random.default_rng(seed)
    ranking = Ranking.from_scores(rng.random((4, 6)), 8)
    least = rng.random(6) if each else float(rng.random())
    kept = keep(ranking, least)
    for row, scores, got, got_scores in zip(
        ranking.indices, ranking.scores, kept.indices, kept.scores, strict=True
    ):
        wanted = [
            (j, s)
            for j, s in zip(row, scores, strict=True)
            if j >= 0 and s >= (least[j] if each else least)
        ]
        rest = 8 - len(wanted)
        assert got.tolist() == [j for j, _ in wanted] + [-1] * rest
        assert got_scores.tolist() == [s for _, s in wanted] + [-np.inf] * rest


# In a run


def test_cross_fitted_probabilities_are_of_trees_that_did_not_see_the_document(monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.random((90, 20)) < 0.15
    rankings = {
        f"part {i}": Ranking.from_scores(truth + rng.normal(0, 0.7, truth.shape), 10)
        for i in range(2)
    }
    Y, counts = csr_array(truth.astype(np.float32)), rng.integers(0, 50, 20)
    fusion = Fusion(iterations=20).fit(rankings, Y, counts, 500)
    assert fusion.chosen_ == "fusion"
    assert fusion.fitted_on_.tolist() == list(range(90))
    seen = fusion.rank(rankings, counts, fusion.cross_fitted_.k)
    assert [set(row) for row in seen.indices] == [set(row) for row in fusion.cross_fitted_.indices]
    assert not np.allclose(seen.scores, fusion.cross_fitted_.scores)
    # Trees know the documents they were grown on too well: right labels get more from them.
    right = np.take_along_axis(truth, fusion.cross_fitted_.indices.clip(0), axis=1)
    right &= fusion.cross_fitted_.indices >= 0
    held_out = fusion.cross_fitted_.scores[right].mean()
    right = np.take_along_axis(truth, seen.indices.clip(0), axis=1) & (seen.indices >= 0)
    assert held_out < seen.scores[right].mean()

    monkeypatch.setattr(depl.fusion.fusion, "_MOST", 60)
    few = Fusion(iterations=20).fit(rankings, Y, counts, 500)
    assert len(few.fitted_on_) == len(few.cross_fitted_) == 60
    listed = {name: set(map(tuple, x.indices[few.fitted_on_])) for name, x in rankings.items()}
    assert all(len(rows) > 50 for rows in listed.values())
    for row, document in enumerate(few.fitted_on_):
        candidates = set(rankings["part 0"].indices[document]) | set(
            rankings["part 1"].indices[document]
        )
        assert set(few.cross_fitted_.indices[row]) - {-1} == candidates - {-1}


def test_a_single_part_that_is_better_has_thresholds_too():
    rng = np.random.default_rng(3)
    truth = rng.random((25, 30)) < 0.1
    rankings = {
        name: Ranking.from_scores(truth + rng.normal(0, noise, truth.shape), 12)
        for name, noise in {"good": 0.4, "noise": 5.0}.items()
    }
    Y, counts = csr_array(truth.astype(np.float32)), np.full(30, 9)
    fusion = Fusion(iterations=5).fit(rankings, Y, counts, 500)
    assert fusion.chosen_ == "good"
    ranked = fusion.rank(rankings, counts, 12)
    np.testing.assert_array_equal(fusion.cross_fitted_.indices, ranked.indices)
    np.testing.assert_array_equal(fusion.cross_fitted_.scores, ranked.scores)


def test_fitted_run_has_thresholds_and_one_without_a_fusion_has_none(
    fitted_run: Path, dataset: Dataset, tmp_path: Path
):
    assert (fitted_run / "fusion" / "thresholds.json").is_file()
    assert isinstance(Classifier.load(fitted_run).thresholds, Thresholds)
    until = fit(dataset.train, tmp_path / "half", Config(), until="descriptions")
    assert Classifier.load(until.path).thresholds is None


# In a report


@given(st.integers(0, 1_000), st.integers(1, 15))
def test_reliability_is_that_of_a_plain_count(seed, n_bins):
    rng = np.random.default_rng(seed)
    truth = rng.random((20, 9)) < 0.3
    ranking = Ranking.from_scores(rng.random((20, 9)), 12)
    kept = reliability(
        Hits.of(ranking.indices, csr_array(truth.astype(np.float32))), ranking.scores, n_bins
    )
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(n_bins)]
    for row, (indices, scores) in enumerate(zip(ranking.indices, ranking.scores, strict=True)):
        for j, p in zip(indices.tolist(), scores.tolist(), strict=True):
            if j >= 0:
                bins[min(int(p * n_bins), n_bins - 1)].append((p, bool(truth[row, j])))
    assert kept.counts.tolist() == [len(b) for b in bins]
    off = [abs(sum(p - r for p, r in b)) for b in bins]
    assert kept.error == pytest.approx(sum(off) / 180)
    for b, p, right in zip(bins, kept.probability, kept.right, strict=True):
        assert p == pytest.approx(np.mean([p for p, _ in b]) if b else 0)
        assert right == pytest.approx(np.mean([r for _, r in b]) if b else 0)


@pytest.fixture
def reports() -> list[Report]:
    """Of the same ranking: true probabilities, exaggerated ones, and scores."""
    ranking, Y, counts = documents(5, n=200)
    labels = LabelSet(Label(str(j), f"label {j}") for j in range(40))
    ids = [str(i) for i in range(200)]
    corpus = Corpus(ids, ids, Y, labels)
    more = Ranking(ranking.indices, np.where(ranking.indices >= 0, ranking.scores**0.2, -np.inf))

    def report(ranking: Ranking, name: str, probabilities: bool) -> Report:
        settings = {"train_counts": counts, "n_train": 1_000, "name": name}
        return evaluate(ranking, corpus, probabilities=probabilities, **settings)

    return [
        report(ranking, "sober", True),
        report(more, "boastful", True),
        report(ranking, "scores", False),
    ]


def test_calibration_error_is_reported_of_probabilities_alone(reports):
    sober, boastful, scores = (report.to_json() for report in reports)
    assert 0 < sober["ECE@5"] < boastful["ECE@5"]
    assert "ECE@5" not in scores
    assert {key: value for key, value in sober.items() if key != "ECE@5"} == scores
    [row] = [row for row in comparison(reports)[1] if row.metric == "ECE@5"]
    assert row.best == (True, False, False)  # less is better
    assert row.cells[2] == "–"


def test_page_shows_how_far_probabilities_keep_their_word(reports, tmp_path):
    write_report(tmp_path / "a.html", reports, title="A", details={})
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="probabilities">') :]
    section = section[: section.index("</section>")]
    assert section.count("<svg") >= 2  # wide and narrow
    assert f"sober {reports[0].scores['ECE@5']:.1f}; boastful" in section
    counts = reports[0].reliability.counts
    assert counts.sum() == 5 * 200
    assert all(f"<td>{n:,}</td>" in section for n in counts)
    write_report(tmp_path / "b.html", reports[2:], title="B", details={})
    assert 'id="probabilities"' not in (tmp_path / "b.html").read_text(encoding="utf-8")


# On the command line


def predicted(*arguments: object) -> list[dict]:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments), "--json"], input=TEXTS)
    assert result.exit_code == 0, (result.exception, result.output)
    return [json.loads(line) for line in result.stdout.splitlines()]


def refused(kind: type[DeplError], *arguments: object) -> str:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)], input=TEXTS)
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return str(result.exception)


TEXTS = "Customs duty on sparkling wine of white grapes\nCatch quotas for cod\n"


@pytest.fixture
def run(own_run: Path) -> Path:
    """A run whose curves are known: one point a precision."""
    point = {"suggested": [100, 400], "precision": [0.9, 0.4], "true": 200}
    none = {"thresholds": [], "suggested": [], "precision": [], "true": 0}
    curves = {
        "all": {"thresholds": [0.3, 0.1], **point},
        "0": none,
        "1-9": {"thresholds": [0.2, 0.05], **point},
        "10-99": {"thresholds": [0.45, 0.15], **point},
        "100+": none,
    }
    (own_run / "fusion" / "thresholds.json").write_text(json.dumps(curves))
    accept_changes(own_run, "fusion")
    return own_run


@pytest.mark.parametrize(("aim", "least"), [("precision=0.8", 0.3), ("f1", 0.3), ("0.2", 0.2)])
def test_predict_takes_a_precision_f1_or_a_number(run: Path, aim: str, least: float):
    k = 5 if aim == "0.2" else 100
    full = predicted(run, "-k", k)
    for row, cut in zip(full, predicted(run, "--threshold", aim), strict=True):
        assert cut["labels"] == [x for x in row["labels"] if x["score"] >= least]


def test_predict_takes_thresholds_of_each_band(run: Path, dataset: Dataset):
    counts = dict(zip(dataset.labels.ids, dataset.train.label_counts, strict=True))
    full = predicted(run, "-k", 100)
    for row, cut in zip(
        full, predicted(run, "--threshold", "precision=0.8", "--per-band"), strict=True
    ):
        assert cut["labels"] == [
            x
            for x in row["labels"]
            if counts[x["id"]] and x["score"] >= (0.2 if counts[x["id"]] < 10 else 0.45)
        ]


def test_predict_says_what_to_expect_and_what_is_out_of_reach(run: Path):
    result = CliRunner().invoke(
        app, ["predict", str(run), "--threshold", "precision=0.37"], input=TEXTS
    )
    assert "threshold 0.100: expect 40% of the suggestions to be right" in result.output
    # 0.9 less its standard error, from 100 suggestions, is 0.87.
    assert "at most 87.0%" in refused(ConfigError, run, "--threshold", "precision=0.88")
    result = CliRunner().invoke(
        app, ["predict", str(run), "--threshold", "f1", "--per-band"], input=TEXTS
    )
    assert "100+ training documents: threshold 0.300 (by all labels, as" in result.output


@pytest.mark.parametrize(
    "wrong", ["precision", "precision=", "precision=80", "precision=x", "f2", "recall=0.5", "nan"]
)
def test_predict_refuses_other_thresholds(run: Path, wrong: str):
    assert f"got {wrong}" in refused(ConfigError, run, "--threshold", wrong)


def test_predict_refuses_bands_without_an_aim(run: Path):
    assert "--per-band needs" in refused(ConfigError, run, "--per-band")
    assert "give one of the two" in refused(ConfigError, run, "--threshold", "0.5", "--per-band")


def test_predict_says_how_a_run_without_thresholds_gets_them(run: Path):
    manifest = Run(run).manifest()
    del manifest["stages"]["fusion"]
    Run(run).write_manifest(manifest)
    assert "Finish it with `depl fit RUN`" in refused(ConfigError, run, "--threshold", "f1")
