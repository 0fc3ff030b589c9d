"""Suggestions for chunk after chunk of documents, by this process or by those of a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import RunError
from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.core.storage import fingerprint
from depl.fusion.fusion import FUSION
from depl.fusion.thresholds import keep
from depl.model.classifier import Classifier
from depl.readers.document import Document
from depl.run.folder import Run

_DEPTH = 100  # labels from which some move up to the places of ancestors
_AHEAD = 2  # chunks per worker that are read before their turn


@dataclass(frozen=True)
class Asked:
    """What is asked for, for every document.

    Parameters
    ----------
    run : Path
        The run folder.
    identity : str
        Of the run and its labels, by ``identity``.
    k : int
        Labels per document, at most.
    at_least : float, array or None
        The scores below which labels are left out, for all labels or one per label.
    ancestors : bool
        Whether labels that are broader than another suggestion are kept.
    model : str
        What suggests labels, as in ``Classifier``.
    """

    run: Path
    identity: str
    k: int
    at_least: float | NDArray[np.float64] | None = None
    ancestors: bool = True
    model: str = FUSION

    def rank(self, model: Classifier, texts: Sequence[str]) -> Ranking:
        """The suggestions of a model."""
        ranking = model.predict(texts, self.k if self.ancestors else max(2 * self.k, _DEPTH))
        if self.at_least is not None:
            ranking = keep(ranking, self.at_least)
        return ranking if self.ancestors else ranking.without_ancestors(self.k)


def identity(run: Path, model: Classifier) -> str:
    """Tells runs with other stages or labels apart, wherever they are."""
    stages = Run.open(run).manifest()["stages"]
    prints = {name: stage["fingerprint"] for name, stage in stages.items()}
    return fingerprint(prints, model.labels.ids, model.labels.names, model.descriptions)


def rank_chunks(
    model: Classifier,
    asked: Asked,
    chunks: Iterable[Sequence[Document]],
    executor: Executor | None = None,
) -> Iterator[tuple[Sequence[Document], Ranking]]:
    """Each chunk with its suggestions, in order.

    Parameters
    ----------
    model : Classifier
        The run of ``asked``.
    asked : Asked
        What is asked for.
    chunks : iterable of sequences of Document
        They are read a few ahead of the suggestions, never all at once.
    executor : Executor or None
        A cluster, whose workers load the run themselves; None: this process.
    """
    read: deque[Sequence[Document]] = deque()

    def texts() -> Iterator[list[str]]:
        for chunk in chunks:
            read.append(chunk)
            yield [document.text for document in chunk]

    if executor is None:
        rankings: Iterator[Ranking] = (asked.rank(model, some) for some in texts())
    else:
        rankings = executor.map(_rank_there, asked, texts(), compiled=False, ahead=_AHEAD)
    for ranking in rankings:
        yield read.popleft(), ranking


def _rank_there(asked: Asked, texts: Sequence[str]) -> Ranking:
    """The suggestions by the model that this worker has loaded; without its labels."""
    ranking = asked.rank(_model(asked.run, asked.identity, asked.model), texts)
    return Ranking(ranking.indices, ranking.scores)


@lru_cache(maxsize=1)
def _model(run: Path, expected: str, name: str) -> Classifier:
    model = Classifier.load(run, name)
    if identity(run, model) != expected:
        raise RunError(
            f"{run} was changed while labels were being suggested: it was fitted again, or its "
            f"labels were edited. Give the same command again."
        )
    return model
