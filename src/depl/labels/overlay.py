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
from scipy.sparse import csr_array

from depl.core.corpus import Label, LabelSet
from depl.fusion.newcomers import NewcomerModel
from depl.labels.computed import Computed
from depl.labels.growing import Column, GrowingRows, Rows, count
from depl.labels.overlaid_retriever import OWN, OverlaidRetriever
from depl.labels.overlaid_words import OverlaidWords
from depl.run.newcomers import Newcomers
from depl.run.state import State
from depl.sparse.evidence import Evidence, rarity, unit_rows
from depl.sparse.likely import Likely
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
        self._shares = Column(np.zeros(n, np.float32))  # likewise, by ``sparse.likely``
        self._words = OverlaidWords(base)
        self._retriever = OverlaidRetriever(base.retriever, n)
        # A row for each added label:
        self._weights = GrowingRows(n_terms)
        self._profiles = GrowingRows(n)  # what the SVM sees in its examples
        self._likely = GrowingRows(n_terms)  # what sets its likely documents apart
        self._weighted: tuple[int, OneVsAllSVM] = 0, base.svm  # with so many of the added labels

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
        n_examples = self._words.n_examples()
        self._append(labels)
        self.position |= {label.id: first + i for i, label in enumerate(labels)}
        self._counts.extend(count(computed.carried[:, 1], len(labels)))
        self._bias.extend(computed.bias)
        self._bounds.extend(computed.bounds)
        self._shares.extend(computed.shares)
        self._weights.append(computed.weights)
        self._set(range(first, len(self.labels)), computed)
        vocabulary = self.base.features.terms_
        for i in range(len(labels)):
            if written[i]:
                self.written.add(first + i)
            terms, weights = computed.keyword_terms[i], computed.keyword_weights[i]
            pairs = zip(terms.tolist(), weights.tolist(), strict=True)
            self.keywords[first + i] = [(vocabulary[t], w) for t, w in pairs if t >= 0]
        self._retriever.add_documents(computed, first)
        self._words.add_examples(computed, examples, first)
        self._profiles.append(computed.profiles)
        self._likely.append(computed.likely)

        def revert() -> None:
            self._words.cut_examples(n_examples)
            self._retriever.cut(before)
            self._bury(range(first, first + len(labels)), entry)

        return revert

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
            self._shares.append(0.0)
        for rows in self._of_added():
            rows.append(Rows.empty(len(labels)))

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
        for rows in self._of_added():
            rows.cut(n_before)
            rows.append(Rows.empty(n_behind))
        if self._weighted[0] > n_before:
            self._weighted = 0, self.base.svm

    def _of_added(self) -> tuple[GrowingRows, ...]:
        """What has a row for each added label."""
        return self._weights, self._profiles, self._likely

    def _append(self, labels: Sequence[Label]) -> None:
        for label in labels:
            self.labels.append(label)
            self.descriptions.append(label.name)
            self.keywords.append([])
            self._gone.append(False)
            self._words.add_label()
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
        columns = (self._words.first_name, self._words.n_names, self._retriever.row)
        values = [column[position] for column in columns]

        def restore() -> None:
            self.labels[position], self.descriptions[position] = label, text
            for column, value in zip(columns, values, strict=True):
                column[position] = value

        return restore

    def _set(self, positions: Sequence[int], computed: Computed) -> None:
        """Take what was computed for these labels, in this order."""
        for position, description in zip(positions, computed.descriptions, strict=True):
            self.descriptions[position] = description
        self._words.set_names(positions, computed)
        self._retriever.set_vectors(positions, computed)

    # The run with the edits in it

    def state(self) -> State:
        """The run with all edits applied."""
        gone = self._gone.numpy().astype(bool)
        return replace(
            self.base,
            labels=LabelSet(self.labels),
            train_counts=self._counts.numpy(),
            facts=self._facts(),
            svm=self._svm(gone),
            names=self._words.name_match(self.labels, gone),
            retriever=self._retriever.whole(gone),
            newcomers=self._newcomers(gone),
            descriptions=list(self.descriptions),
            keywords=list(self.keywords),
            removed=dict(self.removed),
        )

    def _svm(self, gone: NDArray[np.bool_]) -> OneVsAllSVM:
        """The SVM with the added labels; tombstones may keep weights, but are never ranked."""
        done, svm = self._weighted
        if self._weights.filled_from(done):
            done = len(self._weights)
            svm = self.base.svm.with_labels(self._weights.take(np.arange(done)))
            self._weighted = done, svm
        silent = csr_array((len(self._weights) - done, svm.weights_.shape[1]), dtype=np.float32)
        svm = svm.with_labels(silent)
        bias = self._bias.numpy()
        bias[gone] = -np.inf
        svm.bias_ = bias
        return svm

    def _facts(self) -> NDArray[np.float32] | None:
        """What is known of the labels; nothing of those that were added."""
        facts = self.base.facts
        if facts is None:
            return None
        unknown = np.full((len(self.labels) - len(facts), facts.shape[1]), np.nan, np.float32)
        return np.concatenate([facts, unknown])

    def _newcomers(self, gone: NDArray[np.bool_]) -> Newcomers | None:
        """The added labels and the evidence for them."""
        n = len(self.base.labels)
        there = n + np.flatnonzero(~gone[n:])
        model = self._model() if len(there) else None
        if model is None:
            return None
        words = self._words.evidence(there, gone)
        weights = unit_rows(self._weights.take(there - n))
        arrays = weights.data, weights.indices, weights.indptr
        written = np.isin(there, list(self.written))
        return Newcomers(
            positions=there,
            features=self.base.features.with_terms(words.unknown, self.base.n_train),
            evidence=Evidence(
                names=words.names,
                name_owner=words.name_owner,
                examples=words.examples,
                example_owner=words.example_owner,
                weights=csr_array(arrays, shape=(len(there), words.names.shape[1])),
                profiles=self._profiles.take(there - n),
                bounds=self._bounds.view()[there],
            ),
            likely=Likely(self._shares.view()[there], self._likely.take(there - n)),
            model=model,
            examples=words.texts,
            rarities=rarity(self.base.train_counts, self.base.n_train),
            read_titles=self.base.titles,
            meanings=self._retriever.meanings(there, written, words.rows, words.example_owner),
        )


def _tombstone(label: Label, entry: int) -> Label:
    """The label under an id of its own, so that its former id can be used again."""
    return replace(label, id=f"{label.id} (removed, entry {entry})", broader=())
