"""What fine-tuned systems share: padded batches, one training loop, scores block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from depl.core.progress import bar
from depl.core.ranking import Ranking
from depl.neural.packing import TokenBank, on_device
from depl.neural.tokens import Tokens

Groups = list[dict[str, object]]
_BLOCK = 256  # documents that are scored at a time


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights are."""
    return next(model.parameters()).device


def states_of(bert: nn.Module, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    """The states after every layer, (texts, tokens, size) each; in bfloat16 on a GPU."""
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
        found = bert(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
    return tuple(x.float() for x in found.hidden_states)


def dense_rows(Y: csr_array, rows: NDArray[np.integer], device: torch.device) -> Tensor:
    """Some rows of Y, dense."""
    return on_device(Y[rows].toarray().astype(np.float32), device)


def fine_tune(
    model: nn.Module,
    tokens: Tokens,
    loss_of: Callable[[Tensor, Tensor, NDArray[np.integer]], Tensor],
    groups: Groups,
    *,
    epochs: int,
    batch_size: int,
    decay: bool,
    seed: int,
    title: str,
    after_step: Callable[[int, int], None] = lambda step, per_epoch: None,
) -> None:
    """Train in place by AdamW.

    Parameters
    ----------
    model : nn.Module
        On the device to train on.
    tokens : Tokens
        The training documents.
    loss_of : callable
        The loss of a padded batch: its ids, its mask, and which documents it has.
    groups : list of dict
        Parameters and their learning rates, as PyTorch's optimisers take them.
    epochs, batch_size, seed
        How long, how many documents a step, and in which order.
    decay : bool
        Whether learning rates rise over the first tenth and fall linearly, or stay.
    title : str
        What the progress bar says.
    after_step : callable
        Called with the number of steps done and the steps of an epoch.
    """
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    rates = [group["lr"] for group in optimizer.param_groups]
    bank = TokenBank(tokens, device_of(model))
    per_epoch = -(-len(tokens) // batch_size)
    total = epochs * per_epoch
    model.train()
    with bar(title, total=total) as tell:
        for epoch in range(epochs):
            order = np.random.default_rng([seed, epoch]).permutation(len(tokens))
            for i in range(per_epoch):
                step = epoch * per_epoch + i
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * (_slope(step, total) if decay else 1.0)
                rows = order[i * batch_size : (i + 1) * batch_size]
                batch = bank.pack(rows)
                loss = loss_of(*batch.pad(batch.ids), rows)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                after_step(step + 1, per_epoch)
                if step % 50 == 0:
                    tell(step, f"loss {float(loss.detach()):.4f}")
    model.eval()


@torch.inference_mode()
def rank_by(
    model: nn.Module, scores: Callable[[Tensor, Tensor], Tensor], tokens: Tokens, k: int
) -> Ranking:
    """The k best labels of every document, by scores of padded batches."""
    model.eval()
    bank = TokenBank(tokens, device_of(model))
    out: Ranking | None = None
    for rows in _blocks(tokens):
        batch = bank.pack(rows)
        values, labels = torch.sort(
            scores(*batch.pad(batch.ids)), dim=1, descending=True, stable=True
        )
        out = out or Ranking.empty(len(tokens), min(k, values.shape[1]))
        width = out.indices.shape[1]
        out.indices[rows] = labels[:, :width].cpu().numpy()
        out.scores[rows] = values[:, :width].cpu().numpy()
    assert out is not None
    return out


def _blocks(tokens: Tokens) -> Iterator[NDArray[np.int64]]:
    """Documents of similar length together, so that little is padded."""
    order = np.argsort(-tokens.lengths, kind="stable")
    for first in range(0, len(order), _BLOCK):
        yield order[first : first + _BLOCK]


def _slope(step: int, total: int) -> float:
    rise = max(1, total // 10)
    return (step + 1) / rise if step < rise else (total - step) / max(1, total - rise)
