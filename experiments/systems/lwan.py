"""BERT-LWAN (Chalkidis et al., 2020), its algorithm on any encoder: label-wise attention.

Every label has a vector by which it attends to the tokens of a document, and another by which it
scores the mean that it gathers::

    a_l = softmax over tokens of h_t . u_l
    score(l) = (sum over t of a_lt h_t) . w_l + b_l

The loss is the binary cross-entropy over all labels. The authors fine-tune as is usual for BERT
(5e-5, falling linearly; 16 documents a step) and stop early; here the number of epochs is fixed,
and the vectors of labels, which start from nothing, have a rate of their own.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor, nn
from transformers import PreTrainedModel

from systems.finetuning import FineTuned, Groups
from systems.states import states_of

_CELLS = 2**28  # of documents x tokens x labels that are in memory at a time


class LWAN(FineTuned):
    """Encoder and label-wise attention.

    Parameters
    ----------
    bert, n_labels
        The pretrained encoder, and how many labels there are.
    lr, head_lr, dropout : float
        How it is fine-tuned.
    **training
        Epochs, batch_size and seed, as ``FineTuned`` takes them.
    """

    title, epochs, batch_size = "BERT-LWAN", 10, 16

    def __init__(
        self,
        bert: PreTrainedModel,
        n_labels: int,
        *,
        lr: float = 5e-5,
        head_lr: float = 1e-3,
        dropout: float = 0.1,
        **training: int,
    ) -> None:
        super().__init__(bert, **training)
        self.attention = nn.Linear(bert.config.hidden_size, n_labels, bias=False)
        self.head = nn.Linear(bert.config.hidden_size, n_labels)
        self.lr, self.head_lr, self.dropout = lr, head_lr, dropout

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits of all labels."""
        states = F.dropout(states_of(self.bert, ids, mask)[-1], self.dropout, self.training)
        attention = F.linear(states, self.attention.weight.to(states.dtype))
        attention = attention.masked_fill(~mask[:, :, None], -torch.inf)
        # The weighted mean of scores is the score of the weighted mean, which is never made:
        # documents x labels x size would not fit.
        scores = F.linear(states, self.head.weight.to(states.dtype))
        shares = torch.softmax(attention, dim=1, dtype=torch.float32)
        return (shares * scores).sum(dim=1) + self.head.bias

    def groups(self) -> Groups:
        """The vectors of labels, which start from nothing, have a rate of their own."""
        own = [*self.attention.parameters(), *self.head.parameters()]
        return [
            {"params": list(self.bert.parameters()), "lr": self.lr},
            {"params": own, "lr": self.head_lr},
        ]

    def scores(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits of a block, a few documents at a time."""
        some = max(1, _CELLS // (ids.shape[1] * self.head.out_features))
        parts = zip(ids.split(some), mask.split(some), strict=True)
        return torch.cat([self(*part) for part in parts])
