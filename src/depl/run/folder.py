"""A run folder: its files, and how each stage's result is read.

::

    manifest.json   which stages are complete, what they were made from, how long they took
    config.json     the settings the run was last fitted with
    corpus/         labels.parquet, train.parquet, Y.safetensors
    features/       the fitted tf-idf; X.safetensors, the vectors of the training documents
    linear/         the SVM
    slice/          which training documents are held out
    held_out/       the SVM fitted without them
    descriptions/   keywords, pseudo descriptions, name vectors; held_out/: by that SVM
    negatives/      the SVM's ranking of the documents it was fitted on, for hard negatives
    documents/      token ids of the training documents; their states, if the encoder is frozen
    label_texts/    the same for names, descriptions and held-out descriptions
    classifier/     the encoder after the first neural stage; held_out/: that of the held-out fit
    encoder/        the encoder after the second, likewise
    index/          labels/, names/, documents/: their vectors
    fusion/         how the parts' rankings become one; thresholds.json
    labels/         edits of labels
    logs/           training curves
    report/         what ``depl evaluate`` wrote

A held-out fit is the whole method fitted without the validation slice. Everything that must be
chosen or fitted on documents that the parts have not seen (epochs, fusion, calibration) is chosen
there; the parts are then fitted again on all training documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.fusion.fusion import Fusion
from depl.fusion.thresholds import Thresholds
from depl.neural.index import LabelIndex
from depl.neural.tokens import Texts, Tokens
from depl.run.config import Config
from depl.sparse.keywords import Descriptions
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

FORMAT_VERSION = 3
_SAME_CORPUS = (2,)  # older formats whose documents can be read, so that the rest can be made again

STATES = "states.safetensors"

Fold = Literal["held_out", "final"]
FOLDS: tuple[Fold, ...] = ("held_out", "final")


class Slice(NamedTuple):
    """Positions of the training documents that are held out, and of the rest; both ascending."""

    held_out: NDArray[np.int64]
    rest: NDArray[np.int64]


class Run:
    """One run folder.

    Parameters
    ----------
    path : path
        The folder; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """An existing run; anything else is a ``RunError`` that says what it is."""
        run = cls(path)
        if not run.path.exists():
            raise RunError(
                f"There is no run folder {path}. `depl fit CORPUS --out {path}` makes one."
            )
        if not run.has_manifest:
            raise RunError(
                f"{path} is not a run folder: it has no manifest.json. Give the folder that "
                f"`depl fit --out` wrote."
            )
        return run

    # The manifest

    @property
    def has_manifest(self) -> bool:
        """Whether the folder is a run."""
        return (self.path / "manifest.json").is_file()

    def manifest(self) -> dict[str, Any]:
        """What is complete in this folder; an empty manifest when there is none."""
        manifest = self._read_manifest()
        found = manifest["format_version"]
        if found in _SAME_CORPUS:
            raise RunError(
                f"{self.path} was written in run format {found}, and this version of depl reads "
                f"format {FORMAT_VERSION}. Make it again from its own documents with: "
                f"depl fit {self.path}"
            )
        if found != FORMAT_VERSION:
            raise RunError(
                f"{self.path} was written in run format {found}, and this version of depl reads "
                f"format {FORMAT_VERSION}. Fit the run again from its corpus."
            )
        return manifest

    def _read_manifest(self) -> dict[str, Any]:
        if not self.has_manifest:
            return {"format_version": FORMAT_VERSION, "stages": {}}
        manifest: dict[str, Any] = storage.read_json(self.path / "manifest.json")
        if not isinstance(manifest, dict) or not isinstance(manifest.get("stages"), dict):
            raise RunError(
                f"{self.path / 'manifest.json'} is damaged: it lists no stages. Delete the folder "
                f"and fit again."
            )
        return {"format_version": None} | manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest, whole or not at all."""
        storage.write_json(self.path / "manifest.json", manifest)

    def upgrade(self) -> None:
        """Keep the corpus of a run in an older format, and nothing else: the rest is made again."""
        manifest = self._read_manifest()
        if manifest["format_version"] not in _SAME_CORPUS or not manifest["stages"].get("corpus"):
            return
        labels = storage.read_labels(self.path / "corpus" / "labels.parquet")
        corpus = storage.read_corpus(self.path / "corpus" / "train.parquet", labels)
        write_matrix(self.path / "corpus" / "Y.safetensors", corpus.Y)
        entry = manifest["stages"]["corpus"]
        entry["fingerprint"] = fingerprint("corpus", entry["settings"], {})
        self.write_manifest({"format_version": FORMAT_VERSION, "stages": {"corpus": entry}})

    def has(self, stage: str) -> bool:
        """Whether a stage is complete."""
        return stage in self.manifest()["stages"] and (self.path / stage).is_dir()

    def require(self, stage: str) -> Path:
        """The folder of a stage that must be complete."""
        if not self.has(stage):
            raise RunError(
                f"The run {self.path} has no finished {stage!r} stage. "
                f"Give its `depl fit` command again; it continues where it stopped."
            )
        return self.path / stage

    def settings(self, stage: str) -> dict[str, Any]:
        """The settings that a stage was made with."""
        self.require(stage)
        settings: dict[str, Any] = self.manifest()["stages"][stage]["settings"]
        return settings

    def locked(self) -> AbstractContextManager[None]:
        """Prevent a second process from fitting the same folder at the same time."""
        busy = f"Another process is fitting {self.path} right now."
        return storage.locked(
            self.path / ".lock", busy=f"{busy} Wait for it, or choose another --out."
        )

    # What the stages made

    def config(self) -> Config:
        """The settings the run was last fitted with."""
        return Config.from_dict(storage.read_json(self.path / "config.json"))

    @cached_property
    def threads(self) -> int | None:
        """Worker threads and processes; None is one per core."""
        return self.config().threads or None

    @cached_property
    def labels(self) -> LabelSet:
        """The label set, in its fixed order."""
        return storage.read_labels(self.require("corpus") / "labels.parquet")

    def train(self) -> Corpus:
        """The training documents."""
        return storage.read_corpus(self.require("corpus") / "train.parquet", self.labels)

    @cached_property
    def Y(self) -> csr_array:  # noqa: N802 - the notation of the field
        """Which training document carries which label."""
        return _matrix(self.require("corpus") / "Y.safetensors")

    def train_counts(self) -> tuple[NDArray[np.int64], int]:
        """How many training documents carry each label, and how many there are."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1]), self.Y.shape[0]

    def features(self) -> TfidfFeatures:
        """The fitted tf-idf."""
        return TfidfFeatures.load(self.require("features"), n_jobs=self.threads)

    def train_vectors(self) -> csr_array:
        """The tf-idf vectors of the training documents."""
        return _matrix(self.require("features") / "X.safetensors")

    def svm(self, fold: Fold = "final") -> OneVsAllSVM:
        """The SVM of all training documents, or of those that are not held out."""
        stage = "linear" if fold == "final" else "held_out"
        return OneVsAllSVM.load(self.require(stage), n_threads=self.threads)

    @cached_property
    def slice(self) -> Slice:
        """Which training documents are held out."""
        rows = storage.read_tensors(self.require("slice") / "rows.safetensors", *Slice._fields)
        return Slice(**rows)

    def rows(self, fold: Fold) -> NDArray[np.int64]:
        """The training documents of a fold."""
        return np.arange(self.Y.shape[0]) if fold == "final" else self.slice.rest

    def descriptions(self, fold: Fold = "final") -> Descriptions:
        """Every label's pseudo description and keywords, by the SVM of a fold."""
        return Descriptions.load(_of_fold(self.require("descriptions"), fold))

    def names(self) -> NameMatch:
        """What matches label names with texts."""
        return NameMatch.load(self.require("descriptions"))

    def negatives(self, fold: Fold) -> Ranking:
        """How the SVM of a fold ranks the documents it was fitted on."""
        return storage.read_ranking(self.require("negatives") / f"{fold}.safetensors")

    def texts(self, *where: str) -> Texts:
        """Token ids of "documents", or of "label_texts" and one of its folders.

        With a frozen encoder, its pooled states of these texts instead.
        """
        stage, *rest = where
        folder = self.require(stage).joinpath(*rest)
        path = folder / STATES
        if not path.exists():
            return Tokens.load(folder)
        states: NDArray[np.float32] = storage.read_tensors(path, "states")["states"]
        return states.astype(np.float32)

    def encoder_folder(self, stage: str, fold: Fold = "final") -> Path:
        """Where the encoder is after the stage "classifier" or "encoder"."""
        return _of_fold(self.require(stage), fold)

    def index(self, name: str) -> LabelIndex:
        """The index of "labels", of their "names" or of "documents"."""
        return LabelIndex.load(self.require("index") / name)

    def fusion(self) -> Fusion:
        """How the parts' rankings become one."""
        return Fusion.load(self.require("fusion"), n_threads=self.threads)

    def thresholds(self) -> Thresholds:
        """The probabilities above which to suggest."""
        return Thresholds.load(self.require("fusion"))


def fingerprint(stage: str, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Identifies what a stage makes: from its settings and the fingerprints of what it needs."""
    return storage.fingerprint(FORMAT_VERSION, stage, settings, inputs)


def _of_fold(folder: Path, fold: Fold) -> Path:
    return folder if fold == "final" else folder / fold


def _matrix(path: Path) -> csr_array:
    matrix: csr_array = storage.read_tensors(path, "matrix")["matrix"]
    return matrix


def write_matrix(path: Path, matrix: csr_array) -> None:
    """Write a sparse matrix such as Y or X."""
    storage.write_tensors(path, {"matrix": matrix})


def write_slice(folder: Path, rows: Slice) -> None:
    """Keep which documents are held out."""
    storage.write_tensors(folder / "rows.safetensors", rows._asdict())


def write_corpus(folder: Path, corpus: Corpus) -> None:
    """Write the training documents, the label set, and which document carries which label."""
    storage.write_labels(folder / "labels.parquet", corpus.labels)
    storage.write_corpus(folder / "train.parquet", corpus)
    write_matrix(folder / "Y.safetensors", corpus.Y)
