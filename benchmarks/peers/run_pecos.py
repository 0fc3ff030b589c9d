"""PECOS: one-vs-all, and XR-Linear over a tree of labels.

Settings are the library's defaults: squared hinge, C = 1, eps = 0.1, at most 100 iterations, bias
1, weights below 0.1 dropped. The tree is the documented one: labels described by the mean of their
documents (PIFA), hierarchical k-means, teacher-forcing negatives, beam of 10.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from runner_io import (
    command_line,
    csr_rows,
    folder_mb,
    load_matrix,
    measured,
    seen_labels,
    settings,
    write_predictions,
    write_report,
)


def main() -> None:
    """Train, save, load for prediction, predict."""
    parser = command_line("Train and predict with PECOS XLinearModel.")
    parser.add_argument("--tree", choices=("none", "pifa"), default="none")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--threshold", type=float, default=0.1)
    parser.add_argument("--beam-size", type=int, default=10)
    args = parser.parse_args()

    X = load_matrix(args.work, "X_train")
    Y, columns = seen_labels(load_matrix(args.work, "Y_train"))
    Y = Y.tocsc()
    chain = None
    with measured() as train:
        if args.tree == "pifa":
            features = LabelEmbeddingFactory.create(Y, X, method="pifa")
            chain = Indexer.gen(features, indexer_type="hierarchicalkmeans", threads=args.threads)
        model = XLinearModel.train(
            X,
            Y,
            C=chain,
            Cp=args.C,
            Cn=args.C,
            eps=args.eps,
            threshold=args.threshold,
            threads=args.threads,
        )
    del X, Y

    X_dev = load_matrix(args.work, "X_dev")
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        model.save(folder)
        model_mb = folder_mb(Path(folder))
        # The documented way to predict fast: the model lives in C++ and can do nothing else.
        model = XLinearModel.load(folder, is_predict_only=True)
    with measured() as predict:
        scores = model.predict(
            X_dev, only_topk=args.k, beam_size=args.beam_size, threads=args.threads
        )
    write_predictions(args.out, csr_rows(scores, columns), X_dev.shape[0], args.k)
    write_report(
        args.out,
        peer=args.peer,
        version=version("libpecos"),
        settings=settings(args),
        stages={"train": train, "predict": predict},
        model_mb=model_mb,
    )


if __name__ == "__main__":
    main()
