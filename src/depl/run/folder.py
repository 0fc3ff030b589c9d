"""A run folder: its files, and how each stage's result is read.

::

    manifest.json   the settings, which stages are complete, and a hash of every file they wrote
    corpus/         labels.parquet, train.parquet, Y.safetensors; aside.parquet: the documents that
                    were set aside; columns.json: what was taken from a table
    features/       the fitted tf-idf; X.safetensors, the vectors of the training documents
    linear/         the SVM
    slice/          which training documents are held out
    held_out/       the SVM fitted without them
    descriptions/   keywords, pseudo descriptions, name vectors; held_out/: by that SVM
    negatives/      the SVM's ranking of the documents it was fitted on, for hard negatives
    documents/      token ids of the training documents; their states, if the encoder is frozen
    label_texts/    the same for names, descriptions and held-out descriptions
    classifier/     the encoder after the first neural stage; held_out/: that of the held-out fit
    attention/      the classifier after it went on with label-wise attention, likewise
    encoder/        the encoder after the second, likewise
    index/          labels/, names/, documents/: their vectors
    reranker/       the encoder that reads documents and labels together
    fusion/         how the parts' rankings become one; thresholds.json
    labels/         edits of labels
    feedback/       what people decided about suggestions; encoded/: an encoder's states of these
                    documents
    review/         documents that people are to look at
    learned/        what was learnt from that since
    logs/           training curves
    report/         what ``depl evaluate`` wrote

A held-out fit is the whole method fitted without the validation slice. Everything that must be
chosen or fitted on documents that the parts have not seen (epochs, fusion, calibration) is chosen
there; the parts are then fitted again on all training documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import RunError
from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.core.tensors import (
    read_matrix,
    read_ranking,
    read_tensors,
    write_matrix,
    write_ranking,
    write_tensors,
)
from depl.fusion.fusion import Fusion
from depl.fusion.newcomers import NewcomerModel
from depl.fusion.thresholds import Thresholds
from depl.neural.index import LabelIndex
from depl.neural.tokens import Texts, Tokens
from depl.run import manifest
from depl.run.config import Config
from depl.run.corpus_folder import CorpusFolder
from depl.sparse.characters import CharacterSVM
from depl.sparse.keywords import Descriptions
from depl.sparse.label_tree import load_linear
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures, load_idf

_X = "X.safetensors"
STATES = "states.safetensors"
_HELD_OUT = "held_out.safetensors"
_FACTS = "label_facts.safetensors"

Fold = Literal["held_out", "final"]
FOLDS: tuple[Fold, ...] = ("held_out", "final")


@dataclass(frozen=True)
class Slice:
    """Which training documents are held out.

    Parameters
    ----------
    fold : array of shape (n_documents,)
        The fold in which each document is held out, from 0 on; -1 where it never is.
    """

    fold: NDArray[np.int64]

    @cached_property
    def n_folds(self) -> int:
        """How often documents are held out: once, or fold by fold."""
        return int(self.fold.max(initial=-1)) + 1

    @cached_property
    def held_out(self) -> NDArray[np.int64]:
        """Positions of the documents that are held out in any fold, ascending."""
        return np.flatnonzero(self.fold >= 0)

    def rest(self, fold: int = 0) -> NDArray[np.int64]:
        """Positions of the documents that are not held out in a fold, ascending."""
        return np.flatnonzero(self.fold != fold)


class Run(CorpusFolder):
    """One run folder: what it was given, and what its stages made.

    Parameters
    ----------
    path : path
        The folder; it need not exist yet.
    """

    def config(self) -> Config:
        """The settings the run was last fitted with."""
        return Config.from_dict(manifest.config(self.path))

    @cached_property
    def threads(self) -> int | None:
        """Worker threads and processes; None is one per core."""
        return self.config().threads or None

    def features(self) -> TfidfFeatures:
        """The fitted tf-idf."""
        return TfidfFeatures.load(
            self.verified("features", "tfidf.json", "terms.parquet"), n_jobs=self.threads
        )

    def idf(self) -> NDArray[np.float32]:
        """The idf of the fitted tf-idf's terms."""
        return load_idf(self.verified("features", "terms.parquet"))

    def train_vectors(self) -> csr_array:
        """The tf-idf vectors of the training documents."""
        return read_matrix(self.verified("features", _X) / _X)

    def svm(self, fold: Fold = "final") -> OneVsAllSVM:
        """The SVM of all training documents, or of those that are not held out first."""
        if fold == "held_out":
            return self.held_out_svm(0)
        return load_linear(self.verified("linear"), n_threads=self.threads)

    def held_out_svm(self, fold: int) -> OneVsAllSVM:
        """The SVM of the training documents that are not held out in a fold."""
        folder = self.verified("held_out", str(fold)) / str(fold)
        return load_linear(folder, n_threads=self.threads)

    def characters(self) -> CharacterSVM | None:
        """The SVM on characters; None where the run has none."""
        if not self._has_characters():
            return None
        folder = self.verified("characters", "final") / "final"
        return CharacterSVM.load(folder, n_threads=self.threads)

    def character_vectors(self) -> csr_array:
        """The tf-idf of the training documents by sequences of characters, where there is one."""
        return read_matrix(self.verified("characters", _X) / _X)

    def held_out_characters(self) -> Ranking | None:
        """How SVMs on characters that have not seen them rank the documents that are held out."""
        if not self._has_characters():
            return None
        return read_ranking(self.verified("characters", _HELD_OUT) / _HELD_OUT)

    def _has_characters(self) -> bool:
        return self.has("characters") and _HELD_OUT in self.files("characters")

    def rank_held_out(
        self, X: csr_array, fold: NDArray[np.int64], k: int, executor: Executor | None = None
    ) -> Ranking:
        """Documents held out in these folds, each ranked by the SVM that has not seen it."""
        ranked = [self.held_out_svm(f).rank(X[fold == f], k, executor) for f in np.unique(fold)]
        return in_document_order(ranked, fold)

    @cached_property
    def slice(self) -> Slice:
        """Which training documents are held out."""
        path = self.verified("slice") / "slice.safetensors"
        fold = read_tensors(path, "fold")["fold"]
        if fold.shape != (self.Y.shape[0],) or fold.max(initial=-1) < 0:
            raise RunError(
                f"{path} is damaged: it does not say which of the {self.Y.shape[0]} documents are "
                f"held out. Delete its folder and fit again."
            )
        return Slice(fold)

    def rows(self, fold: Fold) -> NDArray[np.int64]:
        """The training documents of a fold."""
        return np.arange(self.Y.shape[0]) if fold == "final" else self.slice.rest()

    def descriptions(self, fold: Fold = "final") -> Descriptions:
        """Every label's pseudo description and keywords, by the SVM of a fold."""
        return Descriptions.load(self._of_fold("descriptions", fold, "descriptions.parquet"))

    def names(self) -> NameMatch:
        """What matches label names with texts."""
        return NameMatch.load(self.verified("descriptions", "names.safetensors"))

    def negatives(self, fold: Fold) -> Ranking:
        """How the SVM of a fold ranks the documents it was fitted on."""
        return read_ranking(self.verified("negatives") / f"{fold}.safetensors")

    def texts(self, *where: str) -> Texts:
        """Token ids of "documents", or of "label_texts" and one of its folders.

        With a frozen encoder, its pooled states of these texts instead.
        """
        stage, *rest = where
        folder = self.verified(stage, *rest).joinpath(*rest)
        path = folder / STATES
        if not path.exists():
            return Tokens.load(folder)
        states: NDArray[np.float32] = read_tensors(path, "states")["states"]
        return states.astype(np.float32)

    def encoder_folder(self, stage: str, fold: Fold = "final") -> Path:
        """Where the encoder is after the stage "classifier" or "encoder"."""
        return self._of_fold(stage, fold)

    def index(self, name: str) -> LabelIndex:
        """The index of "labels", of their "names" or of "documents"."""
        return LabelIndex.load(self.verified("index", name) / name)

    def fusion(self) -> Fusion:
        """How the parts' rankings become one, with what was learnt from feedback."""
        number = self.learned.current()
        learned = self.learned.fusion(number, self.threads) if number else None
        return learned or self.fitted_fusion()

    def fitted_fusion(self) -> Fusion:
        """How the parts' rankings became one when the run was fitted."""
        return Fusion.load(self.verified("fusion"), n_threads=self.threads)

    def label_facts(self) -> NDArray[np.float32] | None:
        """What else the fusion knows of the labels; None in runs of earlier versions."""
        if not self.has("fusion"):
            return None
        path = self.verified("fusion") / _FACTS
        return read_tensors(path, "facts")["facts"] if path.exists() else None

    def newcomer_model(self) -> NewcomerModel | None:
        """What makes labels probable that were added; None in runs of earlier versions."""
        return NewcomerModel.load(self.verified("fusion"))

    def thresholds(self) -> Thresholds:
        """The probabilities above which to suggest."""
        return Thresholds.load(self.verified("fusion"))

    def _of_fold(self, stage: str, fold: Fold, *names: str) -> Path:
        """The folder of a fold's share of a stage, verified."""
        if fold != "final":
            return self.verified(stage, *([f"{fold}/{x}" for x in names] or [fold])) / fold
        own = [name for name in self.files(stage) if not name.startswith("held_out/")]
        return self.verified(stage, *(names or own))


def in_document_order(rankings: Sequence[Ranking], fold: NDArray[np.int64]) -> Ranking:
    """One ranking of all documents from those of each fold; ``fold`` is that of each document."""
    return Ranking.concatenate(rankings).take(np.argsort(np.argsort(fold, kind="stable")))


def write_characters(folder: Path, final: CharacterSVM, X: csr_array, held_out: Ranking) -> None:
    """Write the SVM on characters, its vectors, and how others rank the documents held out."""
    final.save(folder / "final")
    write_matrix(folder / _X, X)
    write_ranking(folder / _HELD_OUT, held_out)


def write_facts(folder: Path, facts: NDArray[np.float32]) -> None:
    """Write what the fusion knows of the labels."""
    write_tensors(folder / _FACTS, {"facts": facts})


def write_slice(folder: Path, fold: NDArray[np.int64]) -> None:
    """Keep which documents are held out."""
    write_tensors(folder / "slice.safetensors", {"fold": fold})
