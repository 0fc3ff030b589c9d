"""Labels and documents, which all rooms exchange; the other shared type is ``Ranking``.

Three invariants hold everywhere and are stated here once:

- The order of labels is the order of ``LabelSet``, fixed when a corpus is read and never changed.
- The second axis of every ``Y``, and every label index in a ``Ranking``, is in that order.
- Labels that never occur in the training documents *are* in the set. They have a name, so they can
  be found; they are a frequency band of their own in every report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.display import count, html_table
from depl.core.errors import CorpusError
from depl.core.hierarchy import Hierarchy
from depl.core.indicator import indicator
from depl.core.texts import TextsOnDisk, checked_texts

_SHOWN = 5  # documents in a notebook


@dataclass(frozen=True, slots=True)
class Label:
    """One label, as the corpus or its vocabulary has it.

    Parameters
    ----------
    id : str
        What identifies it.
    name : str
        Its name in words.
    alt_names : tuple of str
        Other names.
    description : str
        What it is for: a scope note or definition.
    broader : tuple of str
        The ids of the labels directly above it; they need not be in the set.
    """

    id: str
    name: str
    alt_names: tuple[str, ...] = ()
    description: str = ""
    broader: tuple[str, ...] = ()


class LabelSet(Sequence[Label]):
    """All labels in their fixed order, seen in training or not.

    Parameters
    ----------
    labels : iterable of Label
        In the order that every matrix and ranking will use. Ids must be unique.

    Examples
    --------
    >>> labels = LabelSet([Label("2560", "wine"), Label("17", "customs duty")])
    >>> labels.index("17"), labels[0].name, len(labels), "99" in labels
    (1, 'wine', 2, False)
    """

    def __init__(self, labels: Iterable[Label]) -> None:
        self._labels = tuple(labels)
        self._index = {label.id: i for i, label in enumerate(self._labels)}
        if len(self._index) != len(self._labels):
            twice = [i for i, n in Counter(label.id for label in self._labels).items() if n > 1]
            raise CorpusError(
                f"Label ids must be unique; {len(twice)} occur more than once, "
                f"for example {', '.join(map(repr, twice[:5]))}. Remove the repeated labels."
            )

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, position: int) -> Label: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Label, ...]: ...
    def __getitem__(self, position: int | slice) -> Label | tuple[Label, ...]:
        return self._labels[position]

    def __iter__(self) -> Iterator[Label]:
        return iter(self._labels)

    def __contains__(self, label_id: object) -> bool:
        return label_id in self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelSet) and self._labels == other._labels

    def __hash__(self) -> int:
        return hash(self._labels)

    def __repr__(self) -> str:
        return f"LabelSet({len(self)} labels)"

    def index(self, label_id: str) -> int:  # type: ignore[override]
        """Position of the label with this id; raises ``CorpusError`` when there is none."""
        try:
            return self._index[label_id]
        except KeyError:
            raise CorpusError(
                f"There is no label with the id {label_id!r} in this set of {len(self)} labels."
            ) from None

    def get(self, label_id: str, default: int = -1) -> int:
        """Position of the label with this id, or ``default``."""
        return self._index.get(label_id, default)

    def broader_names(self, position: int) -> tuple[str, ...]:
        """The names of what is broader than a label; the ids of what is no label."""
        broader = self._labels[position].broader
        return tuple(self[self._index[x]].name if x in self._index else x for x in broader)

    @property
    def ids(self) -> list[str]:
        """The ids, in order."""
        return [label.id for label in self._labels]

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [label.name for label in self._labels]

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Which labels are broader and narrower than others."""
        return Hierarchy(self.ids, [label.broader for label in self._labels])

    def broader(self, position: int) -> list[Label]:
        """The labels directly above one; what is not in the set has only its id."""
        places = ((x, self.get(x)) for x in self._labels[position].broader)
        return [self._labels[i] if i >= 0 else Label(x, x) for x, i in places]

    def narrower(self, position: int) -> list[Label]:
        """The labels directly below one."""
        return [self._labels[i] for i in self.hierarchy.narrower[position]]


