"""LibMultiLabel's linear methods: one-vs-rest, and a tree of labels, or several whose mean counts.

LIBLINEAR's options are those of its documentation for large problems: squared hinge, solved in the
dual, with an intercept.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import libmultilabel.linear as linear
import numpy as np
import scipy.sparse as sp
from runner_io import (
    best_of_dense,
    command_line,
    load_matrix,
    measured,
    seen_labels,
    settings,
    write_predictions,
    write_report,
)

BLOCK = 2_000  # documents whose scores of all labels are in memory at a time


def main() -> None:
    """Train and predict."""
    parser = command_line("Train and predict with LibMultiLabel's linear methods.")
    parser.add_argument("--method", choices=("1vsrest", "tree"), default="1vsrest")
    parser.add_argument("--trees", type=int, default=1, help="of the method tree")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    np.random.seed(args.seed)  # noqa: NPY002 - what its clustering draws from
    options = f"-s 1 -c {args.C} -B 1 -e 0.0001 -q"

    X = load_matrix(args.work, "X_train").astype(np.float64)
    Y, columns = seen_labels(load_matrix(args.work, "Y_train"))
    with measured() as train:
        if args.method == "1vsrest":
            model = linear.train_1vsrest(Y, X, False, options, verbose=False)
        elif args.trees == 1:
            model = linear.train_tree(Y, X, options, verbose=False)
        else:
            model = linear.train_ensemble_tree(
                Y, X, options, n_trees=args.trees, seed=args.seed, verbose=False
            )
    X_dev = load_matrix(args.work, "X_dev").astype(np.float64)
    with measured() as predict:
        rows = list(_rows(model, X_dev, columns, args.k))
    write_predictions(args.out, iter(rows), len(rows), args.k)
    write_report(
        args.out,
        peer=args.peer,
        version=version("libmultilabel"),
        settings=settings(args) | {"options": options},
        stages={"train": train, "predict": predict},
    )


def _rows(model: object, X: sp.csr_matrix, columns: np.ndarray, k: int) -> Iterator[tuple]:
    for first in range(0, X.shape[0], BLOCK):
        scores = np.asarray(linear.predict_values(model, X[first : first + BLOCK]))
        yield from best_of_dense(scores, columns, k)


if __name__ == "__main__":
    main()
