"""A run with edits of its labels applied; the run's own arrays are never changed.

Labels are appended and never moved: a position always means the same label. A removed label, or one
whose addition was undone, keeps its position as a tombstone that is never ranked.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Label, LabelSet
from depl.core.errors import RunError
from depl.core.storage import read_tensors, write_tensors
from depl.labels.index import OverlaidIndex
from depl.neural.index import LabelIndex
from depl.run.state import State
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM

if TYPE_CHECKING:
    from depl.neural.retriever import TextRetriever

_FILE = "computed.safetensors"
_KEY = "key"


@dataclass(frozen=True)
class Computed:
    """What was computed for the n labels of one edit.

    Parameters
    ----------
    descriptions : list of str
        The text that describes each label.
    names, owner : csr_array, array
        Tf-idf of what is matched with texts, and to which of the n labels each row belongs.
    vectors : array of shape (n, size)
        Their vectors in the label index; (n, 0) in a run without one.
    name_vectors : array of shape (n, size)
        Those of their names alone in the index of names; (n, 0) likewise.
    weights, bias : csr_array of shape (n, n_terms), array of shape (n,)
        Their SVMs; -inf where there is none. Of added labels only.
    keyword_terms, keyword_weights : arrays of shape (n, n_keywords)
        As in ``Keywords``. Of added labels only.
    documents : array of shape (n_examples, size)
        Vectors of the example documents; (n_examples, 0) in a run without an encoder.
    rows : array of shape (n_examples,)
        The training document that an example is, or -1.
    carried : array of shape (n_pairs, 2)
        Pairs of an example and the one of the n labels it is an example of.
    """

    descriptions: list[str]
    names: csr_array
    owner: NDArray[np.int64]
    vectors: NDArray[np.float32]
    name_vectors: NDArray[np.float32]
    weights: csr_array
    bias: NDArray[np.float32]
    keyword_terms: NDArray[np.int32]
    keyword_weights: NDArray[np.float32]
    documents: NDArray[np.float32]
    rows: NDArray[np.int64]
    carried: NDArray[np.int64]

    def save(self, folder: Path, key: str) -> None:
        """Write all of it; ``key`` says what it was computed from."""
        arrays = vars(self) | {
            "descriptions": _bytes(json.dumps(self.descriptions)),
            _KEY: _bytes(key),
        }
        write_tensors(folder / _FILE, arrays)

    @classmethod
    def load(cls, folder: Path, key: str) -> Computed | None:
        """Read what ``save`` wrote; None where it is missing, damaged, or of another key."""
        try:
            arrays = read_tensors(folder / _FILE, _KEY, *cls.__dataclass_fields__)
        except RunError:
            return None
        if arrays.pop(_KEY).tobytes() != key.encode():
            return None
        return cls(**arrays | {"descriptions": json.loads(arrays["descriptions"].tobytes())})


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


class Overlay:
    """The edits so far, label by label.

    Parameters
    ----------
    base : State
        The run as it was fitted.
    """

    def __init__(self, base: State) -> None:
        self.base = base
        self.terms = base.features.terms_
        self.labels = list(base.labels)
        self.position = {label.id: i for i, label in enumerate(self.labels)}
        self.descriptions = list(base.descriptions)
        self.keywords = list(base.keywords)
        self.written: set[int] = set()  # labels with a description written by a person
        self.removed: dict[int, str] = {}
        self._counts: list[int] = []
        self._names: dict[int, csr_array] = {}
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._name_vectors: dict[int, NDArray[np.float32]] = {}
        self._svms: list[tuple[csr_array, NDArray[np.float32]]] = []
        self._documents: list[NDArray[np.float32]] = []
        self._carried: list[NDArray[np.int64]] = []  # pairs of document row and label position

    def add(self, labels: Sequence[Label], written: Sequence[bool], computed: Computed) -> None:
        """Append labels."""
        first = len(self.labels)
        self._append(labels)
        self.position |= {label.id: first + i for i, label in enumerate(labels)}
        counts = np.bincount(computed.carried[:, 1], minlength=len(labels))
        self._counts += counts.tolist()
        self._svms.append((computed.weights, computed.bias))
        for i in range(len(labels)):
            self._set(first + i, computed, i)
            if written[i]:
                self.written.add(first + i)
            pairs = zip(computed.keyword_terms[i], computed.keyword_weights[i], strict=True)
            self.keywords[first + i] = [(self.terms[t], float(w)) for t, w in pairs if t >= 0]
        if self.base.retriever is not None and len(computed.rows):
            self._add_documents(computed, first)

    def _add_documents(self, computed: Computed, first: int) -> None:
        assert self.base.retriever is not None
        n_documents = self.base.retriever.retriever.Y.shape[0] + sum(map(len, self._documents))
        unseen = computed.rows < 0
        rows = np.where(unseen, n_documents + np.cumsum(unseen) - 1, computed.rows)
        example, label = computed.carried.T
        self._documents.append(computed.documents[unseen])
        self._carried.append(np.stack([rows[example], first + label], axis=1))

    def add_tombstones(self, labels: Sequence[Label], entry: int) -> None:
        """Fill the positions of labels whose addition was undone."""
        for i, label in enumerate(labels, start=len(self.labels)):
            self.removed[i] = label.id
        self._append([_tombstone(label, entry) for label in labels])
        self._counts += [0] * len(labels)
        none = csr_array((len(labels), self.base.svm.weights_.shape[1]), dtype=np.float32)
        self._svms.append((none, np.full(len(labels), -np.inf, np.float32)))

    def _append(self, labels: Sequence[Label]) -> None:
        self.labels += labels
        self.descriptions += [label.name for label in labels]
        self.keywords += [[] for _ in labels]

    def describe(self, position: int, computed: Computed) -> None:
        """Give a label a description that a person wrote."""
        self.written.add(position)
        self._set(position, computed, 0)

    def rename(self, position: int, name: str, computed: Computed) -> None:
        """Give a label another name, and the description that goes with it."""
        self.labels[position] = replace(self.labels[position], name=name)
        self._set(position, computed, 0)

    def remove(self, position: int, entry: int) -> None:
        """Make a label a tombstone; its id is free for another."""
        label = self.labels[position]
        del self.position[label.id]
        self.removed[position] = label.id
        self.labels[position] = _tombstone(label, entry)

    def _set(self, position: int, computed: Computed, i: int) -> None:
        self.descriptions[position] = computed.descriptions[i]
        self._names[position] = csr_array(computed.names[computed.owner == i])
        if computed.vectors.shape[1]:
            self._vectors[position] = computed.vectors[i]
        if computed.name_vectors.shape[1]:
            self._name_vectors[position] = computed.name_vectors[i]

    def state(self) -> State:
        """The run with all edits applied."""
        return replace(
            self.base,
            labels=LabelSet(self.labels),
            train_counts=np.concatenate([self.base.train_counts, np.array(self._counts, np.int64)]),
            svm=self._svm(),
            names=self._name_match(),
            retriever=self._retriever(),
            descriptions=list(self.descriptions),
            keywords=list(self.keywords),
            removed=dict(self.removed),
        )

    def _svm(self) -> OneVsAllSVM:
        svm = copy.copy(self.base.svm)
        weights, bias = [svm.weights_, *(w for w, _ in self._svms)], [b for _, b in self._svms]
        svm.weights_ = csr_array(vstack(weights, format="csr"))
        svm.bias_ = np.concatenate([svm.bias_, *bias])
        svm.gap_ = np.concatenate([svm.gap_, np.zeros(len(self._counts), np.float32)])
        if self.removed:
            svm.weights_ = _without_rows(svm.weights_, list(self.removed))
            svm.bias_[list(self.removed)] = -np.inf
        return svm

    def _name_match(self) -> NameMatch:
        base, n_base = self.base.names, len(self.base.labels)
        changed = np.zeros(n_base, bool)
        changed[[p for p in (*self._names, *self.removed) if p < n_base]] = True
        kept = ~changed[base.owner]
        new = {p: rows for p, rows in self._names.items() if p not in self.removed}
        owner = [np.full(rows.shape[0], p) for p, rows in new.items()]
        owners = np.concatenate([base.owner[kept], *owner]).astype(np.int64)
        names = csr_array(vstack([base.names[kept], *new.values()], format="csr"))
        order = np.argsort(owners, kind="stable")
        return NameMatch(csr_array(names[order]), owners[order])

    def _retriever(self) -> TextRetriever | None:
        if self.base.retriever is None:
            return None
        retriever = copy.copy(self.base.retriever.retriever)
        retriever.labels = self._overlaid(retriever.labels, self._vectors)
        if retriever.names is not None:
            retriever.names = self._overlaid(retriever.names, self._name_vectors)
        n_base = len(retriever.documents)
        extra = [row for block in self._documents for row in block]
        if extra:
            placed = {n_base + i: row for i, row in enumerate(extra)}
            retriever.documents = OverlaidIndex(
                retriever.documents, placed, gone=[], n=n_base + len(extra)
            )
        retriever.Y = self._carriers(retriever.Y, n_base + len(extra))
        return replace(self.base.retriever, retriever=retriever)

    def _overlaid(
        self, index: LabelIndex, changed: Mapping[int, NDArray[np.float32]]
    ) -> LabelIndex:
        """An index of the labels with all changes, without tombstones."""
        if not changed and not self.removed:
            return index
        vectors = {p: v for p, v in changed.items() if p not in self.removed}
        return OverlaidIndex(index, vectors, gone=[*changed, *self.removed], n=len(self.labels))

    def _carriers(self, Y: csr_array, n_documents: int) -> csr_array:
        """Which document carries which label: examples last, tombstones on no document."""
        rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
        pairs = np.concatenate([np.stack([rows, Y.indices], axis=1), *self._carried])
        pairs = pairs[~np.isin(pairs[:, 1], list(self.removed))]
        ones = np.ones(len(pairs), np.float32)
        return csr_array((ones, tuple(pairs.T)), shape=(n_documents, len(self.labels)))


def _tombstone(label: Label, entry: int) -> Label:
    """The label under an id of its own, so that its former id can be used again."""
    return replace(label, id=f"{label.id} (removed, entry {entry})")


def _without_rows(matrix: csr_array, rows: Sequence[int]) -> csr_array:
    """The matrix with nothing in these rows."""
    lengths = np.diff(matrix.indptr)
    kept = np.ones(matrix.shape[0], bool)
    kept[list(rows)] = False
    entries = np.repeat(kept, lengths)
    indptr = np.concatenate([[0], np.cumsum(np.where(kept, lengths, 0))])
    return csr_array((matrix.data[entries], matrix.indices[entries], indptr), shape=matrix.shape)
