"""What a run was given: its documents and labels, the files of the stage *corpus*."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.corpus import Corpus, LabelSet
from depl.core.tensors import read_matrix, write_matrix
from depl.core.texts import TextsOnDisk
from depl.run.checked_folder import GIVEN, CheckedFolder

_LABELS, _TRAIN, _ASIDE, _COLUMNS = GIVEN
_Y = "Y.safetensors"


class CorpusFolder(CheckedFolder):
    """A run folder whose corpus can be read.

    Parameters
    ----------
    path : path
        The folder; it need not exist yet.
    """

    @cached_property
    def labels(self) -> LabelSet:
        """The label set, in its fixed order."""
        return storage.read_labels(self.verified("corpus", _LABELS) / _LABELS)

    def train(self) -> Corpus:
        """The training documents."""
        return storage.read_corpus(self.verified("corpus", _TRAIN) / _TRAIN, self.labels)

    def train_texts(self) -> TextsOnDisk:
        """The texts of the training documents, which are not all in memory at once."""
        return storage.read_texts(self.verified("corpus", _TRAIN) / _TRAIN)

    def aside(self) -> Corpus | None:
        """The documents that were set aside before training, to measure on; None without any."""
        if _ASIDE not in self.files("corpus"):
            return None
        return storage.read_corpus(self.verified("corpus", _ASIDE) / _ASIDE, self.labels)

    @cached_property
    def labels_are_listed(self) -> bool:
        """Whether labels come from a list: then some of them are on no document.

        Otherwise they come from the documents, and the run does not know labels that only new
        documents carry.
        """
        counts, _ = self.train_counts()
        aside = self.aside()
        return bool(((counts if aside is None else counts + aside.label_counts) == 0).any())

    def labels_of_aside(self) -> list[int]:
        """Labels that are in the run only because documents that were set aside carry them.

        Counted as known, these labels doubled the score of a table most of whose labels are on one
        document.
        """
        if self.labels_are_listed:
            return []
        counts, _ = self.train_counts()
        found: list[int] = np.flatnonzero(counts == 0).tolist()
        return found

    def columns(self) -> dict[str, Any] | None:
        """Which columns of a table the documents were taken from; None without a table."""
        if _COLUMNS not in self.files("corpus"):
            return None
        found: dict[str, Any] = storage.read_json(self.verified("corpus", _COLUMNS) / _COLUMNS)
        return found

    @cached_property
    def Y(self) -> csr_array:  # noqa: N802 - the notation of the field
        """Which training document carries which label."""
        return read_matrix(self.verified("corpus", _Y) / _Y)

    def train_counts(self) -> tuple[NDArray[np.int64], int]:
        """How many training documents carry each label, and how many there are."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1]), self.Y.shape[0]

    def openings(self, length: int) -> tuple[Any, Any]:
        """Ids of the training documents and the beginnings of their texts, as arrow columns."""
        return storage.read_openings(self.verified("corpus", _TRAIN) / _TRAIN, length)


def write_corpus(
    folder: Path,
    corpus: Corpus,
    aside: Corpus | None = None,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Write the training documents, the label set, and which document carries which label.

    Documents that were set aside and the columns of a table are written where there are any.
    """
    storage.write_labels(folder / _LABELS, corpus.labels)
    storage.write_corpus(folder / _TRAIN, corpus)
    write_matrix(folder / _Y, corpus.Y)
    if aside is not None:
        storage.write_corpus(folder / _ASIDE, aside)
    if columns is not None:
        storage.write_json(folder / _COLUMNS, columns)
