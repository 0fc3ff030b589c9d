"""Solve a sample of labels one by one and report the objectives: for solvers of binary problems.

All of them minimise ``(|w|^2 + b^2) / 2 + C * sum(loss(1 - y (w x + b)))`` with y = +1 or -1 and
``loss(z) = max(0, z)`` or its square, so equal problems have equal objectives.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from runner_io import command_line, load_matrix, measured, settings, write_report

Solver = Callable[[np.ndarray], np.ndarray]


def run(description: str, version: str, tol: float, make: Callable[..., Solver]) -> None:
    """Parse the command line, solve the labels in threads, write the report.

    Parameters
    ----------
    description, version : str
        For the command line and the report.
    tol : float
        The solver's tolerance unless the command line says otherwise.
    make : callable
        Called once with (X in float64, the arguments), outside the clock. Gives a function from
        the targets (+1 and -1) to the weights, the intercept last. It has to leave the interpreter
        free while it solves, for the labels are shared out among threads of one process.
    """
    args = _parse(description, tol)
    X = load_matrix(args.work, "X_train").astype(np.float64)
    Y = load_matrix(args.work, "Y_train").tocsc()
    columns = json.loads(args.labels.read_text(encoding="utf-8"))
    signs = [targets(Y, j) for j in columns]
    solve = make(X, args)
    with measured() as train, ThreadPoolExecutor(args.threads) as threads:
        weights = list(threads.map(solve, signs))
    objectives = [
        objective(X, y, w, args.C, args.loss) for y, w in zip(signs, weights, strict=True)
    ]
    write_report(
        args.out,
        peer=args.peer,
        version=version,
        settings=settings(args),
        stages={"train": train},
        labels=columns,
        positives=[int((y > 0).sum()) for y in signs],
        objectives=objectives,
    )


def _parse(description: str, tol: float) -> Namespace:
    parser = command_line(description)
    parser.add_argument("--labels", type=Path, required=True, help="JSON list of columns of Y")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=tol)
    parser.add_argument("--loss", choices=("squared_hinge", "hinge"), default="squared_hinge")
    return parser.parse_args()


def targets(Y: sp.csc_matrix, column: int) -> np.ndarray:
    """+1 for the documents that carry a label, -1 for the others."""
    rows = Y.indices[Y.indptr[column] : Y.indptr[column + 1]]
    if not 0 < len(rows) < Y.shape[0]:
        raise SystemExit(
            f"Label {column} is on {len(rows)} of {Y.shape[0]} documents; a sample needs labels "
            f"with examples on both sides."
        )
    y = np.full(Y.shape[0], -1.0)
    y[rows] = 1.0
    return y


def objective(X: sp.csr_matrix, y: np.ndarray, w: np.ndarray, C: float, loss: str) -> float:
    """The primal objective of weights whose last entry is the intercept."""
    slack = np.maximum(0.0, 1.0 - y * (X @ w[:-1] + w[-1]))
    return float(0.5 * (w @ w) + C * np.sum(slack if loss == "hinge" else slack**2))
