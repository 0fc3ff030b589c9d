"""Adaptive probabilistic label clusters (Ye et al., ICML 2020), APLC-XLNet's head, on any encoder.

Labels are sorted from common to rare and cut into a head and tail clusters. The head scores its
labels and, with one unit each, whether a document has any label of a tail cluster; a tail cluster
scores its labels from a smaller projection of the document. The probability of a tail label is the
product of both. A tail cluster learns only from documents that have one of its labels.

Published settings for EUR-Lex: one cut at half the labels, each cluster half as wide as the one
before, learning rates 5e-5 (encoder), 1e-4 (pooler) and 2e-3 (clusters), 8 epochs of 12 documents a
step. XLNet's weights cannot be had here: this is the algorithm on our encoder.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn
from transformers import PreTrainedModel

from depl.core.ranking import Ranking
from depl.neural.tokens import Tokens
from systems.finetuning import dense_rows, device_of, fine_tune, rank_by, states_of


class LabelClusters(nn.Module):
    """The clusters alone: losses and probabilities of document vectors.

    Parameters
    ----------
    size : int
        Of a document's vector.
    counts : array of shape (n_labels,)
        How many training documents carry each label.
    cutoffs : sequence of float
        Shares of the labels, from common to rare, at which a new cluster begins.
    division : int
        How many times smaller each cluster's projection is than the one before.
    """

    def __init__(
        self,
        size: int,
        counts: NDArray[np.integer],
        cutoffs: tuple[float, ...] = (0.5,),
        division: int = 2,
    ) -> None:
        super().__init__()
        order = np.argsort(-np.asarray(counts), kind="stable")
        edges = [0, *(round(c * len(order)) for c in cutoffs), len(order)]
        self.clusters = [torch.from_numpy(order[a:b]) for a, b in pairwise(edges)]
        self.n_labels = len(order)
        self.head = nn.Linear(size, len(self.clusters[0]) + len(self.clusters) - 1)
        self.tails = nn.ModuleList(
            nn.Sequential(
                nn.Linear(size, max(1, size // division**i), bias=False),
                nn.Linear(max(1, size // division**i), len(cluster)),
            )
            for i, cluster in enumerate(self.clusters[1:], start=1)
        )

    def loss(self, documents: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of the head, plus that of each tail cluster over the documents it has."""
        inside = [targets[:, cluster.to(targets.device)] for cluster in self.clusters]
        present = [tail.amax(dim=1, keepdim=True) for tail in inside[1:]]
        wanted = torch.cat([inside[0], *present], dim=1)
        loss = F.binary_cross_entropy_with_logits(self.head(documents), wanted)
        for tail, labels, there in zip(self.tails, inside[1:], present, strict=True):
            chosen = there[:, 0] > 0
            if bool(chosen.any()):
                scores = tail(documents[chosen])
                loss = loss + F.binary_cross_entropy_with_logits(scores, labels[chosen])
        return loss

    def probabilities(self, documents: Tensor) -> Tensor:
        """p(label) of all labels; in a tail cluster p(cluster) times p(label | cluster)."""
        head = torch.sigmoid(self.head(documents))
        out = documents.new_empty(len(documents), self.n_labels)
        n_head = len(self.clusters[0])
        out[:, self.clusters[0].to(out.device)] = head[:, :n_head]
        for i, (tail, cluster) in enumerate(zip(self.tails, self.clusters[1:], strict=True)):
            inside = torch.sigmoid(tail(documents))
            out[:, cluster.to(out.device)] = head[:, n_head + i, None] * inside
        return out


class APLC(nn.Module):
    """Encoder, pooler and label clusters.

    Parameters
    ----------
    bert : PreTrainedModel
        The pretrained encoder.
    counts : array of shape (n_labels,)
        How many training documents carry each label.
    epochs, batch_size, rates
        The published settings for EUR-Lex by default; rates are of encoder, pooler and clusters.
    seed : int
        Decides initial weights, dropout and order.
    """

    def __init__(
        self,
        bert: PreTrainedModel,
        counts: NDArray[np.integer],
        *,
        epochs: int = 8,
        batch_size: int = 12,
        rates: tuple[float, float, float] = (5e-5, 1e-4, 2e-3),
        seed: int = 0,
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        size = bert.config.hidden_size
        self.bert = bert
        self.pooler = nn.Linear(size, size)
        self.clusters = LabelClusters(size, counts)
        self.epochs, self.batch_size, self.rates, self.seed = epochs, batch_size, rates, seed

    def vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """A document's vector: its CLS state, a linear layer, tanh, dropout (XLNet's summary)."""
        state = states_of(self.bert, ids, mask)[-1][:, 0]
        return F.dropout(torch.tanh(self.pooler(state)), 0.1, self.training)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Probabilities of all labels."""
        return self.clusters.probabilities(self.vectors(ids, mask))

    def fit(self, tokens: Tokens, Y: csr_array) -> APLC:
        """Fine-tune on documents and their labels."""
        parts = (self.bert, self.pooler, self.clusters)
        fine_tune(
            self,
            tokens,
            lambda ids, mask, rows: self.clusters.loss(
                self.vectors(ids, mask), dense_rows(Y, rows, device_of(self))
            ),
            [
                {"params": list(part.parameters()), "lr": rate}
                for part, rate in zip(parts, self.rates, strict=True)
            ],
            epochs=self.epochs,
            batch_size=self.batch_size,
            decay=True,
            seed=self.seed,
            title="APLC",
        )
        return self

    def rank(self, tokens: Tokens, k: int) -> Ranking:
        """The k best labels of every document."""
        return rank_by(self, self, tokens, k)
