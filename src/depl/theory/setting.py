"""Documents and labels on the theorem's conditions, and their scores after random projections.

There are two settings. In the *theorem's* the weights are shifted to be non-negative. In the
*keyword* setting they are not: there the theorem is applied to the classifier that has the keywords
alone, w_l = v_l, so that delta is 0 and all conditions hold without a shift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, hstack

from depl.theory.theorem import Floats


@dataclass(frozen=True)
class Setting:
    """Documents and labels that meet the theorem's conditions, and rank as in the SVM.

    The last coordinate holds the bias and counts as a keyword of every label, which favours the
    bound. A label's weights are ``by_term[:, l] - shift``; they are never written out, since the
    shift makes them dense.
    """

    X: csr_array  # documents x (terms + 1); rows of norm 1
    by_term: csr_array  # (terms + 1) x labels; the weights before the shift
    shift: Floats  # subtracted from every label's weights, term by term
    V: csr_array  # labels x (terms + 1); the shifted weights of the keywords

    @classmethod
    def of(
        cls,
        X: csr_array,
        weights: csr_array,
        bias: NDArray[np.floating],
        keywords: csr_array,
        *,
        shifted: bool,
    ) -> Setting:
        """Shift and scale the weights of an SVM.

        Subtracting one vector from all labels' weights changes no document's ranking, and neither
        does a common factor. Of all shifts that leave no weight negative, the one by each term's
        smallest weight is the best: any other leaves every weight larger, and so every norm and
        every delta, while the margins stay the same.

        Parameters
        ----------
        X : csr_array of shape (n_documents, n_terms)
            Non-negative.
        weights : csr_array of shape (n_labels, n_terms)
            Of the SVM.
        bias : array of shape (n_labels,)
            Finite.
        keywords : csr_array of shape (n_labels, n_terms)
            1 for each keyword of each label.
        shifted : bool
            Whether to make the weights non-negative. If not, only the biases are shifted, and the
            norms that must be at most 1 are those of the keyword vectors.
        """
        W = csr_array(weights, dtype=np.float64)
        least = W.min(axis=0).toarray().ravel() if shifted else np.zeros(W.shape[1])
        lift = np.asarray(bias, np.float64) - np.min(bias)
        V = csr_array(keywords.multiply(W) - keywords.multiply(least[None, :]))
        squares = squared_norms(V)
        if shifted:
            squares = squared_norms(W) - 2 * (W @ least) + least @ least
        beta = _bias_value(squares, lift**2)
        scale = np.sqrt(max((squares + (lift / beta) ** 2).max(), np.finfo(float).tiny))

        def wide(matrix: csr_array, last: Floats) -> csr_array:
            return csr_array(hstack([matrix, csr_array(last[:, None])], format="csr"))

        documents = wide(csr_array(X, dtype=np.float64), np.full(X.shape[0], beta))
        norms = np.sqrt(squared_norms(documents))
        documents.data /= np.repeat(norms, np.diff(documents.indptr))
        return cls(
            documents,
            csr_array(wide(W, lift / beta).T) / scale,
            np.append(least, 0.0) / scale,
            wide(V, lift / beta) / scale,
        )

    def scores(self, rows: slice) -> Floats:
        """<x, w_l> of these documents and all labels."""
        X = self.X[rows]
        return np.asarray((X @ self.by_term).toarray() - (X @ self.shift)[:, None])

    def keyword_scores(self, rows: slice) -> Floats:
        """<x, v_l> of these documents and all labels."""
        return np.asarray((self.X[rows] @ self.V.T).toarray())


def squared_norms(matrix: csr_array) -> Floats:
    """The squared norm of every row."""
    return np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel()


def _bias_value(squares: Floats, lifts: Floats) -> float:
    """The last coordinate of a document, before normalisation, that shrinks margins least.

    Scores are divided by sqrt(1 + t) and by the largest norm, sqrt(squares + lifts / t), where t is
    the square of the coordinate; the square of the product is a maximum of functions convex in t.
    """

    def divisor(log_t: float) -> float:
        t = np.exp(log_t)
        return float((1 + t) * (squares + lifts / t).max())

    return float(np.exp(minimize_scalar(divisor, bounds=(-20, 20), method="bounded").x / 2))


def projected_scores(
    V: csr_array, x: csr_array, dimensions: Sequence[int], n: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """<Ex, Ev_l> for n random Gaussian E and all labels, up to a positive factor for each E.

    No d x terms matrix is drawn, only the part that matters. With ``|x| = 1`` split v into <v, x> x
    and the rest r. Er is independent of Ex, and given Ex, <Ex, Er> is ``|Ex| / sqrt(d)`` times
    <g, r> with one standard normal g for all labels; ``d |Ex|^2`` is a chi-square variable. Divided
    by ``|Ex|`` the score is ``<v, x> |Ex| + <g, r> / sqrt(d)``.

    Yields
    ------
    array of shape (n_labels, n), for each d of ``dimensions``
    """
    g = rng.standard_normal((V.shape[1], n), dtype=np.float32)
    along = (V @ x.T).toarray()
    across = V @ g - along * (x @ g)
    for d in dimensions:
        yield along * np.sqrt(rng.chisquare(d, n) / d) + across / np.sqrt(d)
