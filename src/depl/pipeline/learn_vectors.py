"""The neural half of learning: new documents and changed label texts are encoded.

The encoder itself and its classification head are those of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from depl.core.corpus import Corpus
from depl.neural.tokens import TOKENIZER, tokenize
from depl.run.folder import Run
from depl.run.learned_vectors import LearnedVectors

_SAME = 2 / 3

if TYPE_CHECKING:
    from depl.neural.encoder import DualEncoder
    from depl.neural.retriever import Vectors


def vectors_of(places: Sequence[int], vectors: Vectors) -> dict[int, NDArray[np.float32]]:
    """What an index holds of the documents at these places, which an encoder gave vectors."""
    from depl.neural.retriever import unit_vectors

    return dict(zip(places, unit_vectors(vectors), strict=True))


def settled(had: Sequence[str], now: Sequence[str]) -> list[str]:
    """Descriptions that stay as they were if they have most words in common with the new ones.

    A label of many documents hardly ever gets other keywords by one more, and each description that
    changes is encoded.
    """
    return [
        before if _in_common(before, after) >= _SAME else after
        for before, after in zip(had, now, strict=True)
    ]


def _in_common(one: str, other: str) -> float:
    """The share of the words of two texts that both have."""
    words, others = set(one.split()), set(other.split())
    return len(words & others) / max(1, len(words | others))


def encode_news(
    run: Run,
    corpus: Corpus,
    documents: Mapping[int, NDArray[np.float32] | None],
    label_texts: Mapping[int, str],
    before: LearnedVectors | None,
    encoder: DualEncoder | None,
) -> LearnedVectors:
    """The vectors of what was learnt.

    Parameters
    ----------
    run, corpus
        The run, and all documents with those of the feedback.
    documents : mapping of int to array or None
        Positions of the documents that the feedback is about, and the vectors of those that are
        encoded.
    label_texts : mapping of int to str
        Labels by position, and their descriptions that are other than the last time.
    before : LearnedVectors or None
        What was known the last time.
    encoder : DualEncoder or None
        The run's, where it has been loaded.
    """
    from depl.neural import encoder_files
    from depl.neural.distributed import Processes
    from depl.neural.encoder import encode
    from depl.neural.retriever import label_vectors, unit_vectors

    if encoder is None:
        folder = run.encoder_folder("encoder")
        encoder = encoder_files.load(folder).to(Processes.launched(run.config().device).device)
    else:  # its weights have been checked, which takes as long as encoding four documents
        folder = run.verified("encoder", TOKENIZER)
    unread = [i for i, vector in documents.items() if vector is None]
    longest = run.settings("documents")["max_tokens"]
    tokens = tokenize([corpus.texts[i] for i in unread], folder, longest)
    own = dict(zip(unread, unit_vectors(encode(encoder, tokens, "document")), strict=True))
    size = encoder.document_pooler.out_features
    rows = [own[i] if vector is None else vector for i, vector in documents.items()]
    labels: dict[int, NDArray[np.float32]] = {}
    if before is not None:
        labels = dict(zip(before.labels.tolist(), before.label_vectors, strict=True))
    if run.settings("encoder")["label_text"] == "description":
        longest = run.settings("descriptions")["max_tokens"] + 2  # with the two special tokens
        tokens = tokenize(list(label_texts.values()), folder, longest)
        labels |= dict(zip(label_texts, label_vectors(encoder, tokens), strict=True))
    return LearnedVectors(
        np.array(rows, np.float32).reshape(-1, size),
        np.array(list(labels), np.int64),
        np.array(list(labels.values()), np.float32).reshape(-1, size),
    )
