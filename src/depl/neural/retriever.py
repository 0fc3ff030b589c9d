"""A trained encoder with the vectors of the labels and of the training documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit
from torch import Tensor

from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.core.votes import votes
from depl.neural.encoder import DualEncoder, encode, pooled_states, rank
from depl.neural.index import APPROXIMATE_FROM, LabelIndex
from depl.neural.latest_states import LatestStates
from depl.neural.losses import mean_log_probabilities
from depl.neural.tokens import Texts, cutting_tokenizer, tokenize_with

Vectors = Tensor  # documents or labels as ``encode`` returns them, (n, size)

_SCORES = 2**23  # of a block, of which each thread has one in memory: 32 MB


class Retriever:
    """Ranks labels for documents by its head, by similarity to texts and names, by neighbours.

    Parameters
    ----------
    encoder : DualEncoder
        Trained.
    labels : LabelIndex
        Vectors of the labels' texts, of length 1 where they are compared by cosine.
    documents : LabelIndex
        Vectors of the training documents, of length 1.
    Y : csr_array of shape (n_training_documents, n_labels)
        Their labels.
    names : LabelIndex or None
        Vectors of the labels' names, likewise; None where the texts are the names: the part would
        duplicate retrieval.
    neighbours, sharpness
        How many training documents vote, and how much more the nearer ones count.
    """

    def __init__(
        self,
        encoder: DualEncoder,
        labels: LabelIndex,
        documents: LabelIndex,
        Y: csr_array,
        *,
        names: LabelIndex | None = None,
        neighbours: int,
        sharpness: float,
    ) -> None:
        self.encoder = encoder
        self.labels = labels
        self.documents = documents
        self.Y = Y
        self.names = names
        self.neighbours = neighbours
        self.sharpness = sharpness

    def rank(self, vectors: Tensor, k: int, executor: Executor | None = None) -> dict[str, Ranking]:
        """Every part's k best labels for documents given as ``encode`` returns them."""
        parts = {}
        if self.encoder.head is not None:
            parts["classifier"] = classifier_ranking(self.encoder, vectors, k)
        parts["retrieval"] = self._most_similar(self.labels, vectors, k, executor)
        if self.names is not None:
            parts["name retrieval"] = self._most_similar(self.names, vectors, k, executor)
        own = unit_vectors(vectors)
        nearest = self.documents.search(own, self.neighbours, executor=executor)
        parts["neighbours"] = votes(nearest, self.Y, sharpness=self.sharpness, k=k)
        return parts

    def rank_by_name(self, vectors: Tensor, k: int) -> Ranking:
        """The k labels whose names are most similar."""
        names = self.labels if self.names is None else self.names
        return self._most_similar(names, vectors, k, None)

    def _most_similar(
        self, index: LabelIndex, vectors: Tensor, k: int, executor: Executor | None
    ) -> Ranking:
        """The k nearest by the encoder's similarity, as logits."""
        if not self.encoder.cosine:
            return index.search(vectors.cpu().numpy(), k, executor=executor)
        scale, bias = self.encoder.logit_scale.item(), self.encoder.logit_bias.item()
        own = unit_vectors(vectors)
        return index.search(own, k, scale=scale, bias=bias, executor=executor)

    def rank_jointly(self, vectors: Tensor, k: int) -> Ranking:
        """The k best labels that the head knows by the mean of both: the paper's DEPL+c."""
        known = 0 if self.encoder.head is None else self.encoder.head.out_features
        labels = torch.from_numpy(self.labels.vectors[:known]).to(vectors.device)
        return joint_ranking(self.encoder, vectors, labels, k)


@dataclass(frozen=True)
class TextRetriever:
    """A retriever that starts from texts.

    Its tokenizer is read once, so that it goes with the encoder whatever becomes of the folder.

    Parameters
    ----------
    retriever : Retriever
        What ranks.
    folder : Path
        The saved encoder, whose tokenizer reads the texts.
    max_tokens : int
        Where texts are truncated.
    latest : LatestStates
        What the encoder made of the latest texts.
    """

    retriever: Retriever
    folder: Path
    max_tokens: int
    latest: LatestStates = field(default_factory=LatestStates, repr=False, compare=False)
    _tokenizer: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokenizer", cutting_tokenizer(self.folder, self.max_tokens))

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Vectors of texts, (n, size), on the encoder's device."""
        encoder = self.retriever.encoder

        def states(new: Sequence[str]) -> NDArray[np.float32]:
            tokens = tokenize_with(self._tokenizer, new, self.max_tokens)
            found: NDArray[np.float32] = pooled_states(encoder, tokens, "document").cpu().numpy()
            return found

        return encode(encoder, self.latest.of(texts, states), "document")

    def rank_by_name(self, texts: Sequence[str], k: int) -> Ranking:
        """The k labels whose names are nearest in meaning to each text."""
        if not texts:
            return Ranking.empty(0, k)
        return self.retriever.rank_by_name(self.encode(texts), k)


def index_labels(
    encoder: DualEncoder, texts: Texts, executor: Executor | None = None
) -> LabelIndex:
    """Encode labels and index them: a graph where there are very many."""
    array = label_vectors(encoder, texts, executor)
    # A graph needs vectors of one length.
    return LabelIndex.build(array, approximate=encoder.cosine and len(array) >= APPROXIMATE_FROM)


def label_vectors(
    encoder: DualEncoder, texts: Texts, executor: Executor | None = None
) -> NDArray[np.float32]:
    """Labels as an index holds them: of length 1 where they are compared by cosine."""
    vectors = encode(encoder, texts, "label", executor)
    return unit_vectors(vectors) if encoder.cosine else vectors.cpu().numpy()


def index_documents(
    encoder: DualEncoder, texts: Texts, executor: Executor | None = None
) -> LabelIndex:
    """Encode training documents and index them, likewise."""
    vectors = unit_vectors(encode(encoder, texts, "document", executor))
    return LabelIndex.build(vectors, approximate=len(vectors) >= APPROXIMATE_FROM)


def unit_vectors(vectors: Tensor) -> NDArray[np.float32]:
    """The vectors scaled to length 1, as an array."""
    array: NDArray[np.float32] = F.normalize(vectors, dim=-1).cpu().numpy()
    return array


def classifier_ranking(encoder: DualEncoder, vectors: Tensor, k: int) -> Ranking:
    """The head's k best labels."""
    head = encoder.head
    assert head is not None
    block = max(1, _SCORES // head.out_features)
    return rank(lambda rows: head(vectors[rows]), len(vectors), k, block, vectors.device)


def retrieval_ranking(encoder: DualEncoder, vectors: Tensor, labels: Tensor, k: int) -> Ranking:
    """The k labels whose vectors are most similar: DE-ret, DEPL."""
    block = max(1, _SCORES // max(1, len(labels)))

    def scores(rows: slice) -> Tensor:
        return encoder.similarity(vectors[rows], labels)

    return rank(scores, len(vectors), k, block, vectors.device)


def joint_ranking(encoder: DualEncoder, vectors: Tensor, labels: Tensor, k: int) -> Ranking:
    """The k best labels by the mean of both branches' probabilities: DEPL+c.

    They are ranked by the logits of that mean, of which none are equal where branches are sure.
    """
    head = encoder.head
    assert head is not None

    def logits(rows: slice) -> Tensor:
        dual = encoder.similarity(vectors[rows], labels)
        yes, no = mean_log_probabilities(dual, head(vectors[rows]))
        return yes - no

    block = max(1, _SCORES // head.out_features)
    ranking = rank(logits, len(vectors), k, block, vectors.device)
    return replace(ranking, scores=expit(ranking.scores))
