"""What a run has learnt from feedback since it was fitted: states beside the stages.

::

    learned/current.json   which state is used; 0 is the run as it was fitted
    learned/N/             state N: tf-idf, SVM, names, descriptions.parquet, counts.safetensors,
                           documents.parquet and vectors.safetensors, learned.json

A state is written whole before ``current.json`` names it. It belongs to the stages that it was
learnt on: when the run is fitted again, it is no longer used.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.errors import RunError
from depl.core.hashes import FileRecord, first_difference, records
from depl.core.tensors import read_tensors, write_tensors
from depl.sparse.characters import CharacterSVM
from depl.sparse.keywords import Descriptions
from depl.sparse.label_tree import load_linear
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

_POINTER, _FACTS, _COUNTS = "current.json", "learned.json", "counts.safetensors"
_DOCUMENTS, _VECTORS = "documents.parquet", "vectors.safetensors"
_CHARACTERS = "characters"  # a folder
_LAYOUT = 3  # of a state; one of another layout is not used


@dataclass(frozen=True)
class Lesson:
    """What a state was learnt from.

    Parameters
    ----------
    stages : str
        The version of the stages that it belongs to.
    time : str
        When, in ISO 8601, UTC.
    documents : int
        How many documents are new, or have another text or other labels than in training.
    labels : int
        How many labels were solved again.
    seconds : float
        How long it took.
    """

    stages: str
    time: str
    documents: int
    labels: int
    seconds: float


class Verdicts(NamedTuple):
    """What people say about one document.

    Parameters
    ----------
    digest : str
        The hash of its text.
    carried, rejected : tuples of int
        Positions of labels, ascending.
    """

    digest: str
    carried: tuple[int, ...]
    rejected: tuple[int, ...]


@dataclass(frozen=True)
class Documents:
    """The documents of the feedback that a state has learnt from.

    Parameters
    ----------
    verdicts : dict of str to Verdicts
        By the ids of the documents.
    vectors : csr_array of shape (n_documents, n_terms)
        Their tf-idf, in the same order.
    """

    verdicts: dict[str, Verdicts]
    vectors: csr_array

    def save(self, folder: Path) -> None:
        """Write ids, hashes, labels and vectors."""
        columns = {
            "id": list(self.verdicts),
            "digest": [x.digest for x in self.verdicts.values()],
            "carried": [list(x.carried) for x in self.verdicts.values()],
            "rejected": [list(x.rejected) for x in self.verdicts.values()],
        }
        storage.write_table(folder / _DOCUMENTS, columns)
        write_tensors(folder / _VECTORS, {"vectors": self.vectors})

    @classmethod
    def load(cls, folder: Path) -> Documents:
        """Read what ``save`` wrote."""
        table = storage.read_table(folder / _DOCUMENTS, "id", "digest", "carried", "rejected")
        said = zip(table["digest"], table["carried"], table["rejected"], strict=True)
        verdicts = [Verdicts(digest, tuple(yes), tuple(no)) for digest, yes, no in said]
        vectors = read_tensors(folder / _VECTORS, "vectors")["vectors"]
        return cls(dict(zip(table["id"], verdicts, strict=True)), vectors)


@dataclass(frozen=True)
class Learned:
    """A state: all that learning changes.

    Parameters
    ----------
    features, svm, names
        As in ``depl.run.state``.
    labels : array of int
        The labels that were learnt since the fit.
    descriptions : Descriptions
        Theirs.
    train_counts : array of shape (n_labels,)
        How many documents carry each label.
    n_train : int
        How many documents there are.
    characters : CharacterSVM or None
        The SVM on characters, where the run has one.
    """

    features: TfidfFeatures
    svm: OneVsAllSVM
    names: NameMatch
    labels: NDArray[np.int64]
    descriptions: Descriptions
    train_counts: NDArray[np.int64]
    n_train: int
    characters: CharacterSVM | None = None


class LearnedStates:
    """The states of one run.

    Parameters
    ----------
    path : Path
        The folder of the run.
    stages : function
        Gives the version of the run's stages.
    """

    def __init__(self, path: Path, stages: Callable[[], str]) -> None:
        self._path, self._stages = path, stages
        self.folder = path / "learned"

    def current(self) -> int:
        """The number of the state in use; 0 for the run as it was fitted."""
        pointer = self.folder / _POINTER
        if not pointer.exists():
            return 0
        number: int = storage.read_json(pointer)["current"]
        fits = number > 0 and self._facts(number).get("layout") == _LAYOUT
        return number if fits and self.lesson(number).stages == self._stages() else 0

    def lesson(self, number: int) -> Lesson:
        """What a state was learnt from."""
        return Lesson(**self._facts(number)["lesson"])

    def read(self, number: int, n_threads: int | None = None) -> Learned:
        """A state, if its files are what was written; the threads are those of its parts."""
        self.check(number)
        folder = self._state(number)
        counts = read_tensors(folder / _COUNTS, "labels", "train_counts", "n_train")
        by_characters = folder / _CHARACTERS
        return Learned(
            TfidfFeatures.load(folder, n_threads),
            load_linear(folder, n_threads),
            NameMatch.load(folder),
            counts["labels"],
            Descriptions.load(folder),
            counts["train_counts"],
            int(counts["n_train"][0]),
            CharacterSVM.load(by_characters, n_threads) if by_characters.exists() else None,
        )

    def documents(self, number: int) -> Documents:
        """What a state has learnt from; ``read`` has checked it."""
        return Documents.load(self._state(number))

    def check(self, number: int) -> None:
        """Refuse a state whose files are not what was written."""
        kept = self._facts(number)["files"]
        files = {name: FileRecord.from_json(x) for name, x in kept.items()}
        wrong = first_difference(self._state(number), files, self._path)
        if wrong is not None:
            raise RunError(
                f"{self._state(number) / wrong[0]} {wrong[1]}; do without it with: depl learn "
                f"{self._path} --undo, or learn again with: depl learn {self._path}"
            )

    def keep(self, learned: Learned, documents: Documents, lesson: Lesson) -> int:
        """Write a further state and use it from now on; returns its number."""
        before = self.current()
        number = 1 + max(self._numbers(), default=0)
        with storage.whole_folder(self._state(number)) as temporary:
            learned.features.save(temporary)
            learned.svm.save(temporary)
            learned.names.save(temporary)
            documents.save(temporary)
            learned.descriptions.save(temporary)
            if learned.characters is not None:
                learned.characters.save(temporary / _CHARACTERS)
            counts = {
                "labels": learned.labels,
                "train_counts": learned.train_counts,
                "n_train": np.array([learned.n_train], np.int64),
            }
            write_tensors(temporary / _COUNTS, counts)
            files = {name: record._asdict() for name, record in records(temporary).items()}
            facts = {"layout": _LAYOUT, "lesson": asdict(lesson), "before": before, "files": files}
            storage.write_json(temporary / _FACTS, facts)
        self._point_to(number)
        for old in self._numbers() - {before, number}:
            shutil.rmtree(self._state(old), ignore_errors=True)
        return number

    def undo(self) -> int:
        """Go back to the state before, or to the run as it was fitted; returns its number."""
        number = self.current()
        if not number:
            raise RunError(
                f"There is nothing to undo: {self._path} is as it was fitted. "
                f"`depl learn {self._path}` learns from feedback."
            )
        before: int = self._facts(number)["before"]
        self._point_to(before if before in self._numbers() else 0)
        return self.current()

    def _point_to(self, number: int) -> None:
        storage.write_json(self.folder / _POINTER, {"current": number})

    def _facts(self, number: int) -> dict[str, Any]:
        facts: dict[str, Any] = storage.read_json(self._state(number) / _FACTS)
        return facts

    def _state(self, number: int) -> Path:
        return self.folder / str(number)

    def _numbers(self) -> set[int]:
        if not self.folder.exists():
            return set()
        return {int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()}
