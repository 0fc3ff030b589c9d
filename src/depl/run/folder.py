"""A run folder: what lies where in it, and how each stage's result is read and written.

::

    manifest.json                 which stages are whole, from what, how long they took
    config.json                   the settings the run was last fitted with
    corpus/         labels.parquet, train.parquet, Y.safetensors
    features/       terms.parquet, X.safetensors
    linear/         weights.safetensors, solved.safetensors
    descriptions/   descriptions.parquet, names.safetensors, owners.safetensors
    rehearsal/      the sparse half without the validation slice: what it says of the slice
    tokens/         token ids of documents and labels; the SVM's hard negatives
    states/         the encoder's states of documents and labels (frozen encoders only)
    classifier/     the encoder after the first neural stage; rehearsal/ in it: without the slice
    encoder/        the encoder after the second, likewise
    index/          labels/, documents/: their vectors
    fusion/         how the parts' rankings become one, and thresholds.json
    logs/           training curves
    report/         what ``depl evaluate`` wrote

The rehearsal is the whole method fitted without the validation slice. Everything that must be
chosen or fitted on documents the parts have not seen (epochs, fusion, probabilities) is chosen in
the rehearsal; the parts are then fitted anew on all training documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.fusion.fusion import Fusion
from depl.fusion.thresholds import Thresholds
from depl.neural.index import LabelIndex
from depl.neural.tokens import Tokens
from depl.run.config import Config
from depl.sparse.keywords import Keywords
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

FORMAT_VERSION = 2
THRESHOLDS = "thresholds.json"

Fold = Literal["rehearsal", "final"]


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
        """Whether the folder says that it is a run."""
        return (self.path / "manifest.json").is_file()

    def manifest(self) -> dict[str, Any]:
        """What is whole in this folder; an empty manifest when there is none."""
        if not self.has_manifest:
            return {"format_version": FORMAT_VERSION, "stages": {}}
        manifest: dict[str, Any] = storage.read_json(self.path / "manifest.json")
        if not isinstance(manifest, dict) or not isinstance(manifest.get("stages"), dict):
            raise RunError(
                f"{self.path / 'manifest.json'} is damaged: it lists no stages. Delete the folder "
                f"and fit again."
            )
        found = manifest.get("format_version")
        if found != FORMAT_VERSION:
            raise RunError(
                f"{self.path} was written in run format {found}; this version of depl reads format "
                f"{FORMAT_VERSION}. Fit the run again."
            )
        return manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest, whole or not at all."""
        storage.write_json(self.path / "manifest.json", manifest)

    def require(self, stage: str) -> Path:
        """The folder of a stage that must be whole."""
        if stage not in self.manifest()["stages"] or not (self.path / stage).is_dir():
            raise RunError(
                f"The run {self.path} has no finished {stage!r} stage. "
                f"Give its `depl fit` command again; it continues where it stopped."
            )
        return self.path / stage

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process from fitting the same folder at the same time."""
        with storage.explain_os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            handle = (self.path / ".lock").open("w")
        with handle:
            if not storage.lock(handle, wait=False):
                raise RunError(
                    f"Another process is fitting {self.path} right now. Wait for it, or choose "
                    f"another --out."
                )
            yield

    # What the stages keep

    def config(self) -> Config:
        """The settings the run was last fitted with."""
        return Config.from_dict(storage.read_json(self.path / "config.json"))

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
        return storage.read_sparse(self.require("corpus") / "Y.safetensors")

    def train_counts(self) -> tuple[NDArray[np.int64], int]:
        """How many training documents carry each label, and how many there are."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1]), self.Y.shape[0]

    def features(self) -> TfidfFeatures:
        """The fitted tf-idf."""
        terms = storage.read_table(self.require("features") / "terms.parquet")
        config = self.config()
        features = TfidfFeatures(
            **self.manifest()["stages"]["features"]["settings"], n_jobs=config.threads or None
        )
        features.terms_ = terms["term"]
        features.idf_ = np.asarray(terms["idf"], np.float32)
        return features

    def train_vectors(self) -> csr_array:
        """The tf-idf vectors of the training documents."""
        return storage.read_sparse(self.require("features") / "X.safetensors")

    def linear(self) -> OneVsAllSVM:
        """The fitted SVM."""
        folder = self.require("linear")
        solved = storage.read_tensors(folder / "solved.safetensors")
        svm = OneVsAllSVM(C=float(solved["C"][0]), n_threads=self.config().threads or None)
        svm.weights_ = storage.read_sparse(folder / "weights.safetensors")
        svm.bias_, svm.gap_ = solved["bias"], solved["gap"]
        return svm

    def descriptions(self) -> tuple[list[str], list[list[tuple[str, float]]]]:
        """Every label's pseudo description, and its keywords with their weights."""
        t = storage.read_table(self.require("descriptions") / "descriptions.parquet")
        pairs = zip(t["keywords"], t["weights"], strict=True)
        return t["description"], [list(zip(words, w, strict=True)) for words, w in pairs]

    def names(self) -> NameMatch:
        """What matches label names with texts."""
        folder = self.require("descriptions")
        owner = storage.read_tensors(folder / "owners.safetensors", "owner")["owner"]
        return NameMatch(storage.read_sparse(folder / "names.safetensors"), owner)

    def rehearsal(self) -> Rehearsal:
        """What the sparse half, fitted without the validation slice, says of it."""
        folder = self.require("rehearsal")
        rows = storage.read_tensors(folder / "slice.safetensors", "held_out", "rest")
        return Rehearsal(
            rows["held_out"],
            rows["rest"],
            {
                name: storage.read_ranking(folder / f"{name}.safetensors")
                for name in ("svm", "names")
            },
        )

    def tokens(self, name: str) -> Tokens:
        """Token ids of "documents", label "names", "descriptions", or those of the "rehearsal"."""
        t = storage.read_tensors(self.require("tokens") / f"{name}.safetensors", "ids", "indptr")
        return Tokens(t["ids"].astype(np.int32), t["indptr"])

    def hard_negatives(self, fold: Fold) -> Ranking:
        """What the SVM takes the documents it was fitted on for."""
        stage = "tokens" if fold == "final" else "rehearsal"
        return storage.read_ranking(self.require(stage) / "hard.safetensors")

    def states(self, name: str) -> NDArray[np.float32]:
        """The frozen encoder's pooled states of what ``tokens`` has under this name."""
        path = self.require("states") / f"{name}.safetensors"
        return storage.read_tensors(path, "states")["states"].astype(np.float32)

    def encoder_folder(self, stage: str, fold: Fold = "final") -> Path:
        """Where the encoder lies after the stage "classifier" or "encoder"."""
        folder = self.require(stage)
        return folder if fold == "final" else folder / "rehearsal"

    def index(self, name: str) -> LabelIndex:
        """The index of "labels", of their "names" or of "documents"."""
        return LabelIndex.load(self.require("index") / name)

    def fusion(self) -> Fusion:
        """How the parts' rankings become one."""
        return Fusion.load(self.require("fusion"))

    def thresholds(self) -> Thresholds | None:
        """From which probability on to suggest; None in runs fitted before these were kept."""
        path = self.require("fusion") / THRESHOLDS
        return Thresholds.load(path) if path.exists() else None


