"""scikit-learn's LinearSVC on a sample of labels, in depl's own environment.

Threads, not processes: LinearSVC frees the interpreter while it solves, two threads were as fast as
two forked processes (and faster than joblib's), and the features are in memory once.
"""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import scipy.sparse as sp
import sklearn
from label_sample import Solver, run
from sklearn.svm import LinearSVC


def make(X: sp.csr_matrix, args: Namespace) -> Solver:
    """A function that fits one label by dual coordinate descent."""

    def solve(y: np.ndarray) -> np.ndarray:
        model = LinearSVC(
            loss=args.loss,
            dual=True,
            C=args.C,
            tol=args.tol,
            fit_intercept=True,
            intercept_scaling=1.0,
            max_iter=10_000,
            random_state=0,
        ).fit(X, y)
        return np.append(model.coef_[0], model.intercept_[0])

    return solve


if __name__ == "__main__":
    run("Solve a sample of labels with LinearSVC.", sklearn.__version__, 1e-4, make)
