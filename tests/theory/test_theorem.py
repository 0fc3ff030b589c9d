"""The paper's theorem: its lemmas, the conditions it asks for, and its bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chi2
from tests.theory.cases import interval, random_case, weights_of

from depl.core.corpus import Dataset
from depl.model.classifier import Classifier
from depl.theory.setting import Setting, projected_scores
from depl.theory.theorem import COSINE, bound, dimension_needed, gap_needed, misordering

SEEDS = st.integers(0, 2**32 - 1)


def project(X: np.ndarray, V: np.ndarray, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """<Ex, Ev> as the paper writes it, with every E drawn in full; n x documents x labels."""
    E = rng.standard_normal((n, d, X.shape[1])) / np.sqrt(d)
    return np.einsum("ndx,ndl->nxl", E @ X.T, E @ V.T)


# ---- the conditions


@given(SEEDS, st.booleans())
def test_the_conditions_of_the_theorem_hold(seed, shifted):
    setting = Setting.of(*random_case(seed), shifted=shifted)
    V = setting.V.toarray()
    # Unshifted, the theorem is applied to the keyword vectors themselves.
    W = weights_of(setting) if shifted else V
    assert W.min() >= -1e-12
    assert np.linalg.norm(W, axis=1).max() == pytest.approx(1)
    assert np.linalg.norm(setting.X.toarray(), axis=1) == pytest.approx(1)
    assert np.all((V == 0) | np.isclose(V, W))  # v is w on the keywords


@given(SEEDS, st.booleans())
def test_shift_and_scale_change_no_ranking(seed, shifted):
    X, W, bias, keywords = random_case(seed)
    plain = X.toarray() @ W.toarray().T + bias
    moved = Setting.of(X, W, bias, keywords, shifted=shifted).scores(slice(None))
    apart = plain[:, :, None] - plain[:, None, :]
    apart_moved = moved[:, :, None] - moved[:, None, :]
    clear = np.abs(apart) > 1e-9 * np.abs(plain).max()
    assert np.array_equal(np.sign(apart)[clear], np.sign(apart_moved)[clear])
    # Each document's margins have shrunk by one factor, the same for all of its labels.
    for before, after in zip(apart, apart_moved, strict=True):
        assert after * np.abs(before).max() == pytest.approx(before * np.abs(after).max(), abs=1e-9)


def test_a_fitted_run_ranks_as_before(fitted_run: Path, dataset: Dataset):
    model = Classifier.load(fitted_run)
    X = model.features.transform(dataset.dev.texts)
    known = np.isfinite(model.svm.bias_)
    none = csr_array((known.sum(), X.shape[1]))
    for shifted in (True, False):
        parts = (model.svm.weights_[known], model.svm.bias_[known], none)
        scores = Setting.of(X, *parts, shifted=shifted).scores(slice(None))
        ours = np.flatnonzero(known)[np.argsort(-scores, axis=1, kind="stable")]
        assert np.array_equal(ours, model.svm.rank(X, known.sum()).indices)


@given(SEEDS, st.floats(0, 3))
def test_no_other_shift_leaves_less_delta_for_the_same_margins(seed, more):
    """A larger shift makes both the norm and what the keywords drop larger."""
    X, W, _, keywords = random_case(seed)
    dense, kept = W.toarray(), keywords.toarray() > 0
    least = dense.min(axis=0)
    ratios = []
    for shift in (least, least - more):
        shifted = dense - shift
        scale = np.linalg.norm(shifted, axis=1).max()
        ratios.append((X.toarray() @ np.where(kept, 0, shifted).T / scale, scale))
    (delta, scale), (more_delta, larger_scale) = ratios
    assert larger_scale >= scale - 1e-12
    assert np.all(more_delta * larger_scale >= delta * scale - 1e-9)


# ---- the lemmas


@given(SEEDS)
def test_lemma_1_keyword_margins_are_within_delta(seed):
    """|mu(x, w_p, w_n) - mu(x, v_p, v_n)| <= delta, for every document and two labels."""
    setting = Setting.of(*random_case(seed), shifted=True)
    full, kept = setting.scores(slice(None)), setting.keyword_scores(slice(None))
    dropped = full - kept
    assert dropped.min() >= -1e-12
    delta = np.maximum(dropped[:, :, None], dropped[:, None, :])
    change = (full[:, :, None] - full[:, None, :]) - (kept[:, :, None] - kept[:, None, :])
    assert np.all(np.abs(change) <= delta + 1e-12)


def test_lemma_1_needs_weights_that_are_not_negative():
    x = np.array([0.6, 0.8])
    W, V = np.array([[0.9, 0.0], [0.5, -0.5]]), np.array([[0.9, 0.0], [0.5, 0.0]])
    delta = max(0.0, *((W - V) @ x))  # the keywords drop nothing that is positive
    assert delta == 0
    assert abs((W[0] - W[1]) @ x - (V[0] - V[1]) @ x) == pytest.approx(0.4)


@settings(max_examples=25, derandomize=True)
@given(SEEDS, st.sampled_from([2, 8, 32]))
def test_lemma_2_and_the_exact_rate_agree_with_projections_drawn_in_full(seed, d):
    """Every pair: the rate is misordering(), and under 4 exp(-(eps - delta)^2 d / 50)."""
    rng = np.random.default_rng(seed)
    setting = Setting.of(*random_case(seed, n_documents=2, n_labels=4, n_terms=8), shifted=True)
    X, W, V = setting.X.toarray(), weights_of(setting), setting.V.toarray()
    trials = 1500
    scores = project(X, V, d, trials, rng)
    for i, x in enumerate(X):
        for p, n in zip(*np.nonzero(np.less.outer(W @ x, W @ x).T), strict=True):
            errors = int(np.sum(scores[:, i, p] <= scores[:, i, n]))
            low, high = interval(errors, trials)
            away = V[p] - V[n]
            if not away.any():
                continue
            cosine = x @ away / np.linalg.norm(away)
            assert low <= misordering(cosine, d) <= high
            gap = x @ (W[p] - W[n]) - max(x @ (W[p] - V[p]), x @ (W[n] - V[n]))
            assert low <= bound(gap, d)
            assert low <= bound(cosine, d, constant=COSINE)


@example(cosine=1 - 2**-53, d=1)
@given(st.floats(-1, 1), st.integers(1, 10_000))
def test_every_bound_is_above_the_exact_rate(cosine, d):
    """For unit vectors the margin is the cosine, and v_p - v_n is no longer than 2."""
    exact = misordering(cosine, d)
    assert 0 <= exact <= bound(cosine, d, constant=COSINE) + 1e-12
    assert exact <= bound(2 * cosine, d) + 1e-12
    assert misordering(-cosine, d) == pytest.approx(1 - exact, abs=1e-9)


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_the_lemma_of_johnson_and_lindenstrauss_holds_up_to_a_gamma_of_one(gamma, d):
    """Squared lengths are chi-square variables; the lemma takes two of them, of a + b and a - b.

    The theorem needs a gamma of at most 2/5. For every one, as the appendix has it, it is not so:
    with a = b of norm 1, d = 1 and gamma = 10 the lemma says 4 exp(-100 / 8).
    """

    def far(gamma, d):
        return chi2.sf(d * (1 + gamma), d) + chi2.cdf(d * (1 - gamma), d)

    assert 2 * far(gamma, d) <= 4 * np.exp(-(gamma**2) * d / 8) + 1e-12
    assert far(10, 1) > 50 * 4 * np.exp(-100 / 8)


# ---- the theorem


@settings(max_examples=15, derandomize=True)
@given(SEEDS)
def test_simulated_errors_of_a_whole_set_stay_under_the_theorems_bound(seed):
    """Margins made large, keywords that drop nothing: here the bound says something."""
    rng = np.random.default_rng(seed)
    M, trials = 8, 2000
    W = np.eye(M + 1) * np.r_[1.0, rng.uniform(0, 0.3, M)]
    x = np.r_[1.0, rng.uniform(0, 0.1, M)]
    x /= np.linalg.norm(x)
    eps = x @ W[0] - (W[1:] @ x).max()
    rows = csr_array(W), csr_array(x[None])
    for d in (200, 400, 800):
        [scores] = projected_scores(*rows, [d], trials, rng)
        errors = int(np.sum(scores[1:].max(axis=0) >= scores[0]))
        assert bound(eps, d, M) < 1
        assert interval(errors, trials)[0] <= bound(eps, d, M)


@pytest.mark.parametrize("d", [3, 12, 48])
def test_short_cut_projections_err_as_often_as_those_drawn_in_full(d):
    rng = np.random.default_rng(d)
    setting = Setting.of(*random_case(5, n_documents=1, n_terms=12), shifted=True)
    V, x, n = setting.V, setting.X[[0]], 6000
    # From the best to the worst: the second best is the one that is easily taken for the best.
    best, *others = np.argsort(-(x @ V.T).toarray().ravel())
    [short] = projected_scores(V, x, [d], n, rng)
    full = project(x.toarray(), V.toarray(), d, n, rng)[:, 0].T
    for labels in ([others[0]], others[:3], others):
        rates = [np.mean(s[labels].max(axis=0) >= s[best]) for s in (short, full)]
        assert 0.001 < rates[1] < 0.999
        assert abs(rates[0] - rates[1]) < 4 * np.sqrt(2 * 0.25 / n)


@given(st.integers(2, 10**6), st.integers(1, 10**5))
def test_the_printed_condition_gives_four_over_m(m, d):
    printed, right = gap_needed(m, d)
    assert bound(printed, d, m) == pytest.approx(min(1, 4 / m))
    assert bound(right, d, m) == pytest.approx(1 / m)


@given(st.floats(0.01, 1), st.integers(1, 10_000))
def test_the_dimension_needed_is_where_the_bound_begins(gap, m):
    d = dimension_needed(gap, m)
    assert bound(gap, d * 1.001, m) < 1
    assert bound(gap, d * 0.999, m) == 1
    assert dimension_needed(-gap, m) == np.inf
