"""What a label needs to be suggested, computed without training: for many labels at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Label, LabelSet
from depl.labels import fewshot
from depl.labels.overlay import Computed, Parts
from depl.neural.tokens import Tokens, load_tokenizer, tokenize
from depl.run.folder import Run
from depl.sparse.descriptions import count_words, describe
from depl.sparse.keywords import top_keywords
from depl.sparse.names import names_and_owners
from depl.sparse.tfidf import TfidfFeatures


class LabelMaker:
    """Computes names, descriptions, weights and vectors of labels as the run's own were.

    Parameters
    ----------
    run : Run
        Whose training documents new labels are told apart from.
    base : Parts
        The run as it was fitted.
    features : TfidfFeatures
        Its features.
    """

    def __init__(self, run: Run, base: Parts, features: TfidfFeatures) -> None:
        self._run = run
        self._base = base
        self._features = features
        self._config = run.config()

    def make(
        self,
        labels: Sequence[Label],
        texts: Sequence[str | None],
        examples: Sequence[Sequence[str]],
        keywords: Sequence[tuple[str, float]] = (),
    ) -> Computed:
        """All there is to compute, for many labels at once.

        ``texts`` are the descriptions that people wrote; ``keywords`` those of the only label, if
        it has had some.
        """
        documents = list(dict.fromkeys(text for group in examples for text in group))
        place = {text: i for i, text in enumerate(documents)}
        groups = [np.array(sorted({place[t] for t in group}), np.int64) for group in examples]
        weights, bias, rows = self._weights(documents, groups)
        section, terms = self._config.descriptions, self._features.terms_
        heaviest = top_keywords(weights, terms, section.keywords)
        if documents:
            readable = top_keywords(weights, terms, section.keywords, numbers=section.numbers)
            words = [[term for term, _ in readable.of(i)] for i in range(len(labels))]
        else:
            had = [t for t, _ in keywords if section.numbers or any(map(str.isalpha, t))]
            words = [had for _ in labels]
        descriptions = self._describe(labels, words, texts)
        # A description that a person wrote is matched with texts as another name is.
        also = [
            (*x.alt_names, text) if text else x.alt_names
            for x, text in zip(labels, texts, strict=True)
        ]
        names, owner = names_and_owners([x.name for x in labels], also)
        pairs = [(int(e), i) for i, group in enumerate(groups) for e in group]
        vectors, name_vectors = self._encode(labels, texts, descriptions)
        return Computed(
            descriptions,
            self._features.transform(names),
            owner,
            vectors,
            name_vectors,
            weights,
            bias,
            heaviest.indices,
            heaviest.weights,
            self._encode_documents(documents),
            rows,
            np.array(pairs, np.int64).reshape(-1, 2),
        )

    def _weights(
        self, documents: Sequence[str], groups: Sequence[NDArray[np.int64]]
    ) -> tuple[csr_array, NDArray[np.float32], NDArray[np.int64]]:
        """Linear weights and biases, and which training documents the examples are."""
        if not documents:
            none = csr_array((len(groups), len(self._features.terms_)), dtype=np.float32)
            return none, np.full(len(groups), -np.inf, np.float32), np.empty(0, np.int64)
        X = self._run.train_vectors()
        vectors = self._features.transform(documents)
        weights, bias = fewshot.weigh(X, vectors, groups, cull=self._config.linear.cull)
        return weights, bias, _same(vectors, X)

    def _describe(
        self, labels: Sequence[Label], words: Sequence[Sequence[str]], texts: Sequence[str | None]
    ) -> list[str]:
        count: Callable[[str], int] = count_words
        if self._base.retriever is not None:
            tokenizer = load_tokenizer(self._base.retriever.folder)
            tokenizer.no_truncation()
            count = lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)  # noqa: E731
        budget = self._config.descriptions.max_tokens
        made = describe(LabelSet(labels), words, max_tokens=budget, count_tokens=count)
        return [text or own for text, own in zip(texts, made, strict=True)]

    def _encode(
        self,
        labels: Sequence[Label],
        texts: Sequence[str | None],
        descriptions: Sequence[str],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors of labels and of their names alone, as the run's indexes hold them."""
        retriever, nothing = self._base.retriever, np.empty((len(labels), 0), np.float32)
        if retriever is None:
            return nothing, nothing
        from depl.neural.retriever import label_vectors

        wanted = list(descriptions)
        if self._config.retrieval.label_text == "name":
            wanted = [text or x.name for x, text in zip(labels, texts, strict=True)]
        tokens = [tokenize(wanted, retriever.folder, retriever.max_tokens)]
        if retriever.retriever.names is not None:
            longest = self._config.descriptions.max_tokens + 2  # where the run's own names are cut
            tokens.append(tokenize([x.name for x in labels], retriever.folder, longest))
        # Without keywords a description is the name: most that is added is encoded once.
        distinct, place = _distinct(tokens)
        vectors = label_vectors(retriever.retriever.encoder, distinct)[place]
        return vectors[: len(labels)], vectors[len(labels) :] if len(tokens) > 1 else nothing

    def _encode_documents(self, documents: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of example documents, as the run's index holds them."""
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
