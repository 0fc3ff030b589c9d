"""The states of a BERT after every layer, over padded batches of a fixed shape.

What depl's own encoder computes (bfloat16 on a GPU, float32 weights, all casts at once), but padded
and with every layer's states: without a shape that depends on the texts, so that a whole training
step can be recorded; and with the dropout of attention, which the packed pass leaves out.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor
from transformers import PreTrainedModel

from depl.neural.layers import has_fast_path, is_rotary, layers_of


def states_of(bert: PreTrainedModel, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    """The embeddings and the states after every layer, (texts, tokens, size) each.

    Parameters
    ----------
    bert : PreTrainedModel
        Any encoder; one that is no BERT runs as transformers runs it.
    ids, mask : Tensor of shape (texts, tokens)
        Token ids, and which of them are tokens of a text.
    """
    if has_fast_path(bert) and not is_rotary(bert):
        return _bert_states(bert, ids, mask)
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
        found = bert(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
    return tuple(found.hidden_states)


def _bert_states(bert: Any, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    config, training = bert.config, bert.training
    dtype = torch.bfloat16 if ids.device.type == "cuda" else torch.float32
    hidden = config.hidden_dropout_prob
    attention = config.attention_probs_dropout_prob if training else 0.0
    blind = torch.zeros(mask.shape, dtype=dtype, device=ids.device)
    blind = blind.masked_fill(~mask, -torch.inf)[:, None, None]

    def norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w, b, config.layer_norm_eps)

    def drop(x: Tensor) -> Tensor:
        return F.dropout(x, hidden, training)

    e = bert.embeddings
    x = F.embedding(ids, e.word_embeddings.weight) + e.position_embeddings.weight[: ids.shape[1]]
    x = norm(x + e.token_type_embeddings.weight[0], e.LayerNorm.weight, e.LayerNorm.bias)
    states = [drop(x.to(dtype))]
    for layer in layers_of(bert, dtype):
        x = states[-1]
        qkv = F.linear(x, layer.qkv, layer.qkv_bias)
        q, k, v = qkv.unflatten(-1, (3, config.num_attention_heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, blind, attention)
        mixed = F.linear(mixed.transpose(1, 2).flatten(2), layer.mix, layer.mix_bias)
        x = norm(x + drop(mixed), layer.norm_1, layer.norm_1_bias)
        wide = F.gelu(F.linear(x, layer.widen, layer.widen_bias))
        wide = F.linear(wide, layer.narrow, layer.narrow_bias)
        states.append(norm(x + drop(wide), layer.norm_2, layer.norm_2_bias))
    return tuple(states)
