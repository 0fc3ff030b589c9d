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
from torch import Tensor, nn
from transformers import PreTrainedModel

from systems.finetuning import FineTuned, Groups
from systems.states import states_of


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

    order: Tensor

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
        self.sizes = [b - a for a, b in pairwise(edges)]
        self.register_buffer("order", torch.from_numpy(order))
        self.head = nn.Linear(size, self.sizes[0] + len(self.sizes) - 1)
        self.tails = nn.ModuleList(
            nn.Sequential(
                nn.Linear(size, max(1, size // division**i), bias=False),
                nn.Linear(max(1, size // division**i), n),
            )
            for i, n in enumerate(self.sizes[1:], start=1)
        )

    @property
    def clusters(self) -> tuple[Tensor, ...]:
        """The labels of each cluster, from common to rare."""
        return self.order.split(self.sizes)

    def loss(self, documents: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of the head, plus that of each tail cluster over the documents it has."""
        inside = targets[:, self.order].split(self.sizes, dim=1)
        present = [tail.amax(dim=1, keepdim=True) for tail in inside[1:]]
        wanted = torch.cat([inside[0], *present], dim=1)
        loss = F.binary_cross_entropy_with_logits(self.head(documents), wanted)
        for tail, labels, there in zip(self.tails, inside[1:], present, strict=True):
            # Documents without one of its labels are scored, too, but do not count: which they are
            # is known on the device alone.
            each = F.binary_cross_entropy_with_logits(tail(documents), labels, reduction="none")
            loss = loss + (each.mean(dim=1) * there[:, 0]).sum() / there.sum().clamp(min=1)
        return loss

    def probabilities(self, documents: Tensor) -> Tensor:
        """p(label) of all labels; in a tail cluster p(cluster) times p(label | cluster)."""
        head = torch.sigmoid(self.head(documents))
        n_head = self.sizes[0]
        found = [head[:, :n_head]]
        for i, tail in enumerate(self.tails):
            found.append(head[:, n_head + i, None] * torch.sigmoid(tail(documents)))
        out = torch.empty(len(documents), len(self.order), device=documents.device)
        out[:, self.order] = torch.cat(found, dim=1)
        return out


class APLC(FineTuned):
    """Encoder, pooler and label clusters.

    Parameters
    ----------
    bert : PreTrainedModel
        The pretrained encoder.
    counts : array of shape (n_labels,)
        How many training documents carry each label.
    rates : three floats
        Learning rates of encoder, pooler and clusters; the published ones for EUR-Lex by default.
    **training
        Epochs, batch_size and seed, as ``FineTuned`` takes them.
    """

    title, epochs, batch_size = "APLC", 8, 12

    def __init__(
        self,
        bert: PreTrainedModel,
        counts: NDArray[np.integer],
        *,
        rates: tuple[float, float, float] = (5e-5, 1e-4, 2e-3),
        **training: int,
    ) -> None:
        super().__init__(bert, **training)
        size = bert.config.hidden_size
        self.pooler = nn.Linear(size, size)
        self.clusters = LabelClusters(size, counts)
        self.rates = rates

    def vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """A document's vector: its CLS state, a linear layer, tanh, dropout (XLNet's summary)."""
        state = states_of(self.bert, ids, mask)[-1][:, 0].float()
        return F.dropout(torch.tanh(self.pooler(state)), 0.1, self.training)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Probabilities of all labels."""
        return self.clusters.probabilities(self.vectors(ids, mask))

    def loss(self, ids: Tensor, mask: Tensor, targets: Tensor) -> Tensor:
        """What the clusters say."""
        return self.clusters.loss(self.vectors(ids, mask), targets)

    def groups(self) -> Groups:
        """Learning rates of encoder, pooler and clusters."""
        parts = (self.bert, self.pooler, self.clusters)
        return [
            {"params": list(part.parameters()), "lr": rate}
            for part, rate in zip(parts, self.rates, strict=True)
        ]
