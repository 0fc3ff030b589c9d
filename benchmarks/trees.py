"""The fusion with depl's own boosting, scikit-learn's and LightGBM's, in one run.

    pip install lightgbm
    python benchmarks/trees.py RUN CORPUS [--documents 4000] [--parts 7] [--threads 2]

RUN is a fitted run; its parts rank dev documents of CORPUS, which they have not seen. A fusion is
fitted on each half of them and ranks the other half, so the scores are those of all; means of three
random splits. Where the run has fewer parts than are asked for, noisy copies of them are added.
Every measurement has a process of its own:

- start: CPU seconds for importing the library and for a first small fit;
- fit, rank: CPU seconds for both halves, with one thread;
- wall: the wall clock of the fits with all threads, torch (where it is installed) having been
  imported before depl: the threads of OpenMP then busy-wait for each other;
- beside: the wall clock of two such processes at once, as a multiple of one alone;
- same: whether one thread and all threads give the same bytes.

All have the same settings and are used by their public interface. scikit-learn and LightGBM grow
the trees of one fold at a time with all threads, depl those of all folds at once with one thread
each. The wall clock means something only on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

WORK = Path(__file__).parent / ".work"
BACKENDS = ("depl", "scikit-learn", "lightgbm")
SCORES = ("P@1", "P@5", "PSP@1", "PSP@5", "tail F1@5", "ECE@5")
SPLITS = 3  # into halves; the scores of one differ by some tenths from those of another
TIMES = ("start", "fit", "rank", "wall", "beside", "same")


def main() -> None:
    """Print a line of scores and a line of times for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--parts", type=int, default=1, help="at least so many")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    data = WORK / "trees.npz"
    print(write_rankings(args.run, args.corpus, data, args.documents, args.parts))
    print(f"{'':<14}" + "".join(f"{x:>11}" for x in (*SCORES, *TIMES)))
    for name in BACKENDS:
        found = measure(name, data, args.threads)
        shown = (f"{found[x]:.2f}" for x in (*SCORES, *TIMES[:-1]))
        print(f"{name:<14}" + "".join(f"{x:>11}" for x in (*shown, found["same"])), flush=True)


