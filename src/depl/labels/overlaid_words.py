"""The words of an edited run: tf-idf of changed names, and of the examples of added labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Label
from depl.core.errors import RunError
from depl.labels.computed import Computed
from depl.labels.growing import Column, GrowingRows, Rows, count, moved, spans
from depl.labels.overlaid_retriever import OWN
from depl.run.state import State
from depl.sparse.names import NameMatch
from depl.sparse.sequences import Sequences


class WordEvidence(NamedTuple):
    """Names and examples of added labels, over the run's terms and some further words.

    Parameters
    ----------
    unknown : list of str
        These words, sorted: those in the names and examples that are no terms of the run.
    names, name_owner, examples, example_owner
        As in ``Evidence``.
    rows : array of int
        Which of all examples these are.
    texts : list of str
        The examples themselves.
    """

    unknown: list[str]
    names: csr_array
    name_owner: NDArray[np.int64]
    examples: csr_array
    example_owner: NDArray[np.int64]
    rows: NDArray[np.int64]
    texts: list[str]


class OverlaidWords:
    """What edits add to the words by which labels are matched with texts.

    Parameters
    ----------
    base : State
        The run as it was fitted.
    """

    def __init__(self, base: State) -> None:
        self._base = base
        n, n_terms = len(base.labels), len(base.features.terms_)
        self._n_terms = n_terms
        self._unknown: dict[str, int] = {}  # words that are no terms: their columns behind these
        # By position of the label:
        self.first_name = Column(np.full(n, OWN, np.int64))  # its first row in _names
        self.n_names = Column(np.zeros(n, np.int64))
        self._names = GrowingRows(n_terms)
        self._examples = GrowingRows(n_terms)
        self._example_owner = Column(np.empty(0, np.int64))
        self._example_texts: list[str] = []

    def add_label(self) -> None:
        """Make room for a further label, which has no names yet."""
        self.first_name.append(OWN)
        self.n_names.append(0)

    def set_names(self, positions: Sequence[int], computed: Computed) -> None:
        """Replace the names of these labels by what was computed for them, in this order."""
        first, counts = len(self._names), count(computed.owner, len(positions)).tolist()
        for position, n in zip(positions, counts, strict=True):
            self.first_name[position], self.n_names[position] = first, n
            first += n
        self._names.append(self._in_columns(computed.names, computed.terms))

    def n_examples(self) -> int:
        """How many examples there are; one of several labels counts for each."""
        return len(self._examples)

    def add_examples(self, computed: Computed, texts: Sequence[Sequence[str]], first: int) -> None:
        """Add the examples of labels, the first of which has the position ``first``."""
        if not len(computed.carried):
            return
        example, label = computed.carried.T
        rows = self._in_columns(computed.examples, computed.terms)
        arrays = rows.data, rows.indices, rows.indptr
        of_document = csr_array(arrays, shape=(len(rows), self._examples.width))
        self._examples.append(Rows.of(csr_array(of_document[example])))
        self._example_owner.extend(first + label)
        documents = list(dict.fromkeys(text for group in texts for text in group))
        self._example_texts += [documents[e] for e in example]

    def cut_examples(self, n: int) -> None:
        """Forget all examples but the first n."""
        self._examples.cut(n)
        self._example_owner.cut(n)
        del self._example_texts[n:]

    def _in_columns(self, rows: Rows, terms: Sequence[str]) -> Rows:
        """Rows over the run's terms and those of an edit, over the columns used here."""
        if not terms:
            return rows
        for term in terms:
            if term not in self._unknown:
                self._unknown[term] = len(self._unknown)
                self._names.widen(1)
                self._examples.widen(1)
        place = np.array([self._n_terms + self._unknown[x] for x in terms], np.int32)
        if rows.indices.max(initial=0) >= self._n_terms + len(place):
            raise RunError("A label's terms are not those of the run. Fit the run again.")
        indices, new = rows.indices.copy(), rows.indices >= self._n_terms
        indices[new] = place[indices[new] - self._n_terms]
        return Rows(rows.data, indices, rows.indptr)

    def name_match(self, labels: Sequence[Label], gone: NDArray[np.bool_]) -> NameMatch:
        """The name matching of all labels; ``gone`` says which of them are tombstones."""
        base, first_name = self._base.names, self.first_name.numpy()
        changed = first_name != OWN
        own = base.names, base.owner
        touched = (changed | gone)[: len(self._base.labels)]
        if touched.any():
            kept = ~touched[base.owner]
            own = base.names[kept], base.owner[kept]
        new = np.flatnonzero(changed & ~gone)
        counts = self.n_names.view()[new]
        rows, _ = spans(first_name[new], counts)
        changed_names = csr_array(self._names.take(rows)[:, : self._n_terms])
        names = csr_array(vstack([own[0], changed_names], format="csr"))
        owners = np.concatenate([own[1], np.repeat(new, counts)]).astype(np.int64)
        order = None
        if base.order is not None:
            there = base.order.take(np.flatnonzero(kept)) if touched.any() else base.order
            order = Sequences.concatenate([there, self._names_in_order(labels, new, counts)])
        if len(new) and new[0] < len(self._base.labels):
            by_owner = np.argsort(owners, kind="stable")
            names, owners = csr_array(names[by_owner]), owners[by_owner]
            order = None if order is None else order.take(by_owner)
        return NameMatch(names, owners, base.weight, order)

    def _names_in_order(
        self, labels: Sequence[Label], positions: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> Sequences:
        """The words, in order, of so many names of each of these labels.

        Descriptions have none, nor do added labels, whose names are evidence of another kind.
        """
        n_base = int(np.searchsorted(positions, len(self._base.labels)))
        names: list[str] = []
        pairs = zip(positions[:n_base].tolist(), counts[:n_base].tolist(), strict=True)
        for position, n in pairs:
            label = labels[position]
            names += [*(label.name, *label.alt_names)[:n], *[""] * (n - 1 - len(label.alt_names))]
        read = self._base.features.words_in_order(names)
        return Sequences.concatenate([read, Sequences.none(int(counts[n_base:].sum()))])

    def evidence(self, labels: NDArray[np.int64], gone: NDArray[np.bool_]) -> WordEvidence:
        """Names and examples of these added labels; ``gone`` says which labels are tombstones."""
        counts = self.n_names.view()[labels]
        name_rows, _ = spans(self.first_name.view()[labels], counts)
        owner = self._example_owner.numpy()
        rows = np.flatnonzero(~gone[owner]) if len(owner) else owner
        matrices = self._names.take(name_rows), self._examples.take(rows)
        # The words of labels that are gone are left out, and the order of the edits is forgotten.
        unknown = self._unknown_in(*matrices)
        n_columns = self._n_terms + len(unknown)
        place = np.arange(self._names.width, dtype=np.int32)
        place[list(unknown.values())] = np.arange(self._n_terms, n_columns)
        names, examples = (moved(matrix, place, n_columns) for matrix in matrices)
        return WordEvidence(
            list(unknown),
            names,
            np.repeat(np.arange(len(labels)), counts),
            examples,
            np.searchsorted(labels, owner[rows]),
            rows,
            [self._example_texts[i] for i in rows],
        )

    def _unknown_in(self, *matrices: csr_array) -> dict[str, int]:
        """The words in these matrices that are no terms of the run, sorted, and their columns."""
        seen = np.zeros(self._n_terms + len(self._unknown), np.bool_)
        for matrix in matrices:
            seen[matrix.indices] = True
        words = list(self._unknown)  # in the order of their columns
        found = np.flatnonzero(seen[self._n_terms :]).tolist()
        return {words[i]: self._n_terms + i for i in sorted(found, key=words.__getitem__)}
