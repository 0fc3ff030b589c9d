"""depl's SVM, one-vs-all or over a label tree, under the clock of its peers, or on some labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from label_sample import objective, targets
from runner_io import (
    command_line,
    load_matrix,
    measured,
    seen_labels,
    settings,
    write_predictions,
    write_report,
)
from scipy.sparse import csr_array

import depl
from depl.sparse.label_tree import linear_model


def main() -> None:
    """Train and rank, or solve a sample and report its objectives."""
    parser = command_line("Train depl's one-vs-all SVM.")
    parser.add_argument("--C", type=float, help="depl's own default when not given")
    parser.add_argument("--loss", choices=("squared_hinge", "hinge"), default="squared_hinge")
    parser.add_argument("--solver", choices=("one-vs-all", "tree"), default="one-vs-all")
    parser.add_argument("--labels", type=Path, help="JSON list of columns of Y; all when not given")
    args = parser.parse_args()
    X, Y = load_matrix(args.work, "X_train"), load_matrix(args.work, "Y_train")
    chosen = {} if args.C is None else {"C": args.C}
    if args.labels:  # an objective belongs to the optimum, before the correction for ranking
        chosen |= {"rare_bonus": 0.0}
    svm = linear_model(args.solver, loss=args.loss, n_threads=args.threads, **chosen)
    few = csr_array(X[:100]), csr_array(Y[:100])
    linear_model(args.solver, loss=args.loss).fit(*few).rank(few[0], args.k)  # compile
    about = {"peer": args.peer, "version": depl.__version__, "settings": settings(args)}
    if args.labels:
        columns = json.loads(args.labels.read_text(encoding="utf-8"))
        X_all, Y_sample = csr_array(X), csr_array(Y[:, columns])
        with measured() as train:
            svm.fit(X_all, Y_sample)
        svm.cull = 0.0  # and before small weights are dropped: the same solution, whole
        svm.fit(X_all, Y_sample)
        dense = np.column_stack([svm.weights_.toarray(), svm.bias_]).astype(np.float64)
        signs = [targets(Y.tocsc(), j) for j in columns]
        objectives = [
            objective(X, y, w, svm.C, args.loss) for y, w in zip(signs, dense, strict=True)
        ]
        positives = [int((y > 0).sum()) for y in signs]
        write_report(
            args.out,
            **about,
            stages={"train": train},
            labels=columns,
            positives=positives,
            objectives=objectives,
        )
        return
    Y, columns = seen_labels(Y)
    X_all, Y_all = csr_array(X), csr_array(Y)
    with measured() as train:
        svm.fit(X_all, Y_all)
    X_dev = csr_array(load_matrix(args.work, "X_dev"))
    svm.rank(X_dev[:10], args.k)  # arrange the weights
    with measured() as predict:
        ranking = svm.rank(X_dev, args.k)
    kept = [row >= 0 for row in ranking.indices]
    rows = zip(ranking.indices, ranking.scores, kept, strict=True)
    write_predictions(args.out, ((columns[i[k]], s[k]) for i, s, k in rows), len(ranking), args.k)
    model_mb = sum(a.nbytes for a in (svm.weights_.data, svm.weights_.indices)) / 2**20
    write_report(args.out, **about, stages={"train": train, "predict": predict}, model_mb=model_mb)


if __name__ == "__main__":
    main()
