"""The forward pass of BERT and NomicBERT over packed batches, on Hugging Face's own weights.

On a GPU attention runs over the packed row with PyTorch's variable-length kernel and everything
else in bfloat16 with float32 master weights. On a CPU only attention is padded; all is in
float32, or the matrix products in 8-bit integers. Other encoders run padded.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor
from transformers import PreTrainedModel

from depl.neural.int8 import attend_padded, int8_states
from depl.neural.layers import Int8, Layer, has_fast_path, is_rotary, layers_of, to_int8
from depl.neural.packing import Packed

# oneDNN's linear layer, with the activation in it. On an AMD CPU it is a tenth faster than MKL's,
# which F.linear calls; it has no gradients.
_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")
Rotation = tuple[Tensor, Tensor]  # cosines and sines of every token, (total, 1, size of a head)


def token_states(
    bert: PreTrainedModel,
    batch: Packed,
    training: bool,
    layers: list[Layer] | None = None,
    *,
    compiled: bool = True,
) -> Tensor:
    """Last hidden state of every token, (total, size); ``layers`` replace the encoder's own.

    ``compiled``: 8-bit layers of a BERT are computed by compiled loops.
    """
    if has_fast_path(bert):
        return _packed_states(bert, batch, training, layers, compiled)
    padded, mask = batch.pad(batch.ids)
    states = bert(input_ids=padded, attention_mask=mask.long()).last_hidden_state
    return states[mask]  # type: ignore[no-any-return]


def _packed_states(
    bert: Any,  # noqa: ANN401
    batch: Packed,
    training: bool,
    layers: list[Layer] | None,
    compiled: bool,
) -> Tensor:
    """The forward pass over a packed row, on the weights of the Hugging Face module.

    Attention dropout is left out: the variable-length kernel has none.
    """
    config = bert.config
    dtype = torch.bfloat16 if batch.ids.device.type == "cuda" else torch.float32
    heads = config.num_attention_heads
    dropout = config.hidden_dropout_prob if training else 0.0

    def norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w, b, config.layer_norm_eps)

    e = bert.embeddings
    x = F.embedding(batch.ids, e.word_embeddings.weight)
    rotation = _rotation(bert, batch, dtype) if is_rotary(bert) else None
    if rotation is None:
        x = x + F.embedding(batch.positions, e.position_embeddings.weight)
    x = norm(x + e.token_type_embeddings.weight[0], e.LayerNorm.weight, e.LayerNorm.bias)
    if layers is not None and rotation is None and compiled:
        return int8_states(bert, x, batch, layers)
    x = F.dropout(x.to(dtype), dropout, training)
    for layer in layers or layers_of(bert, dtype):
        q, k, v = _linear(x, layer.qkv, layer.qkv_bias).view(len(x), 3, heads, -1).unbind(1)
        if rotation is not None:
            q, k = _rotated(q, rotation), _rotated(k, rotation)
        mixed = _attend(q, k, v, batch).flatten(1)
        mixed = F.dropout(_linear(mixed, layer.mix, layer.mix_bias), dropout, training)
        x = norm(x + mixed, layer.norm_1, layer.norm_1_bias)
        if rotation is None:
            wide = _linear(x, layer.widen, layer.widen_bias, gelu=True)
        else:
            gate, wide = _linear(x, layer.widen, layer.widen_bias).chunk(2, dim=-1)
            wide = F.silu(gate) * wide
        wide = F.dropout(_linear(wide, layer.narrow, layer.narrow_bias), dropout, training)
        x = norm(x + wide, layer.norm_2, layer.norm_2_bias)
    return x


def _linear(x: Tensor, w: Tensor | Int8, b: Tensor | None, *, gelu: bool = False) -> Tensor:
    """A linear layer in floats or in 8-bit integers, and the activation if asked for."""
    if isinstance(w, Int8):
        x = _int8_linear(x, w, b)
    elif _ONEDNN and x.device.type == "cpu" and not torch.is_grad_enabled():
        call = torch.ops.mkldnn._linear_pointwise
        return call(x, w, b, "gelu" if gelu else "none", [], "none")  # type: ignore[no-any-return]
    else:
        x = F.linear(x, w, b)
    return F.gelu(x) if gelu else x


def _int8_linear(x: Tensor, w: Int8, b: Tensor | None) -> Tensor:
    """A linear layer in 8-bit integers; each token has a scale of its own."""
    values, scale = to_int8(x)
    x = torch._int_mm(values, w.values).float().mul_(scale).mul_(w.scale)
    return x if b is None else x.add_(b)


def _rotation(bert: Any, batch: Packed, dtype: torch.dtype) -> Rotation:  # noqa: ANN401
    """By how much the queries and keys of every token are turned, by its position in its text."""
    angles = batch.positions[:, None].float() * bert.rotary_emb.inv_freq.float()
    angles = torch.cat([angles, angles], dim=-1)[:, None]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotated(x: Tensor, rotation: Rotation) -> Tensor:
    """Turn vectors (total, heads, size), whose second halves are at right angles to the first."""
    first, second = x.chunk(2, dim=-1)
    return x * rotation[0] + torch.cat([-second, first], dim=-1) * rotation[1]


def _attend(q: Tensor, k: Tensor, v: Tensor, batch: Packed) -> Tensor:
    """Attention within each text; (total, heads, size of a head) in and out."""
    if q.device.type == "cuda":
        from torch.nn.attention.varlen import varlen_attn

        starts, longest = batch.starts, batch.longest
        return varlen_attn(q, k, v, starts, starts, longest, longest)  # type: ignore[return-value]
    return attend_padded(q, k, v, batch)
