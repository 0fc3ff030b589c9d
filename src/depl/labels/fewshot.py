"""What a new label needs to be suggested, computed without training, from a few examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Label, LabelSet
from depl.fusion.newcomers import NewcomerModel
from depl.labels.background import Background
from depl.labels.computed import Computed
from depl.labels.growing import Rows
from depl.labels.moments import Moments, weigh
from depl.neural.meanings import Meanings, unit_length
from depl.neural.tokens import Tokens, token_counter, tokenize
from depl.run.folder import Run
from depl.run.state import State
from depl.sparse.breadth import bounds, breadth
from depl.sparse.evidence import SEEN, Evidence, mean_profiles, over_columns, rarity, unit_rows
from depl.sparse.keywords import count_words, describe, has_letter, top_keywords
from depl.sparse.likely import Likely
from depl.sparse.names import names_and_owners

_SEED = 0  # for the choice of documents that may be likely
_LABELS = 500  # whose likely documents are looked for at a time


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
    model : function
        Gives what makes added labels probable; None where a single part ranks.
    """

    def __init__(
        self,
        run: Run,
        base: State,
        train_vectors: Callable[[], csr_array],
        model: Callable[[], NewcomerModel | None],
    ) -> None:
        self._run, self._train_vectors, self._model = run, train_vectors, model
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
        *,
        added: bool = False,
    ) -> Computed:
        """Everything that is computed, for many labels at once.

        ``texts`` are the descriptions that people wrote; ``keywords`` those of the only label, if
        it has had some. Only for labels that are ``added`` likely documents are looked for.
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
        of_names = features.transform(names)
        of_documents = features.transform(documents) if unknown else X
        examples_meaning = self._encode_documents(documents)
        n_terms = of_names.shape[1]
        likely = Likely.unknown(len(labels), len(self._terms))
        model = self._model() if added else None
        if model is not None:
            evidence = Evidence(
                names=of_names,
                name_owner=owner,
                examples=csr_array(of_documents[pairs[:, 0]]),
                example_owner=pairs[:, 1],
                weights=unit_rows(over_columns(weights, n_terms)),
                profiles=profiles,
                bounds=at_most,
            )
            meanings = None
            if self._base.retriever is not None:
                written = np.array([text is not None for text in texts])
                by_pair = examples_meaning[pairs[:, 0]], pairs[:, 1]
                meanings = Meanings.of_labels(vectors, name_vectors, written, *by_pair)
            likely = self._likely(model, features.idf_, evidence, meanings)
        return Computed(
            descriptions,
            unknown,
            Rows.of(of_names),
            owner,
            vectors,
            name_vectors,
            Rows.of(weights),
            bias,
            heaviest.indices,
            heaviest.weights,
            Rows.of(of_documents),
            Rows.of(profiles),
            Rows.of(likely.weights),
            at_most,
            likely.shares,
            examples_meaning,
            rows,
            pairs,
        )

    def read(self) -> None:
        """Read now what labels are compared with."""
        _ = self._moments, self._background

    @cached_property
    def _moments(self) -> Moments:
        return Moments.of(self._train_vectors())

    @cached_property
    def _background(self) -> Background:
        base = self._base
        return Background.of(
            self._run,
            np.random.default_rng(_SEED),
            X=self._train_vectors(),
            features=base.features,
            encoded=None if base.retriever is None else self._vectors_of,
        )

    def _vectors_of(self, documents: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of training documents in the run's index, of length 1."""
        assert self._base.retriever is not None
        return unit_length(self._base.retriever.retriever.documents.vectors[documents])

    def _likely(
        self,
        model: NewcomerModel,
        idf: NDArray[np.float32],
        evidence: Evidence,
        meanings: Meanings | None,
    ) -> Likely:
        """What those documents of the run tell that probably carry the labels."""
        assert model.first is not None
        background = self._background.over(evidence.names.shape[1])
        n, broad = len(evidence.bounds), breadth(evidence, idf)
        found = [Likely.unknown(0, len(self._terms))]
        for first in range(0, n, _LABELS):
            labels = slice(first, min(n, first + _LABELS))
            some = evidence.some(labels)
            meant = None if meanings is None else meanings.some(labels)
            known = partial(background.known, some, meant, broad[labels])
            found += background.likely(
                known, some, model.first, self._moments, cull=self._base.svm.cull
            )
        return Likely.concatenate(found)

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
        owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        places, shape = (owner, np.concatenate(groups)), (len(groups), examples.shape[0])
        members = csr_array((np.ones(len(owner), np.float32), places), shape=shape)
        weights, bias = weigh(self._moments, examples, members, cull=self._base.svm.cull)
        return weights, bias, _same(examples, self._train_vectors())

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