@dataclass(frozen=True, repr=False)
class Corpus:
    """Documents with their labels.

    Parameters
    ----------
    ids : list of str
        One unique id per document.
    texts : sequence of str
        The documents: a list or, where they have more than 268 million characters, on disk.
    Y : csr_array of shape (n_documents, n_labels), float32
        1 where a document carries a label.
    labels : LabelSet
        What the columns of ``Y`` mean.
    """

    ids: list[str]
    texts: Sequence[str]
    Y: csr_array
    labels: LabelSet

    def __post_init__(self) -> None:
        shape = (len(self.texts), len(self.labels))
        if self.Y.shape != shape or len(self.ids) != len(self.texts):
            raise CorpusError(
                f"A corpus of {len(self.ids)} ids, {len(self.texts)} texts and {len(self.labels)} "
                f"labels needs a Y of shape {shape}; got {self.Y.shape}."
            )

    @classmethod
    def from_rows(
        cls,
        ids: Sequence[str],
        texts: Sequence[str],
        rows: Sequence[Sequence[int]],
        labels: LabelSet,
    ) -> Corpus:
        """Build a corpus from each document's label positions (repeats count once)."""
        return cls(list(ids), checked_texts(texts), indicator(rows, len(labels)), labels)

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        mean = self.Y.nnz / max(1, len(self))
        labels = count(len(self.labels), "label")
        return f"Corpus({count(len(self), 'document')}, {labels}, {mean:.1f} each)"

    def _repr_html_(self) -> str:
        shown = range(min(_SHOWN, len(self)))
        names = [", ".join(self.labels[j].name for j in self.Y[[i]].indices) for i in shown]
        rows = [(self.ids[i], self.texts[i], names[i]) for i in shown]
        return html_table(repr(self), ("id", "text", "labels"), rows)

    @cached_property
    def label_counts(self) -> NDArray[np.int64]:
        """How many documents carry each label."""
        return np.bincount(self.Y.indices, minlength=len(self.labels)).astype(np.int64)

    def subset(self, rows: NDArray[np.integer] | Sequence[int]) -> Corpus:
        """Documents at these positions, in this order; the label set stays whole."""
        picked = np.asarray(rows, dtype=np.int64)
        texts = self.texts
        some = texts.take(picked) if isinstance(texts, TextsOnDisk) else [texts[i] for i in picked]
        return Corpus([self.ids[i] for i in picked], some, self.Y[picked], self.labels)

    def aligned(self, labels: LabelSet) -> Corpus:
        """The same documents over another label set, matched by id.

        Labels of this corpus that the other set lacks are appended if a document carries them, so
        that a model that does not know them is counted as missing them.
        """
        if labels == self.labels:
            return self
        carried = set(np.unique(self.Y.indices).tolist())
        extra = [x for i, x in enumerate(self.labels) if i in carried and labels.get(x.id) < 0]
        wide = LabelSet([*labels, *extra]) if extra else labels
        moved = np.array([wide.get(label.id) for label in self.labels], dtype=np.int32)
        Y = csr_array(
            (self.Y.data, moved[self.Y.indices], self.Y.indptr), shape=(len(self), len(wide))
        )
        Y.sort_indices()
        return Corpus(self.ids, self.texts, Y, wide)


@dataclass(frozen=True, repr=False)
class Dataset:
    """The contents of a corpus folder: a label set and the splits that were found.

    Parameters
    ----------
    labels : LabelSet
        The labels of all splits.
    splits : dict of str to Corpus
        Each split by its name.
    name : str
        What messages call it.
    listed : bool
        Whether there is a list of the labels; otherwise they are those that documents carry.

    Examples
    --------
    >>> labels = LabelSet([Label("a", "apples")])
    >>> data = Dataset(labels, {"train": Corpus.from_rows(["1"], ["red"], [[0]], labels)})
    >>> len(data.train), sorted(data.splits)
    (1, ['train'])
    """

    labels: LabelSet
    splits: dict[str, Corpus]
    name: str = "corpus"
    listed: bool = True

    def __repr__(self) -> str:
        splits = ", ".join(f"{name} {len(corpus):,}" for name, corpus in self.splits.items())
        documents = "document" if sum(map(len, self.splits.values())) == 1 else "documents"
        return f"Dataset({self.name}: {splits} {documents}, {count(len(self.labels), 'label')})"

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{len(x):,}", f"{np.count_nonzero(x.label_counts):,}", f"{x.Y.nnz:,}")
            for name, x in self.splits.items()
        ]
        header = ("split", "documents", "labels that occur", "documents x labels")
        return html_table(repr(self), header, rows)

    def __getitem__(self, split: str) -> Corpus:
        try:
            return self.splits[split]
        except KeyError:
            found = ", ".join(sorted(self.splits)) or "none"
            raise CorpusError(
                f"{self.name} has no {split!r} split; the splits found are: {found}. "
                f"Add the file of that split, or name another one."
            ) from None

    @property
    def train(self) -> Corpus:
        """The training documents."""
        return self["train"]

    @property
    def dev(self) -> Corpus:
        """The development documents."""
        return self["dev"]

    @property
    def test(self) -> Corpus:
        """The test documents."""
        return self["test"]
