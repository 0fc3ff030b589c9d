"""Adaptive probabilistic label clusters (Ye et al., ICML 2020), APLC-XLNet's head, on any encoder.

Labels are sorted from common to rare and cut into a head and tail clusters. The head scores its
labels and, with one unit each, whether a document has any label of a tail cluster; a tail cluster
scores its labels from a smaller hidden layer. The probability of a tail label is the product of
both, and the loss is the cross-entropy of it: for a document that has one of a cluster's labels,
over all labels of that cluster; for any other, over the cluster's unit alone.

As in the authors' program, hidden layers have a layer norm and ReLU, nothing has a bias, and what a
document adds to the loss is divided by the number of its terms.

Published settings for EUR-Lex: one cut at half the labels, each cluster half as wide as the one
before, learning rates 5e-5 (encoder), 1e-4 (pooler) and 2e-3 (clusters) that fall linearly from the
first step, no weight decay, 8 epochs of 12 documents a step. XLNet's weights cannot be had here:
this is the algorithm on our encoder.
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

_SPREAD = 0.02  # of initial weights
_LEAST = 1e-7  # probability that a logarithm is taken of


def _tail(size: int, hidden: int, labels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, hidden, bias=False),
        nn.LayerNorm(hidden),
        nn.ReLU(),
        nn.Linear(hidden, labels, bias=False),
    )


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
        How many times smaller each cluster's hidden layer is than the one before.
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
        self.head = nn.Linear(size, self.sizes[0] + len(self.sizes) - 1, bias=False)
        self.tails = nn.ModuleList(
            _tail(size, max(1, size // division**i), n)
            for i, n in enumerate(self.sizes[1:], start=1)
        )
        for layer in (x for x in self.modules() if isinstance(x, nn.Linear)):
            nn.init.normal_(layer.weight, std=_SPREAD)

    @property
    def clusters(self) -> tuple[Tensor, ...]:
        """The labels of each cluster, from common to rare."""
        return self.order.split(self.sizes)

    def loss(self, documents: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy of the probabilities that a document has a say in."""
        inside = targets[:, self.order].split(self.sizes, dim=1)
        head, units = self.head(documents).split([self.sizes[0], len(self.tails)], dim=1)
        total = F.binary_cross_entropy_with_logits(head, inside[0], reduction="none").sum(dim=1)
        terms = torch.full_like(total, self.sizes[0])
        for i, (tail, labels) in enumerate(zip(self.tails, inside[1:], strict=True)):
            # Both cases are computed for all documents: which it is is known on the device alone.
            there, unit = labels.amax(dim=1), units[:, i, None]
            log_p = F.logsigmoid(unit) + F.logsigmoid(tail(documents))
            log_not = (-torch.expm1(log_p)).clamp(min=_LEAST).log()
            among = -(labels * log_p + (1 - labels) * log_not).sum(dim=1)
            total = total + torch.where(there > 0, among, F.softplus(unit[:, 0]))
            terms = terms + torch.where(there > 0, labels.shape[1], 1)
        return (total / terms).mean()

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
    warmup, weight_decay = 0.0, 0.0

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
