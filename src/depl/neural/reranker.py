r"""The re-ranker: a cross-encoder that reads a document together with one label at a time.

::

    [CLS] label [SEP] document [SEP]  ->  BERT  ->  mean  ->  logit

The dual encoder has to put all that could matter about a document into one vector before it knows
which label is meant; here every word of the label attends to every word of the document. That is
too expensive for all labels, so it reads those that the other parts agree on. Among 40 of them, on
held-out documents of three corpora, are as many right labels as among the first 30 to 40 of a
trained fusion.

It is an encoder with a head of one output whose texts are such pairs, so training, checkpoints and
files are those of the dual encoder. It is trained once, without the validation slice, and its
scores of the slice are therefore like those of new documents. A label is read as its current
description: one that was edited needs no training.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.indicator import carried
from depl.core.ranking import Ranking, agreed
from depl.neural.encoder import DualEncoder, encode
from depl.neural.threads import one_thread
from depl.neural.tokens import Tokens, tokenize

_PAIRS = 50_000  # in memory at a time
_LABEL_SHARE = 2  # a label has at most one token of so many: the rest is the document's


@dataclass(frozen=True)
class Reranker:
    """Scores labels of documents by reading both together.

    Parameters
    ----------
    encoder : DualEncoder
        With a head of one output.
    folder : Path
        Where it is saved, with its tokenizer.
    max_tokens : int
        Where a pair is truncated.
    candidates : int
        How many labels of a document it is meant to read.
    """

    encoder: DualEncoder
    folder: Path
    max_tokens: int
    candidates: int

    def rank(
        self,
        texts: Sequence[str],
        rankings: Iterable[Ranking],
        descriptions: Sequence[str],
        k: int,
    ) -> Ranking:
        """The k best labels of each text, by the logit that the text carries the label.

        Parameters
        ----------
        texts : sequence of str
            The documents.
        rankings : iterable of Ranking
            The other parts', which say what labels to read with each document.
        descriptions : sequence of str
            Of all labels.
        k : int
            Padded where there are fewer.
        """
        candidates = agreed(rankings, self.candidates)
        block = _PAIRS // self.candidates + 1
        parts = [
            self._rank(
                texts[first : first + block],
                candidates.take(slice(first, first + block)),
                descriptions,
            )
            for first in range(0, len(candidates), block)
        ]
        return Ranking.concatenate(parts or [candidates]).top(k)

    def _rank(
        self, texts: Sequence[str], candidates: Ranking, descriptions: Sequence[str]
    ) -> Ranking:
        rows, columns = np.nonzero(candidates.indices >= 0)
        labels = candidates.indices[rows, columns]
        distinct, place = np.unique(labels, return_inverse=True)
        pairs = pair_tokens(
            tokenize(texts, self.folder, self.max_tokens),
            tokenize_labels([descriptions[i] for i in distinct], self.folder, self.max_tokens),
            rows,
            place,
            self.max_tokens,
        )
        head = self.encoder.head
        assert head is not None
        vectors = encode(self.encoder, pairs, "document")
        with torch.inference_mode(), one_thread():
            scores = head(vectors)[:, 0].float().cpu().numpy()
        return Ranking.from_pairs(rows, labels, scores, len(candidates), candidates.k)


def tokenize_labels(descriptions: Sequence[str], folder: Path, max_tokens: int) -> Tokens:
    """The first half of pairs: descriptions, truncated so that half the room is left."""
    return tokenize(descriptions, folder, max_tokens // _LABEL_SHARE)


def pair_tokens(
    documents: Tokens,
    labels: Tokens,
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    max_tokens: int,
) -> Tokens:
    """The pairs of documents at ``rows`` and labels at ``columns``, each as one text.

    Both have their special tokens; the document's first is left out.
    """
    heads = labels.lengths[columns]
    tails = np.clip(documents.lengths[rows] - 1, 0, np.maximum(max_tokens - heads, 0))
    indptr = np.concatenate([[0], np.cumsum(heads + tails)])
    ids = np.empty(indptr[-1], np.int32)
    for first in range(0, len(rows), _PAIRS):
        last = min(first + _PAIRS, len(rows))
        own = slice(first, last)
        lengths = (heads + tails)[own]
        position = np.arange(indptr[last] - indptr[first])
        position -= np.repeat(indptr[first:last] - indptr[first], lengths)
        head = np.repeat(heads[own], lengths)
        source = np.repeat(labels.indptr[columns[own]], lengths) + position
        of_label = position < head
        found = ids[indptr[first] : indptr[last]]
        found[of_label] = labels.ids[source[of_label]]
        source = np.repeat(documents.indptr[rows[own]] + 1, lengths) + position - head
        found[~of_label] = documents.ids[source[~of_label]]
    return Tokens(ids, indptr)


def training_pairs(
    Y: csr_array, candidates: Ranking, negatives: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Documents, labels and whether they go together: what to learn from.

    Parameters
    ----------
    Y : csr_array of shape (n_documents, n_labels)
        Which document carries which label: all of these are taken.
    candidates : Ranking
        Of the same documents; up to ``negatives`` wrong ones of each are drawn. Labels that no
        document carries are never taken: as mere negatives they could not be found afterwards.
    negatives : int
        Per document.
    rng : numpy.random.Generator
        Draws them.
    """
    seen = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
    documents = np.arange(len(candidates))[:, None]
    there = (candidates.indices >= 0) & seen[candidates.indices]
    wrong = there & ~carried(Y, documents, candidates.indices)
    # The wrong ones with the smallest of random numbers.
    drawn = np.where(wrong, rng.random(wrong.shape), np.inf)
    order = np.argsort(drawn, axis=1)[:, :negatives]
    taken = np.isfinite(np.take_along_axis(drawn, order, axis=1))
    at, column = np.nonzero(taken)
    rows = np.concatenate([np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), at])
    labels = np.concatenate([Y.indices, candidates.indices[at, order[at, column]]])
    true = np.arange(len(rows)) < Y.nnz
    return rows.astype(np.int64), labels.astype(np.int64), true
