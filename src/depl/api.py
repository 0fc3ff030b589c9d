"""What ``import depl`` offers in one call each: fit and evaluate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from depl.core import progress
from depl.core.cluster import connected
from depl.core.corpus import Corpus, Dataset
from depl.core.errors import CorpusError
from depl.core.ranking import Ranking
from depl.evaluation import scores
from depl.fusion.fusion import FUSION
from depl.model.classifier import Classifier
from depl.pipeline import fit as pipeline
from depl.run.config import Config

_DEPTH = 10  # recall is given at 10
_ROOM = 90  # labels more, where some are taken as unknown and others move up


def fit(
    corpus: Corpus,
    *,
    out: str | Path,
    config: Config | str | Path | Mapping[str, Any] | None = None,
    overwrite: bool = False,
    ray: str | None = None,
) -> Classifier:
    """Train on a corpus and keep everything in a run folder; an interrupted fit is continued.

    Parameters
    ----------
    corpus : Corpus
        The training documents, such as ``depl.read("my-corpus").train``.
    out : path
        The run folder.
    config : Config, str, path, mapping or None
        The settings, as ``Config.load`` takes them: a recipe's name such as "cpu-frozen", a TOML
        file, nested settings; None means the defaults.
    overwrite : bool
        Replace a run on another corpus that is in the folder.
    ray : str or None
        Share the work among the machines of a Ray cluster: "local", "auto" or the address of its
        head. None: on this machine. The result is the same, but for the rounding where several
        machines train an encoder together.

    Examples
    --------
    >>> import depl
    >>> from tempfile import mkdtemp
    >>> texts = ["red wine and white wine", "wine from grapes", "olive oil", "oil and olives"] * 5
    >>> rows = [{"text": x, "labels": ["wine" if "wine" in x else "oil"]} for x in texts]
    >>> corpus = depl.read(rows).train
    >>> model = depl.fit(corpus, out=mkdtemp() + "/run")
    >>> model.predict(["grapes for wine"], k=1).to_pandas()["label"].tolist()
    ['wine']
    >>> depl.evaluate(model, corpus).scores["P@1"]
    100.0
    """
    _check_corpus(corpus)
    settings = Config.load(config)
    with (
        progress.shown_in_notebook(),
        connected(ray, workers=settings.threads or None, torch=settings.neural) as executor,
    ):
        run = pipeline.fit(corpus, out, settings, overwrite=overwrite, executor=executor)
    return Classifier.load(run.path)


def evaluate(
    model: Classifier,
    corpus: Corpus,
    *,
    ks: Sequence[int] = (1, 3, 5),
    A: float = 0.55,
    B: float = 1.5,
    unknown: Collection[int] = (),
) -> scores.Report:
    """Score a model's suggestions on documents whose labels are known.

    Labels of the documents that the model does not know count as missed.

    Parameters
    ----------
    model : Classifier
        What is scored.
    corpus : Corpus
        The documents, such as ``depl.read("my-corpus").test``.
    ks : sequence of int
        The cut-offs; bands and bins are at the largest.
    A, B : float
        Of the propensities in PSP@k; see ``depl.evaluation.metrics.inverse_propensities``.
    unknown : collection of int
        Positions of labels that are taken as unknown to the model, too.

    Examples
    --------
    >>> report = evaluate(model, depl.read("my-corpus").dev)  # doctest: +SKIP
    >>> report.scores["P@5"], report.mistakes.missed[0]  # doctest: +SKIP
    """
    _check_corpus(corpus)
    k = max((_DEPTH, *ks))
    ranking = model.predict(corpus.texts, _deeper(k, unknown)).without(unknown).top(k)
    probabilities = model.gives_probabilities
    return _report(model, corpus, ranking, ks, (A, B), model.name, probabilities=probabilities)


def evaluate_parts(
    model: Classifier,
    corpus: Corpus,
    *,
    ks: Sequence[int] = (1, 3, 5),
    A: float = 0.55,
    B: float = 1.5,
    unknown: Collection[int] = (),
) -> list[scores.Report]:
    """Score every part of a model alone, and all of them together last; as ``evaluate`` does."""
    k = max((_DEPTH, *ks))
    rankings = model.all_rankings(corpus.texts, _deeper(k, unknown))
    return [
        _report(
            model,
            corpus,
            ranking.without(unknown).top(k),
            ks,
            (A, B),
            name,
            probabilities=name == FUSION,
        )
        for name, ranking in rankings.items()
    ]


def _deeper(k: int, unknown: Collection[int]) -> int:
    return k + min(_ROOM, len(unknown))


def _check_corpus(given: object) -> None:
    if isinstance(given, Corpus):
        return
    if isinstance(given, Dataset):
        splits = " or ".join(f".{name}" for name in given.splits)
        raise CorpusError(f"One split of the corpus is needed; got all. Give its {splits}.")
    raise CorpusError(
        f"A corpus is needed; got {type(given).__name__}. Read it first: depl.read(...).train."
    )


def _report(
    model: Classifier,
    corpus: Corpus,
    ranking: Ranking,
    ks: Sequence[int],
    propensity: tuple[float, float],
    name: str,
    *,
    probabilities: bool,
) -> scores.Report:
    A, B = propensity
    return scores.evaluate_known(
        ranking,
        corpus,
        labels=model.labels,
        train_counts=model.train_counts,
        n_train=model.n_train,
        ks=ks,
        A=A,
        B=B,
        name=name,
        probabilities=probabilities,
    )
