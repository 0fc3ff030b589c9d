"""What fine-tuned systems share: one training loop, and rankings block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from scipy.sparse import csr_array
from torch import Tensor, nn
from transformers import PreTrainedModel

from depl.core.progress import bar
from depl.core.ranking import Ranking
from depl.neural.packing import on_device
from depl.neural.tokens import Tokens
from depl.neural.training import share_of_rate
from systems.recorded import Recorded
from systems.tables import Documents

Groups = list[dict[str, Any]]
_BLOCK = 256  # documents that are scored at a time
_TELL_EVERY = 50  # steps between two readings of the loss: reading it makes the GPU wait


class FineTuned(nn.Module, ABC):
    """An encoder and what scores labels by its states, trained together by AdamW.

    Parameters
    ----------
    bert : PreTrainedModel
        The pretrained encoder.
    epochs, batch_size : int or None
        How long, and how many documents a step; None as the system's class has them.
    seed : int
        Decides initial weights, dropout and order.
    """

    title: str
    epochs: int
    batch_size: int
    decay = True  # learning rates rise over a share of the steps and fall linearly, or stay
    warmup = 0.1
    weight_decay = 0.01
    max_norm = 1.0  # of a step's gradient

    def __init__(
        self,
        bert: PreTrainedModel,
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.bert = bert
        self.epochs = self.epochs if epochs is None else epochs
        self.batch_size = self.batch_size if batch_size is None else batch_size
        self.seed = seed

    @abstractmethod
    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Scores of all labels for a padded batch, by which they are ranked."""

    @abstractmethod
    def groups(self) -> Groups:
        """Parameters and their learning rates, as PyTorch's optimisers take them."""

    def loss(self, ids: Tensor, mask: Tensor, targets: Tensor) -> Tensor:
        """Binary cross-entropy over all labels, whose scores are logits."""
        return F.binary_cross_entropy_with_logits(self(ids, mask), targets)

    def after_step(self, step: int, per_epoch: int) -> None:
        """Called with the number of steps done and the steps of an epoch."""

    def fit(self, tokens: Tokens, Y: csr_array, *, eager: bool = False) -> Self:
        """Train in place, on the device where the weights are.

        Parameters
        ----------
        tokens : Tokens
            The training documents.
        Y : csr_array of shape (n_documents, n_labels)
            Which document carries which label.
        eager : bool
            Start every operation by itself on a GPU, too, instead of recording a step.
        """
        torch.manual_seed(self.seed)
        device = self._device
        documents = Documents(tokens, device, Y)
        rates = [float(group["lr"]) for group in self.groups()]
        # As tensors, because what is recorded reads them from there.
        groups = [
            group | {"lr": torch.tensor(rate, device=device)}
            for group, rate in zip(self.groups(), rates, strict=True)
        ]
        recorded = device.type == "cuda" and not eager
        optimizer = torch.optim.AdamW(
            groups, weight_decay=self.weight_decay, fused=True, capturable=recorded
        )
        parameters = list(self.parameters())

        def work(rows: Tensor) -> Tensor:
            optimizer.zero_grad(set_to_none=True)
            loss = self.loss(*documents.texts(rows), documents.targets(rows))
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, self.max_norm)
            optimizer.step()
            return loss.detach()

        take_step = Recorded(work) if recorded else work
        per_epoch = -(-len(tokens) // self.batch_size)
        total = self.epochs * per_epoch
        self.train()
        with bar(self.title, total=total) as tell:
            for step in range(total):
                epoch, i = divmod(step, per_epoch)
                if i == 0:
                    rng = np.random.default_rng([self.seed, epoch])
                    order = on_device(rng.permutation(len(tokens)), device)
                if self.decay:
                    for group, rate in zip(optimizer.param_groups, rates, strict=True):
                        group["lr"].fill_(rate * share_of_rate(step, total, self.warmup))
                loss = take_step(order[i * self.batch_size : (i + 1) * self.batch_size])
                self.after_step(step + 1, per_epoch)
                if step % _TELL_EVERY == 0:
                    tell(step, f"loss {float(loss):.4f}")
        self.eval()
        return self

    @torch.inference_mode()
    def rank(self, tokens: Tokens, k: int) -> Ranking:
        """The k best labels of every document."""
        self.eval()
        documents = Documents(tokens, self._device)
        order = np.argsort(-tokens.lengths, kind="stable")  # so that little is padded
        out: Ranking | None = None
        for first in range(0, len(order), _BLOCK):
            rows = order[first : first + _BLOCK]
            width = int(tokens.lengths[rows[0]])
            found = self.scores(*documents.texts(on_device(rows, self._device), width))
            values, labels = torch.sort(found, dim=1, descending=True, stable=True)
            out = out or Ranking.empty(len(tokens), min(k, values.shape[1]))
            some = out.indices.shape[1]
            out.indices[rows] = labels[:, :some].cpu().numpy()
            out.scores[rows] = values[:, :some].cpu().numpy()
        assert out is not None
        return out

    def scores(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The scores of a whole block; in parts, where it does not fit in memory."""
        found: Tensor = self(ids, mask)
        return found

    @property
    def _device(self) -> torch.device:
        return next(self.parameters()).device
