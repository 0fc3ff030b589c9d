"""From texts to vectors with an encoder, and from scores to a ranking. Nothing learns here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depl.core.progress import bar
from depl.core.ranking import Ranking
from depl.neural.encoder import DualEncoder, pooled_batches
from depl.neural.packing import TokenBank
from depl.neural.tokens import Tokens, batches

Side = Literal["document", "label"]
# Tokens; or the encoder's pooled states of the texts, where it is not to be trained.
Texts = Tokens | NDArray[np.float32]

_GPU_TOKENS, _CPU_TOKENS = 65_536, 1_024  # tokens a batch


@torch.inference_mode()
def pooled_states(
    encoder: DualEncoder, tokens: Tokens, side: Side, *, title: str = "", budget: int | None = None
) -> Tensor:
    """What the poolers take: the pooled last states of many texts, (n, size) float32.

    Texts go from long to short in batches of about ``budget`` tokens.
    """
    encoder.eval()
    pooling = encoder.document_pooling if side == "document" else encoder.label_pooling
    budget = budget or (_GPU_TOKENS if encoder.device.type == "cuda" else _CPU_TOKENS)
    out = torch.empty(len(tokens), encoder.document_pooler.in_features, device=encoder.device)
    bank = TokenBank(tokens, encoder.device)
    with bar(title or f"encoding {side}s", total=len(tokens)) as tell:
        done = 0
        parts = batches(tokens.lengths, budget)
        for rows, states in pooled_batches(encoder, bank, parts, pooling):
            out[torch.from_numpy(rows).to(out.device)] = states
            done += len(rows)
            tell(done, "")
    return out


@torch.inference_mode()
def encode(encoder: DualEncoder, texts: Texts, side: Side) -> Tensor:
    """Vectors of many texts, (n, size) float32, on the encoder's device."""
    if isinstance(texts, Tokens):
        states = pooled_states(encoder, texts, side)
    else:
        states = torch.from_numpy(texts).to(encoder.device)
    return (encoder.document_pooler if side == "document" else encoder.label_pooler)(states)  # type: ignore[no-any-return]


@torch.inference_mode()
def rank(scores: Callable[[slice], Tensor], n: int, k: int, block: int = 2_048) -> Ranking:
    """Top k of scores computed a block of documents at a time; ties by label position."""
    out = Ranking.empty(n, k)
    for first in range(0, n, block):
        rows = slice(first, min(first + block, n))
        values, labels = torch.sort(scores(rows), dim=1, descending=True, stable=True)
        width = min(k, values.shape[1])
        out.indices[rows, :width] = labels[:, :width].cpu().numpy()
        out.scores[rows, :width] = values[:, :width].cpu().numpy()
    return out
