"""LightXML (Jiang et al., AAAI 2021), its algorithm on any encoder.

A document is the concatenation of the CLS states of the last five layers, with dropout 0.5; a
linear layer scores all labels; the loss is the binary cross-entropy over all of them; the weights
that are used are the mean of many after the first half of the training (SWA). Published settings
for EUR-Lex: learning rate 1e-4 throughout, 20 epochs, 16 documents a step, SWA from epoch 10 on,
every 200 steps. The authors' program goes on for five more epochs and keeps the one that is best on
the test split; here it is the last.

Above 100,000 labels the authors cluster the labels and sample negatives among clusters; none of the
corpora here has as many, and that part is not implemented.
"""

from __future__ import annotations

from typing import Self

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from scipy.sparse import csr_array
from torch import Tensor, nn
from transformers import PreTrainedModel

from depl.core.errors import ConfigError
from depl.neural.tokens import Tokens
from systems.finetuning import FineTuned, Groups
from systems.states import states_of

LAYERS = 5
MOST_LABELS = 100_000


class LightXML(FineTuned):
    """Encoder and classifier.

    Parameters
    ----------
    bert, n_labels
        The pretrained encoder, and how many labels there are.
    lr, dropout : float
        The published settings for EUR-Lex by default.
    swa_from, swa_every : int
        The epoch after which weights are averaged, and the steps between two that count.
    **training
        Epochs, batch_size and seed, as ``FineTuned`` takes them.
    """

    title, epochs, batch_size = "LightXML", 20, 16
    decay = False
    max_norm = float("inf")  # gradients as they are

    def __init__(
        self,
        bert: PreTrainedModel,
        n_labels: int,
        *,
        lr: float = 1e-4,
        dropout: float = 0.5,
        swa_from: int = 10,
        swa_every: int = 200,
        **training: int,
    ) -> None:
        if n_labels > MOST_LABELS:
            raise ConfigError(
                f"With more than {MOST_LABELS:,} labels LightXML groups them, which is not "
                f"implemented here; got {n_labels:,}."
            )
        super().__init__(bert, **training)
        self.layers = min(LAYERS, bert.config.num_hidden_layers)
        self.head = nn.Linear(self.layers * bert.config.hidden_size, n_labels)
        self.lr, self.dropout = lr, dropout
        self.swa_from, self.swa_every = swa_from, swa_every

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits of all labels."""
        states = states_of(self.bert, ids, mask)[-self.layers :]
        document = torch.cat([layer[:, 0] for layer in reversed(states)], dim=-1).float()
        scores: Tensor = self.head(F.dropout(document, self.dropout, self.training))
        return scores

    def groups(self) -> Groups:
        """One learning rate; biases and norms are not decayed."""
        plain = [p for p in self.parameters() if p.ndim < 2]
        rest = [p for p in self.parameters() if p.ndim >= 2]
        return [
            {"params": rest, "lr": self.lr},
            {"params": plain, "lr": self.lr, "weight_decay": 0.0},
        ]

    def after_step(self, step: int, per_epoch: int) -> None:
        """Let the weights count, now and then."""
        if step > self.swa_from * per_epoch and step % self.swa_every == 0:
            self._mean.add(self)

    def fit(self, tokens: Tokens, Y: csr_array, *, eager: bool = False) -> Self:
        """Fine-tune on documents and their labels; then take the averaged weights."""
        self._mean = _Average(self)
        super().fit(tokens, Y, eager=eager)
        self._mean.put_into(self)
        return self


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