def measure(name: str, data: Path, threads: int) -> dict:
    """Everything about one backend."""

    def start(threads: int, *options: str) -> subprocess.Popen:
        command = [sys.executable, __file__, "--child", name, str(data), str(threads), *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def end(child: subprocess.Popen) -> dict:
        out, _ = child.communicate()
        if child.returncode:
            raise SystemExit(f"{name} failed.")
        return json.loads(out)

    one, alone = end(start(1)), end(start(threads, "torch"))
    both = [start(threads, "torch") for _ in range(2)]
    slowest = max(end(child)["wall"] for child in both)
    beside = {"wall": alone["wall"], "beside": slowest / alone["wall"]}
    return one | beside | {"same": one["digest"] == alone["digest"]}


def write_rankings(run: Path, corpus: Path, path: Path, most: int, n_parts: int) -> str:
    """Write what the parts of a run say of dev documents; returns a description."""
    import depl
    from depl.core.ranking import Ranking

    model = depl.Classifier.load(run)
    dev = depl.read(corpus, splits=["dev"]).dev
    if dev.labels.ids != model.labels.ids:
        raise SystemExit(f"{run} was not fitted on the labels of {corpus}.")
    dev = dev.subset(np.arange(min(most, len(dev))))
    arrays = {"counts": model.train_counts, "n_train": np.array(model.n_train)}
    arrays |= {f"Y {x}": getattr(dev.Y, x) for x in ("data", "indices", "indptr", "shape")}
    rankings = model.parts(dev.texts)
    real = list(rankings.items())
    rng = np.random.default_rng(0)
    for i in range(n_parts - len(real)):
        name, ranking = real[i % len(real)]
        spread = np.std(ranking.scores, where=np.isfinite(ranking.scores))
        scores = ranking.scores + rng.normal(0, spread, ranking.scores.shape)
        order = np.argsort(-scores, axis=1)
        rankings[f"{name} {i}"] = Ranking(
            np.take_along_axis(ranking.indices, order, axis=1),
            np.take_along_axis(scores, order, axis=1).astype(np.float32),
        )
    for name, ranking in rankings.items():
        arrays |= {f"indices {name}": ranking.indices, f"scores {name}": ranking.scores}
    np.savez(path, **arrays)
    return f"{run}: {len(dev):,} dev documents, ranked by {', '.join(rankings)}"


def child(name: str, path: str, threads: int, *options: str) -> None:
    """Fit on either half, rank the other, print what was found."""
    if "torch" in options and find_spec("torch"):
        import torch

        torch.ones(9).sum()
    from scipy.sparse import csr_array

    from depl.core.ranking import Ranking
    from depl.evaluation.metrics import (
        Hits,
        f1_at_k,
        inverse_propensities,
        macro_average,
        precision_and_psp,
    )
    from depl.fusion.calibration import calibration_error
    from depl.fusion.fusion import Fusion

    with np.load(path) as file:
        arrays = dict(file)
    Y = csr_array(
        tuple(arrays[f"Y {x}"] for x in ("data", "indices", "indptr")), shape=arrays["Y shape"]
    )
    counts, n_train = arrays["counts"], int(arrays["n_train"])
    rankings = {
        x.removeprefix("scores "): Ranking(arrays[x.replace("scores", "indices", 1)], arrays[x])
        for x in arrays
        if x.startswith("scores ")
    }

    def take(rows):
        return {x: ranking.take(rows) for x, ranking in rankings.items()}

    cpu = time.process_time()
    grow = None if name == "depl" else PEERS[name](threads)

    class Boosted(Fusion):
        def _grow(self, X, carried, weight, seen):
            if grow is None:
                return super()._grow(X, carried, weight, seen)
            return grow(X[seen], carried[seen], weight[seen], self.iterations)

    def fusion(iterations=300):
        return Boosted(n_threads=threads if grow is None else 1, iterations=iterations)

    few = np.arange(50)
    fusion(iterations=3).fit(take(few), Y[few], counts, n_train).rank(take(few), counts, 10)
    start = time.process_time() - cpu
    inverse = inverse_propensities(counts, n_train)
    found = []
    for seed in range(1 if options else SPLITS):
        halves = np.array_split(np.random.default_rng(seed).permutation(Y.shape[0]), 2)
        fitted, fit = timed(
            lambda halves=halves: [fusion().fit(take(x), Y[x], counts, n_train) for x in halves]
        )
        pairs = list(zip(fitted, halves[::-1], strict=True))
        ranked, rank = timed(lambda pairs=pairs: [x.rank(take(h), counts, 10) for x, h in pairs])
        truth, ranking = Y[np.concatenate(halves[::-1])], Ranking.concatenate(ranked)
        digest = hashlib.sha256(ranking.indices.tobytes() + ranking.scores.tobytes()).hexdigest()
        hits = Hits.of(ranking.indices, truth)
        tail = (counts >= 1) & (counts <= 9) & (hits.support > 0)
        found.append(
            precision_and_psp(ranking.indices, truth, inverse, (1, 5))
            | {"tail F1@5": 100 * macro_average(f1_at_k(hits, 5), tail)}
            | {"ECE@5": calibration_error(ranking.top(5), truth), "digest": digest}
            | {"start": start, "fit": fit[0], "wall": fit[1], "rank": rank[0]}
        )
    means = {x: float(np.mean([y[x] for y in found])) for x in found[0] if x != "digest"}
    print(json.dumps(means | {"digest": found[0]["digest"]}))


def timed(work):
    """What the work gives, and its CPU seconds and wall clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    done = work()
    return done, (time.process_time() - cpu, time.perf_counter() - wall)


class Grown:
    """A fitted model of another library with the one method that a fusion asks of trees."""

    def __init__(self, log_odds):
        self.log_odds = log_odds


def scikit_learn(threads: int):
    """Histogram boosting of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    def grow(X, carried, weight, iterations):
        n_parts = X.shape[1] // 3
        model = HistGradientBoostingClassifier(
            max_iter=iterations,
            max_leaf_nodes=15,
            learning_rate=0.05,
            l2_regularization=5.0,
            min_samples_leaf=min(200, max(20, len(X) // 200)),
            monotonic_cst=[1] * n_parts + [-1] * n_parts + [0] * (n_parts + 1),
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(threads, user_api="openmp"):
            return Grown(model.fit(X, carried, weight).decision_function)

    return grow


def lightgbm(threads: int):
    """LightGBM, asked to be deterministic."""
    import lightgbm

    def grow(X, carried, weight, iterations):
        n_parts = X.shape[1] // 3
        settings = {
            "objective": "binary",
            "num_leaves": 15,
            "learning_rate": 0.05,
            "lambda_l2": 5.0,
            "min_data_in_leaf": min(200, max(20, len(X) // 200)),
            "min_sum_hessian_in_leaf": 1e-3,
            "monotone_constraints": [1] * n_parts + [-1] * n_parts + [0] * (n_parts + 1),
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": threads,
            "verbosity": -1,
        }
        rows = lightgbm.Dataset(X, carried.astype(np.float32), weight=weight)
        model = lightgbm.train(settings, rows, iterations)
        return Grown(lambda X: model.predict(X, raw_score=True, num_threads=threads))

    return grow


PEERS = {"scikit-learn": scikit_learn, "lightgbm": lightgbm}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4], int(sys.argv[4]), *sys.argv[5:])
    else:
        main()
