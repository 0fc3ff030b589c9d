"""What ``import depl`` offers in one call each: fit and evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from depl import evaluation, pipeline
from depl.classifier import Classifier
from depl.config import Config
from depl.corpus import Corpus


def fit(
    corpus: Corpus,
    *,
    out: str | Path,
    config: Config | None = None,
    overwrite: bool = False,
) -> Classifier:
    """Train on a corpus and keep everything in a run folder; an interrupted fit is continued.

    Parameters
    ----------
    corpus : Corpus
        The training documents, such as ``depl.read("my-corpus").train``.
    out : path
        The run folder.
    config : Config or None
        The settings; None means the defaults.
    overwrite : bool
        Replace a run on another corpus that is in the folder.
    """
    run = pipeline.fit(corpus, out, config, overwrite=overwrite)
    return Classifier.load(run.path)


def evaluate(
    model: Classifier, corpus: Corpus, *, ks: Sequence[int] = (1, 3, 5)
) -> evaluation.Report:
    """Score a model's suggestions on documents whose labels are known.

    Labels of the documents that the model does not know count as missed.
    """
    corpus = corpus.aligned(model.labels)
    unknown = len(corpus.labels) - len(model.labels)
    return evaluation.evaluate(
        model.predict(corpus.texts, k=max((10, *ks))),
        corpus,
        train_counts=np.concatenate([model.train_counts, np.zeros(unknown, np.int64)]),
        n_train=model.n_train,
        ks=ks,
        name=model.name,
    )
