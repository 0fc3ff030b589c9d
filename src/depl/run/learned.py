"""What a run has learnt from feedback since it was fitted: states beside the stages.

::

    learned/current.json   which state is used; 0 is the run as it was fitted
    learned/N/             state N: tf-idf, SVM, names, descriptions.parquet, known.safetensors,
                           documents.parquet, vectors.safetensors and foreseen.*, learned.json;
                           fusion/, characters/ and encoded.safetensors where the run has these

A state is written whole before ``current.json`` names it, with the hash of its ``learned.json``,
which has those of all other files. It belongs to the stages that it was learnt on: when the run is
fitted again, it is no longer used.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.errors import RunError
from depl.core.hashes import FileRecord, first_difference, records
from depl.core.tensors import read_tensors, write_tensors
from depl.fusion.fusion import Fusion
from depl.fusion.updating import Foreseen
from depl.run.learned_vectors import LearnedVectors
from depl.sparse.characters import CharacterSVM
from depl.sparse.keywords import Descriptions
from depl.sparse.label_tree import load_linear
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

_POINTER, _FACTS, _KNOWN = "current.json", "learned.json", "known.safetensors"
_DOCUMENTS, _VECTORS = "documents.parquet", "vectors.safetensors"
_CHARACTERS, _FUSION = "characters", "fusion"  # folders
_LAYOUT = 5  # of a state; one of another layout is not used


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
    by_characters : csr_array of shape (n_documents, n_sequences) or None
        The same by sequences of characters, where the run has a part that needs it.
    foreseen : Foreseen or None
        What was suggested for those that were new, where the run has a fusion.
    """

    verdicts: dict[str, Verdicts]
    vectors: csr_array
    by_characters: csr_array | None = None
    foreseen: Foreseen | None = None

    def save(self, folder: Path) -> None:
        """Write ids, hashes, labels and vectors."""
        columns = {
            "id": list(self.verdicts),
            "digest": [x.digest for x in self.verdicts.values()],
            "carried": [list(x.carried) for x in self.verdicts.values()],
            "rejected": [list(x.rejected) for x in self.verdicts.values()],
        }
        storage.write_table(folder / _DOCUMENTS, columns)
        vectors = {"vectors": self.vectors}
        if self.by_characters is not None:
            vectors["by_characters"] = self.by_characters
        write_tensors(folder / _VECTORS, vectors)
        if self.foreseen is not None:
            self.foreseen.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Documents:
        """Read what ``save`` wrote."""
        table = storage.read_table(folder / _DOCUMENTS, "id", "digest", "carried", "rejected")
        said = zip(table["digest"], table["carried"], table["rejected"], strict=True)
        verdicts = [Verdicts(digest, tuple(yes), tuple(no)) for digest, yes, no in said]
        kept = read_tensors(folder / _VECTORS, "vectors")
        by_id = dict(zip(table["id"], verdicts, strict=True))
        return cls(by_id, kept["vectors"], kept.get("by_characters"), Foreseen.load(folder))


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
    places : array of shape (n,)
        Positions of the documents of the feedback among all; those behind the last training
        document are new.
    rows : csr_array of shape (n, n_terms)
        Their tf-idf.
    Y : csr_array of shape (n_documents, n_labels)
        Which document carries which label, of all documents.
    characters : CharacterSVM or None
        The SVM on characters, where the run has one.
    vectors : LearnedVectors or None
        What the encoder makes of it, where the run has one.
    fusion : Fusion or None
        What makes one ranking of all, where the run has it.
    """

    features: TfidfFeatures
    svm: OneVsAllSVM
    names: NameMatch
    labels: NDArray[np.int64]
    descriptions: Descriptions
    places: NDArray[np.int64]
    rows: csr_array
    Y: csr_array
    characters: CharacterSVM | None = None
    vectors: LearnedVectors | None = None
    fusion: Fusion | None = None

    @cached_property
    def train_counts(self) -> NDArray[np.int64]:
        """How many documents carry each label."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1])

    @property
    def n_train(self) -> int:
        """How many documents there are."""
        return int(self.Y.shape[0])


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
            if self._numbers():
                raise self._damaged(pointer, "is missing")
            return 0
        with self._explained(pointer):
            kept = storage.read_json(pointer)
            number, facts = int(kept["current"]), kept.get("facts")
        if facts is not None and facts != self._facts_hash(number):
            raise self._damaged(self._state(number) / _FACTS, "is not what was written")
        fits = number > 0 and self._facts(number).get("layout") == _LAYOUT
        return number if fits and self.lesson(number).stages == self._stages() else 0

    def current_if_whole(self) -> int:
        """The same, but 0 where the state in use is damaged: what is learnt anew replaces it."""
        try:
            number = self.current()
            if number:
                self.check(number)
        except RunError:
            return 0
        return number

    def lesson(self, number: int) -> Lesson:
        """What a state was learnt from."""
        with self._explained(self._state(number) / _FACTS):
            return Lesson(**self._facts(number)["lesson"])

    def fusion(self, number: int, n_threads: int | None = None) -> Fusion | None:
        """The fusion of a state, if its files are what was written; None where there is none."""
        self.check(number, f"{_FUSION}/")
        folder = self._state(number) / _FUSION
        return Fusion.load(folder, n_threads) if folder.exists() else None

    def read(self, number: int, n_threads: int | None = None) -> Learned:
        """A state, if its files are what was written; the threads are those of its parts."""
        self.check(number)
        folder = self._state(number)
        known = read_tensors(folder / _KNOWN, "labels", "places", "Y")
        by_characters = folder / _CHARACTERS
        return Learned(
            TfidfFeatures.load(folder, n_threads),
            load_linear(folder, n_threads),
            NameMatch.load(folder),
            known["labels"],
            Descriptions.load(folder),
            known["places"],
            read_tensors(folder / _VECTORS, "vectors")["vectors"],
            known["Y"],
            CharacterSVM.load(by_characters, n_threads) if by_characters.exists() else None,
            LearnedVectors.load(folder),
            self.fusion(number, n_threads),
        )

    def documents(self, number: int) -> Documents:
        """What a state has learnt from; ``read`` has checked it."""
        return Documents.load(self._state(number))

    def check(self, number: int, within: str = "") -> None:
        """Refuse a state whose files, or those in a folder of it, are not what was written."""
        with self._explained(self._state(number) / _FACTS):
            kept = self._facts(number)["files"]
            here = {name: x for name, x in kept.items() if name.startswith(within)}
            files = {name: FileRecord.from_json(x) for name, x in here.items()}
        wrong = first_difference(self._state(number), files, self._path)
        if wrong is not None:
            raise self._damaged(self._state(number) / wrong[0], wrong[1])

    def keep(self, learned: Learned, documents: Documents, lesson: Lesson, *, before: int) -> int:
        """Write a further state and use it from now on; returns its number.

        ``before`` is that of the state which it continues from; 0 for the run as it was fitted.
        """
        number = 1 + max(self._numbers(), default=0)
        if number == 1:  # from here on a pointer that is missing was deleted
            self._point_to(0)
        with storage.whole_folder(self._state(number)) as temporary:
            learned.features.save(temporary)
            learned.svm.save(temporary)
            learned.names.save(temporary)
            documents.save(temporary)
            learned.descriptions.save(temporary)
            if learned.characters is not None:
                learned.characters.save(temporary / _CHARACTERS)
            if learned.fusion is not None:
                (temporary / _FUSION).mkdir()
                learned.fusion.save(temporary / _FUSION)
            if learned.vectors is not None:
                learned.vectors.save(temporary)
            known = {"labels": learned.labels, "places": learned.places, "Y": learned.Y}
            write_tensors(temporary / _KNOWN, known)
            files = {name: record._asdict() for name, record in records(temporary).items()}
            facts = {"layout": _LAYOUT, "lesson": asdict(lesson), "before": before, "files": files}
            storage.write_json(temporary / _FACTS, facts)
        self._point_to(number)
        for old in self._numbers() - {before, number}:
            shutil.rmtree(self._state(old), ignore_errors=True)
        return number

    def undo(self) -> int:
        """Go back to the state before, or to the run as it was fitted; returns its number."""
        before = 0  # what is damaged cannot say what was before it
        with suppress(RunError):
            number = self.current()
            before = int(self._facts(number)["before"]) if number else -1
        if before < 0:
            raise RunError(
                f"There is nothing to undo: {self._path} is as it was fitted. "
                f"`depl learn {self._path}` learns from feedback."
            )
        self._point_to(before if before in self._numbers() else 0)
        return self.current_if_whole()

    def _point_to(self, number: int) -> None:
        pointer = {"current": number, "facts": self._facts_hash(number)}
        storage.write_json(self.folder / _POINTER, pointer)

    def _facts_hash(self, number: int) -> str | None:
        path = self._state(number) / _FACTS
        return hashlib.sha256(path.read_bytes()).hexdigest() if number and path.exists() else None

    def _facts(self, number: int) -> dict[str, Any]:
        path = self._state(number) / _FACTS
        with self._explained(path):
            return dict(storage.read_json(path))

    @contextmanager
    def _explained(self, path: Path) -> Iterator[None]:
        """Turn whatever cannot be read into what to do about it."""
        try:
            yield
        except (RunError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise self._damaged(path, f"is damaged ({error!s:.200})") from error

    def _damaged(self, path: Path, what: str) -> RunError:
        return RunError(
            f"{path} {what}; do without it with: depl learn {self._path} --undo, or learn again "
            f"with: depl learn {self._path}"
        )

    def _state(self, number: int) -> Path:
        return self.folder / str(number)

    def _numbers(self) -> set[int]:
        if not self.folder.exists():
            return set()
        return {int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()}
