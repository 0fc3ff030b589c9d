"""Omikuji: Parabel with its defaults, and the Bonsai-like settings of its documentation.

Omikuji reads a text file, so a run has more parts than others: writing that file (preparation, not
measured), reading it ("load"), training, predicting. Its Python interface predicts one document at
a time: much of that time is Python's own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import omikuji
import scipy.sparse as sp
from runner_io import (
    command_line,
    folder_mb,
    load_matrix,
    measured,
    seen_labels,
    settings,
    write_predictions,
    write_report,
)

# Bonsai: plain k-means into a hundred branches, which makes the trees shallow and uneven.
PRESETS = {
    "parabel": {"n_trees": 3},
    "bonsai": {"n_trees": 3, "cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


def main() -> None:
    """Write the file, load it, train, predict."""
    parser = command_line("Train and predict with omikuji.")
    parser.add_argument("--preset", choices=PRESETS, default="parabel")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--beam-size", type=int, default=10)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        file = Path(folder, "train.txt")
        columns = _write_text(args.work, file)
        # Model.train_on_data makes these two calls; apart, each can be measured.
        pool = omikuji._ThreadPoolHandle(args.threads)
        with measured() as load:
            name = omikuji.ffi.new("char[]", str(file).encode())
            data = _valid(omikuji.lib.load_omikuji_data_set(name, pool.ptr))
        with measured() as train:
            model = omikuji.Model(_train(data, pool, PRESETS[args.preset] | {"linear_c": args.C}))
        omikuji.lib.free_omikuji_data_set(data)
        model.save(folder)
        file.unlink()
        model_mb = folder_mb(Path(folder))

    X_dev = load_matrix(args.work, "X_dev")
    with measured() as predict:
        model.init_prediction_thread_pool(args.threads)
        model.densify_weights(0.1)  # as omikuji's own command line does before it predicts
        rows = [model.predict(x, beam_size=args.beam_size, top_k=args.k) for x in _pairs(X_dev)]
    unzipped = ((columns[[j for j, _ in row]], [s for _, s in row]) for row in rows)
    write_predictions(args.out, unzipped, len(rows), args.k)
    write_report(
        args.out,
        peer=args.peer,
        version=omikuji.__version__,
        settings=settings(args) | PRESETS[args.preset],
        stages={"load": load, "train": train, "predict": predict},
        model_mb=model_mb,
    )


def _pairs(X: sp.csr_matrix) -> Iterator[list[tuple[int, float]]]:
    """(column, value) of each row."""
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))


def _write_text(work: Path, file: Path) -> np.ndarray:
    """Write the training set as omikuji reads it; gives the original columns of its labels."""
    X = load_matrix(work, "X_train")
    Y, columns = seen_labels(load_matrix(work, "Y_train"))
    with file.open("w", encoding="ascii") as lines:
        lines.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for labels, features in zip(_pairs(Y), _pairs(X), strict=True):
            # Nine digits carry a float32 without loss.
            words = [",".join(str(j) for j, _ in labels)] + [f"{j}:{v:.9g}" for j, v in features]
            lines.write(" ".join(words) + "\n")
    return columns


def _train(data: object, pool: object, preset: dict) -> object:
    """Train, without the progress bar that omikuji draws even into files: megabytes of it."""
    parameters = omikuji.Model.default_hyper_param()
    for key, value in preset.items():
        setattr(parameters, key, value)
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        return _valid(omikuji.lib.train_omikuji_model(data, parameters, pool.ptr))
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _valid(pointer: object) -> object:
    if pointer == omikuji.ffi.NULL:
        raise RuntimeError("omikuji failed; the reason is in its log, above.")
    return pointer


if __name__ == "__main__":
    main()
