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
from scipy.sparse import csr_array
from torch import Tensor, nn
from transformers import PreTrainedModel

from depl.core.ranking import Ranking
from depl.neural.tokens import Tokens
from systems.finetuning import dense_rows, device_of, fine_tune, rank_by, states_of

_CELLS = 2**28  # of documents x tokens x labels that are in memory at a time


class LWAN(nn.Module):
    """Encoder and label-wise attention.

    Parameters
    ----------
    bert : PreTrainedModel
        The pretrained encoder.
    n_labels : int
        How many labels there are.
    epochs, batch_size, lr, head_lr, dropout
        How it is fine-tuned.
    seed : int
        Decides the labels' initial vectors, dropout and order.
    """

    def __init__(
        self,
        bert: PreTrainedModel,
        n_labels: int,
        *,
        epochs: int = 10,
        batch_size: int = 16,
        lr: float = 5e-5,
        head_lr: float = 1e-3,
        dropout: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.bert = bert
        self.attention = nn.Linear(bert.config.hidden_size, n_labels, bias=False)
        self.head = nn.Linear(bert.config.hidden_size, n_labels)
        self.epochs, self.batch_size, self.dropout = epochs, batch_size, dropout
        self.lr, self.head_lr, self.seed = lr, head_lr, seed

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits of all labels."""
        states = F.dropout(states_of(self.bert, ids, mask)[-1], self.dropout, self.training)
        attention = self.attention(states).masked_fill(~mask[:, :, None], -torch.inf)
        # The weighted mean of scores is the score of the weighted mean, which is never made:
        # documents x labels x size would not fit.
        scores = F.linear(states, self.head.weight)
        return (torch.softmax(attention, dim=1) * scores).sum(dim=1) + self.head.bias

    def fit(self, tokens: Tokens, Y: csr_array) -> LWAN:
        """Fine-tune on documents and their labels."""
        own = [*self.attention.parameters(), *self.head.parameters()]
        fine_tune(
            self,
            tokens,
            lambda ids, mask, rows: F.binary_cross_entropy_with_logits(
                self(ids, mask), dense_rows(Y, rows, device_of(self))
            ),
            [
                {"params": list(self.bert.parameters()), "lr": self.lr},
                {"params": own, "lr": self.head_lr},
            ],
            epochs=self.epochs,
            batch_size=self.batch_size,
            decay=True,
            seed=self.seed,
            title="BERT-LWAN",
        )
        return self

    def rank(self, tokens: Tokens, k: int) -> Ranking:
        """The k best labels of every document."""

        def scores(ids: Tensor, mask: Tensor) -> Tensor:
            some = max(1, _CELLS // (ids.shape[1] * self.head.out_features))
            parts = zip(ids.split(some), mask.split(some), strict=True)
            return torch.cat([self(*part) for part in parts])

        return rank_by(self, scores, tokens, k)
