"""A run with edits of its labels applied; the run's own arrays are never changed.

Labels are appended and never moved: a position always means the same label. A removed label, or one
whose addition was undone, keeps its position as a tombstone that is never ranked.

What an edit costs does not depend on how many there were: what belongs to labels is in arrays that
grow at their end, each label says where its own begins, and ``state`` gathers all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Label, LabelSet
from depl.core.errors import RunError
from depl.fusion.newcomers import NewcomerModel
from depl.labels.computed import Computed
from depl.labels.growing import Column, GrowingRows, Rows, count, moved, spans
from depl.labels.overlaid_retriever import OWN, OverlaidRetriever
from depl.run.newcomers import Newcomers
from depl.run.state import State
from depl.sparse.evidence import Evidence, rarity, unit_rows
from depl.sparse.names import NameMatch
from depl.sparse.sequences import Sequences
from depl.sparse.svm import OneVsAllSVM

Revert = Callable[[], None]  # takes back the last change that is still in force


class Overlay:
    """The edits so far, label by label.

    Every change returns a function that takes it back. They must be called in reverse order.

    Parameters
    ----------
    base : State
        The run as it was fitted.
    model : function
        Gives what makes added labels probable; None where a single part ranks.
    """

    def __init__(self, base: State, model: Callable[[], NewcomerModel | None]) -> None:
        self.base = base
        self._model = model
        self.terms = base.features.terms_
        self.labels = list(base.labels)
        self.position = {label.id: i for i, label in enumerate(self.labels)}
        self.descriptions = list(base.descriptions)
        self.keywords = list(base.keywords)
        self.written: set[int] = set()  # labels with a description written by a person
        self.removed: dict[int, str] = {}
        n, n_terms = len(self.labels), base.svm.weights_.shape[1]
        # By position of the label:
        self._gone = Column(np.zeros(n, np.int8))
        self._counts = Column(np.asarray(base.train_counts, np.int64))
        self._bias = Column(np.asarray(base.svm.bias_, np.float32))
        self._bounds = Column(np.ones(n, np.float32))  # of added labels, by ``sparse.breadth``
        self._first_name = Column(np.full(n, OWN, np.int64))  # its first row in _names
        self._n_names = Column(np.zeros(n, np.int64))
        # What these lead to:
        self._names = GrowingRows(n_terms)
        self._weights = GrowingRows(n_terms)  # of added labels
        self._retriever = OverlaidRetriever(base.retriever, n)
        self._weighted: tuple[int, OneVsAllSVM] = 0, base.svm  # with so many of the added labels
        # The evidence for added labels:
        self._unknown: dict[str, int] = {}  # words that the run does not know
        self._examples = GrowingRows(n_terms)
        self._example_owner = Column(np.empty(0, np.int64))
        self._example_texts: list[str] = []
        self._profiles = GrowingRows(n)

    # The edits

    def add(
        self,
        labels: Sequence[Label],
        written: Sequence[bool],
        computed: Computed,
        examples: Sequence[Sequence[str]],
        entry: int,
    ) -> Revert:
        """Append labels with the texts of their examples; ``entry`` is the number of the edit."""
        first, before = len(self.labels), self._retriever.size()
        n_examples = len(self._examples)
        self._append(labels)
        self.position |= {label.id: first + i for i, label in enumerate(labels)}
        self._counts.extend(count(computed.carried[:, 1], len(labels)))
        self._bias.extend(computed.bias)
        self._bounds.extend(computed.bounds)
        self._weights.append(computed.weights)
        self._set(range(first, len(self.labels)), computed)
        for i in range(len(labels)):
            if written[i]:
                self.written.add(first + i)
            terms, weights = computed.keyword_terms[i], computed.keyword_weights[i]
            pairs = zip(terms.tolist(), weights.tolist(), strict=True)
            self.keywords[first + i] = [(self.terms[t], w) for t, w in pairs if t >= 0]
        self._retriever.add_documents(computed, first)
        self._add_examples(computed, examples, first)

        def revert() -> None:
            self._cut_examples(n_examples)
            self._retriever.cut(before)
            self._bury(range(first, first + len(labels)), entry)

        return revert

    def _add_examples(self, computed: Computed, texts: Sequence[Sequence[str]], first: int) -> None:
        self._profiles.append(computed.profiles)
        if not len(computed.carried):
            return
        example, label = computed.carried.T
        rows = self._known(computed.examples, computed.terms)
        arrays = rows.data, rows.indices, rows.indptr
        of_document = csr_array(arrays, shape=(len(rows), self._examples.width))
        self._examples.append(Rows.of(csr_array(of_document[example])))
        self._example_owner.extend(first + label)
        documents = list(dict.fromkeys(text for group in texts for text in group))
        self._example_texts += [documents[e] for e in example]

    def _cut_examples(self, n: int) -> None:
        self._examples.cut(n)
        self._example_owner.cut(n)
        del self._example_texts[n:]

    def _known(self, rows: Rows, terms: Sequence[str]) -> Rows:
        """Rows over the terms of the run and of an edit, over all that are known now."""
        if not terms:
            return rows
        n_terms = len(self.terms)
        for term in terms:
            if term not in self._unknown:
                self._unknown[term] = len(self._unknown)
                self._names.widen(1)
                self._examples.widen(1)
        place = np.array([n_terms + self._unknown[x] for x in terms], np.int32)
        if rows.indices.max(initial=0) >= n_terms + len(place):
            raise RunError("A label's terms are not those of the run. Fit the run again.")
        indices, new = rows.indices.copy(), rows.indices >= n_terms
        indices[new] = place[indices[new] - n_terms]
        return Rows(rows.data, indices, rows.indptr)

    def add_tombstones(self, labels: Sequence[Label], entry: int) -> None:
        """Fill the positions of labels whose addition was undone."""
        first = len(self.labels)
        self._append([_tombstone(label, entry) for label in labels])
        for i, label in enumerate(labels, start=first):
            self.removed[i] = label.id
            self._gone[i] = True
            self._counts.append(0)
            self._bias.append(-np.inf)
            self._bounds.append(1.0)
        self._weights.append(Rows.empty(len(labels)))
        self._profiles.append(Rows.empty(len(labels)))

    def _bury(self, positions: range, entry: int) -> None:
        """Make tombstones of added labels; those behind them are tombstones already."""
        for i in positions:
            label = self.labels[i]
            del self.position[label.id]
            self.removed[i] = label.id
            self.labels[i] = _tombstone(label, entry)
            self.descriptions[i], self.keywords[i] = self.labels[i].name, []
            self._gone[i], self._counts[i], self._bias[i] = True, 0, -np.inf
            self.written.discard(i)
        n_before = positions.start - len(self.base.labels)
        n_behind = len(self._weights) - n_before
        self._weights.cut(n_before)
        self._weights.append(Rows.empty(n_behind))
        self._profiles.cut(n_before)
        self._profiles.append(Rows.empty(n_behind))
        if self._weighted[0] > n_before:
            self._weighted = 0, self.base.svm

    def _append(self, labels: Sequence[Label]) -> None:
        for label in labels:
            self.labels.append(label)
            self.descriptions.append(label.name)
            self.keywords.append([])
            self._gone.append(False)
            self._first_name.append(OWN)
            self._n_names.append(0)
            self._retriever.row.append(OWN)

    def describe(self, position: int, computed: Computed) -> Revert:
        """Give a label a description that a person wrote."""
        was_written, restore = position in self.written, self._before(position)
        self.written.add(position)
        self._set([position], computed)

        def revert() -> None:
            restore()
            if not was_written:
                self.written.discard(position)

        return revert

    def rename(self, position: int, label: Label, computed: Computed) -> Revert:
        """Give a label other names, and the description that goes with them."""
        restore = self._before(position)
        self.labels[position] = label
        self._set([position], computed)
        return restore

    def remove(self, position: int, entry: int) -> Revert:
        """Make a label a tombstone; its id is free for another."""
        label = self.labels[position]
        del self.position[label.id]
        self.removed[position] = label.id
        self._gone[position] = True
        self.labels[position] = _tombstone(label, entry)

        def revert() -> None:
            self.position[label.id] = position
            del self.removed[position]
            self._gone[position] = False
            self.labels[position] = label

        return revert

    def _before(self, position: int) -> Revert:
        """Puts back the label, its description and its rows as they are now."""
        label, text = self.labels[position], self.descriptions[position]
        columns = (self._first_name, self._n_names, self._retriever.row)
        values = [column[position] for column in columns]

        def restore() -> None:
            self.labels[position], self.descriptions[position] = label, text
            for column, value in zip(columns, values, strict=True):
                column[position] = value

        return restore

    def _set(self, positions: Sequence[int], computed: Computed) -> None:
        """Take what was computed for these labels, in this order."""
        name, counts = len(self._names), count(computed.owner, len(positions)).tolist()
        for i, position in enumerate(positions):
            self.descriptions[position] = computed.descriptions[i]
            self._first_name[position], self._n_names[position] = name, counts[i]
            name += counts[i]
        self._names.append(self._known(computed.names, computed.terms))
        self._retriever.set_vectors(positions, computed)

    # The run with the edits in it

    def _is_gone(self) -> NDArray[np.bool_]:
        return self._gone.numpy().astype(bool)

    def state(self) -> State:
        """The run with all edits applied."""
        return replace(
            self.base,
            labels=LabelSet(self.labels),
            train_counts=self._counts.numpy(),
            facts=self._facts(),
            svm=self._svm(),
            names=self._name_match(),
            retriever=self._retriever.whole(self._is_gone()),
            newcomers=self._newcomers(),
            descriptions=list(self.descriptions),
            keywords=list(self.keywords),
            removed=dict(self.removed),
        )

    def _svm(self) -> OneVsAllSVM:
        """The SVM with the added labels; those that are gone keep weights, but are never ranked."""
        done, svm = self._weighted
        if self._weights.filled_from(done):
            done = len(self._weights)
            svm = self.base.svm.with_labels(self._weights.take(np.arange(done)))
            self._weighted = done, svm
        silent = csr_array((len(self._weights) - done, svm.weights_.shape[1]), dtype=np.float32)
        svm = svm.with_labels(silent)
        bias = self._bias.numpy()
        bias[self._is_gone()] = -np.inf
        svm.bias_ = bias
        return svm

    def _name_match(self) -> NameMatch:
        base, gone, first_name = self.base.names, self._is_gone(), self._first_name.numpy()
        changed = first_name != OWN
        own = base.names, base.owner
        touched = (changed | gone)[: len(self.base.labels)]
        if touched.any():
            kept = ~touched[base.owner]
            own = base.names[kept], base.owner[kept]
        new = np.flatnonzero(changed & ~gone)
        counts = self._n_names.view()[new]
        rows, _ = spans(first_name[new], counts)
        changed_names = csr_array(self._names.take(rows)[:, : len(self.terms)])
        names = csr_array(vstack([own[0], changed_names], format="csr"))
        owners = np.concatenate([own[1], np.repeat(new, counts)]).astype(np.int64)
        words = None
        if base.order is not None:
            there = base.order.take(np.flatnonzero(kept)) if touched.any() else base.order
            words = Sequences.concatenate([there, self._words_of_names(new, counts)])
        if len(new) and new[0] < len(self.base.labels):
            order = np.argsort(owners, kind="stable")
            names, owners = csr_array(names[order]), owners[order]
            words = None if words is None else words.take(order)
        return NameMatch(names, owners, base.weight, words)

    def _words_of_names(self, positions: NDArray[np.int64], counts: NDArray[np.int64]) -> Sequences:
        """The words, in order, of so many names of each of these labels.

        None of added labels, whose names are evidence of another kind, nor of descriptions.
        """
        own = int(np.searchsorted(positions, len(self.base.labels)))
        names: list[str] = []
        for position, n in zip(positions[:own].tolist(), counts[:own].tolist(), strict=True):
            label = self.labels[position]
            names += [*(label.name, *label.alt_names)[:n], *[""] * (n - 1 - len(label.alt_names))]
        read = self.base.features.words_in_order(names)
        return Sequences.concatenate([read, Sequences.none(int(counts[own:].sum()))])

    def _facts(self) -> NDArray[np.float32] | None:
        """What is known of the labels; nothing of those that were added."""
        facts = self.base.facts
        if facts is None:
            return None
        unknown = np.full((len(self.labels) - len(facts), facts.shape[1]), np.nan, np.float32)
        return np.concatenate([facts, unknown])

    def _newcomers(self) -> Newcomers | None:
        """The added labels and the evidence for them."""
        n, gone = len(self.base.labels), self._is_gone()
        there = n + np.flatnonzero(~gone[n:])
        model = self._model() if len(there) else None
        if model is None:
            return None
        counts = self._n_names.view()[there]
        names, _ = spans(self._first_name.view()[there], counts)
        owner = self._example_owner.numpy()
        examples = np.flatnonzero(~gone[owner]) if len(owner) else owner
        matrices = self._names.take(names), self._examples.take(examples)
        # Without the words of labels that are gone, nor in the order of the edits.
        unknown = self._words_in(*matrices)
        n_columns = len(self.terms) + len(unknown)
        place = np.arange(self._names.width, dtype=np.int32)
        place[list(unknown.values())] = np.arange(len(self.terms), n_columns)
        of_names, of_examples = (moved(matrix, place, n_columns) for matrix in matrices)
        weights = unit_rows(self._weights.take(there - n))
        arrays = weights.data, weights.indices, weights.indptr
        example_owner = np.searchsorted(there, owner[examples])
        written = np.isin(there, list(self.written))
        return Newcomers(
            positions=there,
            features=self.base.features.with_terms(list(unknown), self.base.n_train),
            evidence=Evidence(
                names=of_names,
                name_owner=np.repeat(np.arange(len(there)), counts),
                examples=of_examples,
                example_owner=example_owner,
                weights=csr_array(arrays, shape=(len(there), n_columns)),
                profiles=self._profiles.take(there - n),
                bounds=self._bounds.view()[there],
            ),
            model=model,
            examples=[self._example_texts[i] for i in examples],
            rarities=rarity(self.base.train_counts, self.base.n_train),
            read_titles=self.base.titles,
            meanings=self._retriever.meanings(there, written, examples, example_owner),
        )

    def _words_in(self, *matrices: csr_array) -> dict[str, int]:
        """The words in these matrices that the run does not know, sorted, and their columns."""
        n_terms = len(self.terms)
        seen = np.zeros(n_terms + len(self._unknown), np.bool_)
        for matrix in matrices:
            seen[matrix.indices] = True
        words = list(self._unknown)  # in the order of their columns
        found = np.flatnonzero(seen[n_terms:]).tolist()
        return {words[i]: n_terms + i for i in sorted(found, key=words.__getitem__)}


def _tombstone(label: Label, entry: int) -> Label:
    """The label under an id of its own, so that its former id can be used again."""
    return replace(label, id=f"{label.id} (removed, entry {entry})", broader=())
