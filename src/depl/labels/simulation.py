"""Labels of a fitted run play newcomers, so that it is known what little evidence is worth.

Some labels are taken as if they had just been added: by name, or with one, three or ten of their
training documents as examples. The documents that the fusion is fitted on, seen by an SVM that was
fitted without them, then say what the evidence meant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.fusion.newcomers import STEPS, NewcomerModel
from depl.labels.fewshot import weigh
from depl.run.folder import Run
from depl.sparse.evidence import (
    ALIKE,
    COLUMNS,
    SEEN,
    Evidence,
    mean_profiles,
    profiles,
    unit_rows,
)
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM

_LABELS = 200  # that play newcomers, for each number of examples
_DOCUMENTS = 3_000  # that they are looked for in
_OFTEN = 5  # a label is added because it is needed more often than that
_BLOCK = 500  # documents whose evidence is in memory at a time
_NEGATIVES = 20  # pairs that do not belong together, for one that does


def simulate_newcomers(
    run: Run, held_out: Ranking | None = None, *, seed: int = 0
) -> NewcomerModel:
    """Let labels of a run play newcomers.

    Parameters
    ----------
    run : Run
        With an SVM, the SVMs of its held-out documents, and names.
    held_out : Ranking, optional
        How those SVMs rank the held-out documents, where it is known already.
    seed : int
        For the choice of labels, examples and documents.
    """
    rng = np.random.default_rng(seed)
    X, Y, names, svm = run.train_vectors(), run.Y, run.names(), run.svm()
    documents = run.slice.held_out
    some = np.sort(rng.permutation(len(documents))[:_DOCUMENTS])
    documents = documents[some]
    if held_out is None:
        ranked = run.rank_held_out(X[documents], run.slice.fold[documents], SEEN)
    else:
        ranked = held_out.take(some)
    seen = profiles(ranked, Y.shape[1])
    simulation = _Simulation(X, Y, names, svm, documents, seen, rng)
    return NewcomerModel.fit([simulation.step(n) for n in STEPS])


class _Simulation:
    """The labels and documents of one run, and what the SVM sees in the documents."""

    def __init__(
        self,
        X: csr_array,
        Y: csr_array,
        names: NameMatch,
        svm: OneVsAllSVM,
        documents: NDArray[np.int64],
        seen: csr_array,
        rng: np.random.Generator,
    ) -> None:
        self._X, self._Y, self._names, self._svm = X, Y, names, svm
        self._documents, self._seen, self._rng = documents, seen, rng
        self._by_label = Y.tocsc()

    def step(self, n: int) -> tuple[NDArray[np.float32], NDArray[np.bool_], float]:
        """Pairs of document and label with n examples, as ``NewcomerModel.fit`` takes them."""
        sizes = np.diff(self._by_label.indptr)
        usable = np.flatnonzero(sizes > max(n, _OFTEN))
        labels = np.sort(self._rng.permutation(usable)[:_LABELS])
        examples = [
            np.sort(self._rng.permutation(self._by_label[:, [j]].indices)[:n]) for j in labels
        ]
        evidence = self._evidence(labels, examples)
        carried = csr_array(self._Y[self._documents][:, labels])
        # As many of the others as are wanted, whatever evidence they have.
        share = min(1.0, max(1, _NEGATIVES * carried.nnz) / max(1, np.prod(carried.shape)))
        found, truth = [], []
        for first in range(0, len(self._documents), _BLOCK):
            rows = slice(first, first + _BLOCK)
            right = carried[rows].toarray() > 0
            wanted = right | (self._rng.random(right.shape) < share)
            for j, own in enumerate(examples):
                wanted[np.isin(self._documents[rows], own), j] = False
            found.append(self._of(evidence, labels, rows)[wanted])
            truth.append(right[wanted])
        none = np.empty((0, len(COLUMNS)), np.float32)
        return np.concatenate([none, *found]), np.concatenate([np.empty(0, bool), *truth]), share

    def _evidence(self, labels: NDArray[np.int64], examples: list[NDArray[np.int64]]) -> Evidence:
        own = np.isin(self._names.owner, labels)
        owner = np.repeat(np.arange(len(labels)), [len(x) for x in examples])
        rows = np.concatenate([np.empty(0, np.int64), *examples])
        groups = np.split(np.arange(len(rows)), np.cumsum([len(x) for x in examples])[:-1])
        X = csr_array(self._X[rows])
        together = mean_profiles(self._svm.rank(X, SEEN), owner, (len(labels), self._Y.shape[1]))
        # Nobody knows the label itself: it is new.
        of_label = labels[np.repeat(np.arange(len(labels)), np.diff(together.indptr))]
        together.data[together.indices == of_label] = 0.0
        return Evidence(
            names=csr_array(self._names.names[own]),
            name_owner=np.searchsorted(labels, self._names.owner[own]),
            examples=X,
            example_owner=owner,
            weights=unit_rows(weigh(self._X, X, groups, cull=0.0)[0]),
            profiles=unit_rows(together),
        )

    def _of(
        self, evidence: Evidence, labels: NDArray[np.int64], rows: slice
    ) -> NDArray[np.float32]:
        """The evidence in some documents, as if the SVM did not know the labels."""
        seen = csr_array(self._seen[rows])
        found = evidence.of(csr_array(self._X[self._documents[rows]]), seen)
        itself = seen[:, labels].toarray()
        found[..., ALIKE] /= np.sqrt(np.maximum(1.0 - itself**2, 1e-6))
        return np.clip(found, 0.0, 1.0)
