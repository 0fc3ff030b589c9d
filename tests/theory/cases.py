"""Random documents and labels, and an interval for what is simulated on them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array
from scipy.stats import binomtest

from depl.core.indicator import indicator
from depl.theory.setting import Setting

# The tests look at some thousands of intervals; not one of them may miss the true rate by chance.
CERTAIN = 1 - 1e-9


def random_case(seed: int, n_documents=6, n_labels=9, n_terms=25):
    """tf-idf, weights of both signs, biases, and as keywords the largest positive weights."""
    rng = np.random.default_rng(seed)
    X = random_array((n_documents, n_terms), density=0.4, rng=rng, format="csr")
    X = csr_array(X / np.maximum(np.sqrt(X.multiply(X).sum(axis=1)), 1e-12)[:, None])
    W = random_array(
        (n_labels, n_terms), density=0.5, rng=rng, data_sampler=rng.standard_normal
    ).tocsr() * rng.uniform(0.1, 20)
    bias = rng.uniform(-2, 0, n_labels) * rng.choice([0, 1, 10])
    dense = W.toarray()
    rows = [[t for t in np.argsort(-row)[:4] if row[t] > 0] for row in dense]
    return X, W, bias, indicator(rows, n_terms)


def weights_of(setting: Setting) -> np.ndarray:
    return setting.by_term.T.toarray() - setting.shift


def interval(errors: int, trials: int) -> tuple[float, float]:
    """Rates between which the true one is almost certainly."""
    found = binomtest(errors, trials).proportion_ci(CERTAIN, method="exact")
    return found.low, found.high