@dataclass(frozen=True)
class Rehearsal:
    """The validation slice, the rest, and the sparse parts' rankings of the slice."""

    held_out: NDArray[np.int64]
    rest: NDArray[np.int64]
    rankings: dict[str, Ranking]


def write_corpus(folder: Path, corpus: Corpus) -> None:
    """Keep the training documents, the label set, and who carries what."""
    storage.write_labels(folder / "labels.parquet", corpus.labels)
    storage.write_corpus(folder / "train.parquet", corpus)
    storage.write_sparse(folder / "Y.safetensors", corpus.Y)


def write_features(folder: Path, features: TfidfFeatures, X: csr_array) -> None:
    """Keep the terms, their idf, and the training vectors."""
    storage.write_table(folder / "terms.parquet", {"term": features.terms_, "idf": features.idf_})
    storage.write_sparse(folder / "X.safetensors", X)


def write_linear(folder: Path, svm: OneVsAllSVM) -> None:
    """Keep the weights, biases, duality gaps and the C they were solved for."""
    storage.write_sparse(folder / "weights.safetensors", svm.weights_)
    solved = {"bias": svm.bias_, "gap": svm.gap_, "C": np.array([svm.C])}
    storage.write_tensors(folder / "solved.safetensors", solved)


def write_descriptions(
    folder: Path, labels: LabelSet, keywords: Keywords, descriptions: Sequence[str]
) -> None:
    """Keep the pseudo descriptions, and the keywords with their weights."""
    pairs = [keywords.of(i) for i in range(len(labels))]
    columns = {
        "id": labels.ids,
        "description": list(descriptions),
        "keywords": pa.array([[t for t, _ in row] for row in pairs], pa.list_(pa.string())),
        "weights": pa.array([[w for _, w in row] for row in pairs], pa.list_(pa.float32())),
    }
    storage.write_table(folder / "descriptions.parquet", columns)


def write_names(folder: Path, names: NameMatch) -> None:
    """Keep the names' vectors, and whose they are."""
    storage.write_sparse(folder / "names.safetensors", names.names)
    storage.write_tensors(folder / "owners.safetensors", {"owner": names.owner})


def write_rehearsal(folder: Path, rehearsal: Rehearsal) -> None:
    """Keep the slice, the rest, and the rankings of the slice."""
    rows = {"held_out": rehearsal.held_out, "rest": rehearsal.rest}
    storage.write_tensors(folder / "slice.safetensors", rows)
    for name, ranking in rehearsal.rankings.items():
        storage.write_ranking(folder / f"{name}.safetensors", ranking)


def write_tokens(folder: Path, name: str, tokens: Tokens) -> None:
    """Keep token ids, in two bytes each where they fit."""
    small = tokens.ids.max(initial=0) < 2**16
    ids = tokens.ids.astype(np.uint16 if small else np.int32)
    storage.write_tensors(folder / f"{name}.safetensors", {"ids": ids, "indptr": tokens.indptr})
