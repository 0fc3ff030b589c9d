"""LightXML (Jiang et al., AAAI 2021), its algorithm on any encoder.

A document is the concatenation of the CLS states of the last five layers, with dropout 0.5; a
linear layer scores all labels; the loss is the binary cross-entropy over all of them; the weights
that are used are the mean of many after the first half of the training (SWA). Published settings
for EUR-Lex: learning rate 1e-4 throughout, 20 epochs, 16 documents a step, SWA from epoch 10 on,
every 200 steps.

Above 100,000 labels the authors cluster the labels and sample negatives among clusters; none of the
corpora here has as many, and that part is not implemented.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from scipy.sparse import csr_array
from torch import Tensor, nn
from transformers import PreTrainedModel

from depl.core.errors import ConfigError
from depl.core.ranking import Ranking
from depl.neural.tokens import Tokens
from systems.finetuning import dense_rows, device_of, fine_tune, rank_by, states_of

LAYERS = 5
MOST_LABELS = 100_000


class LightXML(nn.Module):
    """Encoder and classifier.

    Parameters
    ----------
    bert : PreTrainedModel
        The pretrained encoder.
    n_labels : int
        How many labels there are.
    epochs, batch_size, lr, dropout
        The published settings for EUR-Lex by default.
    swa_from, swa_every : int
        The epoch after which weights are averaged, and the steps between two that count.
    seed : int
        Decides the classifier's initial weights, dropout and order.
    """

    def __init__(
        self,
        bert: PreTrainedModel,
        n_labels: int,
        *,
        epochs: int = 20,
        batch_size: int = 16,
        lr: float = 1e-4,
        dropout: float = 0.5,
        swa_from: int = 10,
        swa_every: int = 200,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if n_labels > MOST_LABELS:
            raise ConfigError(
                f"With more than {MOST_LABELS:,} labels LightXML groups them, which is not "
                f"implemented here; got {n_labels:,}."
            )
        torch.manual_seed(seed)
        self.bert = bert
        self.layers = min(LAYERS, bert.config.num_hidden_layers)
        self.head = nn.Linear(self.layers * bert.config.hidden_size, n_labels)
        nn.init.xavier_uniform_(self.head.weight)
        self.epochs, self.batch_size, self.lr, self.dropout = epochs, batch_size, lr, dropout
        self.swa_from, self.swa_every, self.seed = swa_from, swa_every, seed

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits of all labels."""
        states = states_of(self.bert, ids, mask)[-self.layers :]
        document = torch.cat([layer[:, 0] for layer in reversed(states)], dim=-1)
        scores: Tensor = self.head(F.dropout(document, self.dropout, self.training))
        return scores

    def fit(self, tokens: Tokens, Y: csr_array) -> LightXML:
        """Fine-tune on documents and their labels; then take the averaged weights."""
        mean = _Average(self)

        def average(step: int, per_epoch: int) -> None:
            if step > self.swa_from * per_epoch and step % self.swa_every == 0:
                mean.add(self)

        plain = [p for p in self.parameters() if p.ndim < 2]  # biases and norms are not decayed
        rest = [p for p in self.parameters() if p.ndim >= 2]
        fine_tune(
            self,
            tokens,
            lambda ids, mask, rows: F.binary_cross_entropy_with_logits(
                self(ids, mask), dense_rows(Y, rows, device_of(self))
            ),
            [
                {"params": rest, "lr": self.lr},
                {"params": plain, "lr": self.lr, "weight_decay": 0.0},
            ],
            epochs=self.epochs,
            batch_size=self.batch_size,
            decay=False,
            seed=self.seed,
            title="LightXML",
            after_step=average,
        )
        mean.put_into(self)
        return self

    def rank(self, tokens: Tokens, k: int) -> Ranking:
        """The k best labels of every document."""
        return rank_by(self, self, tokens, k)


class _Average:
    """A running mean of a model's weights (stochastic weight averaging)."""

    def __init__(self, model: nn.Module) -> None:
        self.count = 0
        self.weights = [torch.zeros_like(p) for p in model.parameters()]

    @torch.no_grad()
    def add(self, model: nn.Module) -> None:
        self.count += 1
        now = [p.detach() for p in model.parameters()]
        torch._foreach_lerp_(self.weights, now, 1 / self.count)

    @torch.no_grad()
    def put_into(self, model: nn.Module) -> None:
        """Leave the mean in the model; where nothing was added, the model as it is."""
        if self.count:
            for parameter, weight in zip(model.parameters(), self.weights, strict=True):
                parameter.copy_(weight)
