"""Labels of a fitted run play newcomers, so that it is known what little evidence is worth.

Some labels are taken as if they had just been added: by name, or with one, three or ten of their
training documents as examples. The documents that the fusion is fitted on, seen by an SVM and an
encoder that were fitted without them, then say what the evidence meant.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.fusion.newcomers import LEAST, STEPS, NewcomerModel, Simulated
from depl.labels.background import BLOCK, Background, rarities
from depl.labels.moments import Moments, weigh
from depl.neural.meanings import Meanings
from depl.neural.tokens import Texts, some_of
from depl.run.folder import Run
from depl.sparse.breadth import bounds, breadth
from depl.sparse.evidence import (
    ALIKE,
    SEEN,
    Evidence,
    mean_profiles,
    members_of,
    unit_rows,
)
from depl.sparse.likely import COLUMNS as LIKELY
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM

if TYPE_CHECKING:
    from depl.neural.encoder import Side

_LABELS = 200  # that play newcomers, for each number of examples
_ROUNDS = 2  # with other labels and examples: with one, R@5 changed by two points with the draw
_OFTEN = 5  # a label is added because it is needed more often than that
_HALVES = 2  # of the documents: those likely in one are compared with the other
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
    encoder = _Encoder(run) if run.has("index") else None
    background = Background.of(
        run, rng, held_out=held_out, encoded=None if encoder is None else encoder.documents
    )
    X, Y, idf = run.train_vectors(), run.Y, run.features().idf_
    play = NewcomerPlay(X, Y, run.names(), run.svm(), idf, background, encoder, rng)
    rounds = [play.rounds(n) for n in STEPS]
    first = NewcomerModel.fit([Simulated.together([x.pairs for x in some]) for some in rounds])
    second = [Simulated.together([play.second(x, first) for x in some]) for some in rounds]
    return NewcomerModel.fit(second, first)


class _Encoder:
    """The encoder that was trained without the held-out documents."""

    def __init__(self, run: Run) -> None:
        from depl.neural import encoder_files
        from depl.neural.distributed import Processes

        encoder = encoder_files.load(run.encoder_folder("encoder", "held_out"))
        self._encoder = encoder.to(Processes.launched(run.config().device).device)
        self._names, self._documents = run.texts("label_texts", "names"), run.texts("documents")

    def names(self, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some labels' names, of length 1."""
        return self._encoded(self._names, labels, "label")

    def documents(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some training documents, of length 1."""
        return self._encoded(self._documents, rows, "document")

    def _encoded(self, texts: Texts, rows: NDArray[np.int64], side: Side) -> NDArray[np.float32]:
        from depl.neural.encoder import encode
        from depl.neural.retriever import unit_vectors

        if not len(rows):
            return np.empty((0, self._encoder.document_pooler.out_features), np.float32)
        return unit_vectors(encode(self._encoder, some_of(texts, rows), side))


class Round(NamedTuple):
    """Labels that play newcomers with some number of examples, and documents they are looked for.

    Parameters
    ----------
    labels : array of shape (n,)
        Which labels play.
    evidence : Evidence
        Their names and examples.
    meanings : Meanings or None
        Their vectors, where there is an encoder.
    broad : array of shape (n, len(breadth.COLUMNS))
        How broad they are.
    documents, label : arrays of shape (n_pairs,)
        The pairs: places among the documents of the background, and among these labels.
    pairs : Simulated
        What is known of them, without likely documents.
    """

    labels: NDArray[np.int64]
    evidence: Evidence
    meanings: Meanings | None
    broad: NDArray[np.float32]
    documents: NDArray[np.int64]
    label: NDArray[np.int64]
    pairs: Simulated


class NewcomerPlay:
    """The labels of one run, and the documents that they are looked for in.

    Labels are drawn, and examples of each, in ``_ROUNDS`` rounds.
    """

    def __init__(
        self,
        X: csr_array,
        Y: csr_array,
        names: NameMatch,
        svm: OneVsAllSVM,
        idf: NDArray[np.float32],
        background: Background,
        encoder: _Encoder | None,
        rng: np.random.Generator,
    ) -> None:
        self._encoder, self._background = encoder, background
        self._X, self._Y, self._names, self._svm, self._idf = X, Y, names, svm, idf
        self._rng, self._moments = rng, Moments.of(X)
        self._by_label = Y.tocsc()
        self._shares, self._rarities = np.diff(self._by_label.indptr) / Y.shape[0], rarities(Y)
        self._turns = [rng.permutation(Y.shape[1]) for _ in range(_ROUNDS)]
        self._draws = rng.integers(2**32, size=(_ROUNDS, Y.shape[1]))

    def rounds(self, n: int) -> list[Round]:
        """Labels with n examples, in each of the rounds."""
        return [self._round(n, i) for i in range(_ROUNDS)]

    def _round(self, n: int, number: int) -> Round:
        labels, examples = self._play(n, number)
        evidence, meanings = self._evidence(labels, examples), self._meanings(labels, examples)
        documents = self._background.documents
        carried = csr_array(self._Y[documents][:, labels])
        often, broad = self.missed(labels, n), breadth(evidence, self._idf)
        # As many of the others as are wanted, whatever evidence they have.
        share = min(1.0, max(1, _NEGATIVES * carried.nnz) / max(1, np.prod(carried.shape)))
        found, truth, times, places = [], [], [], []
        for first in range(0, len(documents), BLOCK):
            rows = slice(first, first + BLOCK)
            right = carried[rows].toarray() > 0
            wanted = right | (self._rng.random(right.shape) < share)
            for j, own in enumerate(examples):
                wanted[np.isin(documents[rows], own), j] = False
            found.append(self._known(labels, evidence, meanings, broad, rows)[wanted])
            truth.append(right[wanted])
            times.append(np.where(right, often, 1.0)[wanted])
            places.append(np.argwhere(wanted) + np.array([first, 0]))
        known = np.concatenate(found), np.concatenate(truth), np.concatenate(times)
        pairs, at = Simulated(*known, share), np.concatenate(places)
        return Round(labels, evidence, meanings, broad, at[:, 0], at[:, 1], pairs)

    def second(self, played: Round, first: NewcomerModel) -> Simulated:
        """The pairs of a round with what the documents tell that are likely by a first model.

        A document is compared with the half of them that it is not in, as a new one would be.
        """
        known = partial(self._known, played.labels, played.evidence, played.meanings, played.broad)
        likely = self._background.likely(
            known, played.evidence, first, self._moments, cull=self._svm.cull, parts=_HALVES
        )
        pairs = played.pairs
        found = np.empty((len(played.label), len(LIKELY)), np.float32)
        for half, half_likely in enumerate(likely):
            own = played.documents % _HALVES == half
            for block in np.unique(played.documents[own] // BLOCK).tolist():
                here = own & (played.documents // BLOCK == block)
                X = csr_array(self._background.X[block * BLOCK : (block + 1) * BLOCK])
                at = played.documents[here] - block * BLOCK, played.label[here]
                found[here] = half_likely.of(X)[at]
        return pairs._replace(evidence=np.concatenate([pairs.evidence, found], axis=1))

    def _play(self, n: int, number: int) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        """The labels that play newcomers with n examples, and which documents these are.

        In one round the labels are the same for every number, and more examples are the fewer and
        others: the numbers differ by what examples are worth, not by chance.
        """
        usable = self._usable(n)
        labels = np.sort(usable[np.argsort(self._turns[number][usable])][:_LABELS])
        examples = []
        for j in labels.tolist():
            carriers = self._by_label.indices[slice(*self._by_label.indptr[j : j + 2])]
            order = np.random.default_rng(self._draws[number, j]).permutation(len(carriers))
            examples.append(np.sort(carriers[order[:n]]))
        return labels, examples

    def missed(self, labels: NDArray[np.int64], n: int) -> NDArray[np.float64]:
        """How many documents each one stands for that carries a label and is no example of it.

        The examples carry the label, too, but say nothing here: of six documents five are
        examples, and on new documents the label is as common as six. And in a small run, where
        rarer labels play newcomers, they are as common as those that people add.
        """
        sizes = np.diff(self._by_label.indptr)[labels].astype(np.float64)
        missed: NDArray[np.float64] = np.maximum(sizes, _OFTEN + 1) / (sizes - n)
        return missed

    def _usable(self, n: int) -> NDArray[np.int64]:
        """The labels that can play newcomers with n examples."""
        sizes = np.diff(self._by_label.indptr)
        held_out = np.bincount(self._Y[self._background.documents].indices, minlength=len(sizes))
        often = np.flatnonzero(sizes > max(n, _OFTEN))
        # In a small run few labels are so common: rarer ones know more than nobody.
        enough = held_out[often].sum() >= LEAST
        return often if enough else np.flatnonzero(sizes > n)

    def _evidence(self, labels: NDArray[np.int64], examples: list[NDArray[np.int64]]) -> Evidence:
        own = np.isin(self._names.owner, labels)
        owner = np.repeat(np.arange(len(labels)), [len(x) for x in examples])
        rows = np.concatenate([np.empty(0, np.int64), *examples])
        members = members_of(owner, len(labels))
        X = csr_array(self._X[rows])
        ranking = self._svm.rank(X, SEEN)
        together = mean_profiles(ranking, owner, len(labels), self._rarities)
        # Nobody knows the label itself: it is new.
        of_label = labels[np.repeat(np.arange(len(labels)), np.diff(together.indptr))]
        together.data[together.indices == of_label] = 0.0
        others = np.where(ranking.indices == labels[owner][:, None], -1, ranking.indices)
        return Evidence(
            names=csr_array(self._names.names[own]),
            name_owner=np.searchsorted(labels, self._names.owner[own]),
            examples=X,
            example_owner=owner,
            weights=unit_rows(weigh(self._moments, X, members, cull=self._svm.cull)[0]),
            profiles=unit_rows(together),
            bounds=bounds(replace(ranking, indices=others), owner, len(labels), self._shares),
        )

    def _meanings(
        self, labels: NDArray[np.int64], examples: list[NDArray[np.int64]]
    ) -> Meanings | None:
        if self._encoder is None:
            return None
        owner = np.arange(len(labels))
        return Meanings(
            self._encoder.names(labels),
            owner,
            self._encoder.documents(np.concatenate([np.empty(0, np.int64), *examples])),
            np.repeat(owner, [len(x) for x in examples]),
        )

    def _known(
        self,
        labels: NDArray[np.int64],
        evidence: Evidence,
        meanings: Meanings | None,
        broad: NDArray[np.float32],
        rows: slice,
    ) -> NDArray[np.float32]:
        """What is known of labels in some documents, as if the SVM did not know the labels."""
        seen = csr_array(self._background.seen[rows])
        found = self._background.known(evidence, meanings, broad, rows)
        itself = seen[:, labels].toarray()
        found[..., ALIKE] /= np.sqrt(np.maximum(1.0 - itself**2, 1e-6))
        return np.clip(found, 0.0, 1.0)
