"""The last stage of every run: the rankings of all parts become one."""

from __future__ import annotations

import numpy as np

from depl.fusion.fusion import Fusion
from depl.fusion.thresholds import Thresholds
from depl.pipeline.work import Work


def make_fusion(work: Work) -> None:
    """The fusion and the thresholds, fitted on the held-out documents."""
    run, config = work.run, work.config
    held_out, rest = run.slice
    X, depth = run.train_vectors()[held_out], config.fusion.depth
    rankings = {"svm": run.svm("held_out").rank(X, depth), "names": run.names().rank(X, depth)}
    if config.neural:
        from depl.pipeline.neural import held_out_rankings

        rankings |= held_out_rankings(run, config)
    fusion = Fusion(
        candidates=config.fusion.candidates,
        head_loss=config.fusion.head_loss,
        seed=config.seed,
        n_threads=config.threads or None,
    )
    counts = np.bincount(run.Y[rest].indices, minlength=run.Y.shape[1])
    Y = run.Y[held_out]
    fusion.fit(rankings, Y, counts, len(rest))
    fusion.save(work.folder)
    Thresholds.fit(fusion.cross_fitted_, Y[fusion.fitted_on_], counts).save(work.folder)
