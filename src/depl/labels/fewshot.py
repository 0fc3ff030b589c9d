r"""What a new label needs to be suggested, computed without training, from a few examples.

Nobody has checked which of the training documents deserve the new label, so many of those nearest
to its examples do. An SVM that treats all of them as negatives learns to reject what it should
find: alone, with five examples, it found 4 % of that with its best five labels, on a slice of
EURLEX57K's training documents. Two alternatives were compared there, with name matching
and fusion on top (recall@5 and macro-F1@5 of about 170 labels held out of training, and P@5 of all
labels, percent):

============================  ================  ================  ================
\                             1 example         5 examples        20 examples
============================  ================  ================  ================
SVM without the nearest 5 %   10.1  16.6  67.8  41.3  36.1  68.3  62.1  43.3  66.7
means, length 2               15.3  21.5  67.8  35.9  36.2  68.5  42.6  44.4  68.3
means, length 2.25            17.5  22.5  67.8  40.0  36.2  68.3  47.7  44.0  67.9
means, length 2.5             19.2  22.4  67.7  44.7  36.5  68.1  52.5  43.4  67.5
============================  ================  ================  ================

"Means" is the difference between the mean of the examples and that of all documents, as below. It
finds as much, affects other labels less, and takes no time. With twenty examples or more, fitting
the run again is worthwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Label, LabelSet
from depl.labels.computed import Computed
from depl.labels.growing import Rows
from depl.neural.tokens import Tokens, token_counter, tokenize
from depl.run.folder import Run
from depl.run.state import State
from depl.sparse.breadth import bounds
from depl.sparse.evidence import SEEN, mean_profiles, rarity
from depl.sparse.keywords import count_words, describe, has_letter, top_keywords
from depl.sparse.names import names_and_owners

_LENGTH, _BIAS = 2.25, -1.0  # scores in the range of the SVM's: -1 for no match, 1 for an example
_NOISE = 1e-4  # added to the variance of a term, so that rare terms do not dominate


def weigh(
    X: csr_array, examples: csr_array, groups: Sequence[NDArray[np.int64]], *, cull: float
) -> tuple[csr_array, NDArray[np.float32]]:
    """Weights and biases of labels with a few example documents.

    A label's weights are the mean of its examples minus the mean of all documents, each term in
    units of its spread.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_terms)
        The training documents.
    examples : csr_array of shape (n_examples, n_terms)
        The examples of all labels.
    groups : sequence of arrays
        For each label, which examples are its own; none means no weights and a bias of -inf.
    cull : float
        Weights smaller than this are dropped.
    """
    mean = np.asarray(X.mean(axis=0)).ravel()
    spread = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2 + _NOISE)
    rows = []
    for group in groups:
        row = csr_array((1, X.shape[1]), dtype=np.float32)
        if len(group):
            w = (np.asarray(examples[group].mean(axis=0)).ravel() - mean) / spread
            w *= _LENGTH / max(float(np.linalg.norm(w)), 1e-30)
            row = csr_array(np.where(np.abs(w) >= cull, w, 0.0).astype(np.float32)[None, :])
        rows.append(row)
    bias = [_BIAS if len(group) else -np.inf for group in groups]
    return csr_array(vstack(rows, format="csr")), np.array(bias, np.float32)


class LabelMaker:
    """Computes names, descriptions, weights and vectors of labels like those of the run.

    Parameters
    ----------
    run : Run
        Its training documents are the background for new labels.
    base : State
        The run as it was fitted.
    train_vectors : function
        Gives the tf-idf of the training documents, those that the run was fitted on.
    """

    def __init__(self, run: Run, base: State, train_vectors: Callable[[], csr_array]) -> None:
        self._train_vectors = train_vectors
        self._base = base
        self._terms = base.features.terms_
        self._settings = run.settings("descriptions")
        self._by_name = (
            base.retriever is not None and run.settings("encoder")["label_text"] == "name"
        )
        # A run that was fitted before the setting was there has stop words among its keywords.
        allowed = self._settings.get("stop_words", True)
        self._without = () if allowed else base.features.stop_terms()

    def make(
        self,
        labels: Sequence[Label],
        texts: Sequence[str | None],
        examples: Sequence[Sequence[str]],
        keywords: Sequence[tuple[str, float]] = (),
    ) -> Computed:
        """Everything that is computed, for many labels at once.

        ``texts`` are the descriptions that people wrote; ``keywords`` those of the only label, if
        it has had some.
        """
        documents = list(dict.fromkeys(text for group in examples for text in group))
        place = {text: i for i, text in enumerate(documents)}
        groups = [np.array(sorted({place[t] for t in group}), np.int64) for group in examples]
        X = self._base.features.transform(documents)
        weights, bias, rows = self._weights(X, groups)
        n, numbers = self._settings["keywords"], self._settings["numbers"]
        heaviest = top_keywords(weights, self._terms, n, without=self._without)
        if documents:
            readable = top_keywords(weights, self._terms, n, numbers=numbers, without=self._without)
            words = [[term for term, _ in readable.of(i)] for i in range(len(labels))]
        else:
            had = [t for t, _ in keywords if numbers or has_letter(t)]
            words = [had for _ in labels]
        descriptions = self._describe(labels, words, texts)
        # A written description is matched with texts like another name.
        also = [
            (*x.alt_names, text) if text else x.alt_names
            for x, text in zip(labels, texts, strict=True)
        ]
        names, owner = names_and_owners([x.name for x in labels], also)
        pairs = np.array([(int(e), i) for i, group in enumerate(groups) for e in group], np.int64)
        pairs = pairs.reshape(-1, 2)
        unknown = self._base.features.unknown_terms([*names, *documents])
        features = self._base.features.with_terms(unknown, self._base.n_train)
        vectors, name_vectors = self._encode(labels, texts, descriptions)
        profiles, at_most = self._company(X, pairs, len(labels))
        return Computed(
            descriptions,
            unknown,
            Rows.of(features.transform(names)),
            owner,
            vectors,
            name_vectors,
            Rows.of(weights),
            bias,
            heaviest.indices,
            heaviest.weights,
            Rows.of(features.transform(documents) if unknown else X),
            Rows.of(profiles),
            at_most,
            self._encode_documents(documents),
            rows,
            pairs,
        )

    def _company(
        self, X: csr_array, pairs: NDArray[np.int64], n: int
    ) -> tuple[csr_array, NDArray[np.float32]]:
        """What the SVM sees in the examples, whose tf-idf is X, of each of n labels.

        And in which share of the documents these can be, judging by that.
        """
        svm, owner = self._base.svm, pairs[:, 1]
        ranking = svm.rank(X, SEEN).take(pairs[:, 0])
        counts, n_train = self._base.train_counts, max(1, self._base.n_train)
        profiles = mean_profiles(ranking, owner, n, rarity(counts, n_train))
        return profiles, bounds(ranking, owner, n, counts / n_train)

    def _weights(
        self, examples: csr_array, groups: Sequence[NDArray[np.int64]]
    ) -> tuple[csr_array, NDArray[np.float32], NDArray[np.int64]]:
        """Linear weights and biases, and which training documents the examples are."""
        if not examples.shape[0]:
            none = csr_array((len(groups), len(self._terms)), dtype=np.float32)
            return none, np.full(len(groups), -np.inf, np.float32), np.empty(0, np.int64)
        X = self._train_vectors()
        weights, bias = weigh(X, examples, groups, cull=self._base.svm.cull)
        return weights, bias, _same(examples, X)

    def _describe(
        self, labels: Sequence[Label], words: Sequence[Sequence[str]], texts: Sequence[str | None]
    ) -> list[str]:
        retriever = self._base.retriever
        count = count_words if retriever is None else token_counter(retriever.folder)
        budget = self._settings["max_tokens"]
        made = describe(LabelSet(labels), words, max_tokens=budget, count_tokens=count)
        return [text or own for text, own in zip(texts, made, strict=True)]

    def _encode(
        self,
        labels: Sequence[Label],
        texts: Sequence[str | None],
        descriptions: Sequence[str],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors of labels and of their names alone, as in the run's indexes."""
        retriever, nothing = self._base.retriever, np.empty((len(labels), 0), np.float32)
        if retriever is None:
            return nothing, nothing
        from depl.neural.retriever import label_vectors

        wanted = list(descriptions)
        if self._by_name:
            wanted = [text or x.name for x, text in zip(labels, texts, strict=True)]
        tokens = [tokenize(wanted, retriever.folder, retriever.max_tokens)]
        if retriever.retriever.names is not None:
            longest = self._settings["max_tokens"] + 2  # where the run's own names are truncated
            tokens.append(tokenize([x.name for x in labels], retriever.folder, longest))
        # Without keywords a description is the name: most added labels are encoded once.
        distinct, place = _distinct(tokens)
        vectors = label_vectors(retriever.retriever.encoder, distinct)[place]
        return vectors[: len(labels)], vectors[len(labels) :] if len(tokens) > 1 else nothing

    def _encode_documents(self, documents: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of example documents, as in the run's index."""
        if self._base.retriever is None:
            return np.empty((len(documents), 0), np.float32)
        from depl.neural.retriever import unit_vectors

        return unit_vectors(self._base.retriever.encode(documents))


def _distinct(groups: Sequence[Tokens]) -> tuple[Tokens, NDArray[np.int64]]:
    """Every text of the groups once, and which of those each of them is."""
    rows = [
        tuple(tokens.ids[first:last].tolist())
        for tokens in groups
        for first, last in pairwise(tokens.indptr)
    ]
    distinct = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    return Tokens.from_rows(list(distinct)), np.array([distinct[row] for row in rows], np.int64)


def _same(vectors: csr_array, X: csr_array) -> NDArray[np.int64]:
    """For every example the training document that it is, or -1."""

    def row(matrix: csr_array, i: int) -> tuple[bytes, NDArray[np.float32]]:
        there = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return matrix.indices[there].astype(np.int32).tobytes(), matrix.data[there]

    found = np.full(vectors.shape[0], -1, np.int64)
    lengths = np.diff(vectors.indptr)
    examples: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(lengths).tolist():
        examples.setdefault(row(vectors, i)[0], []).append(i)
    for j in np.flatnonzero(np.isin(np.diff(X.indptr), lengths[lengths > 0])).tolist():
        terms, values = row(X, j)
        for i in examples.get(terms, ()):
            if np.allclose(values, row(vectors, i)[1], atol=1e-4):
                found[i] = j
    return found
