"""BERT's forward pass over packed batches, on the weights of the Hugging Face module.

On a GPU attention runs over the packed row with PyTorch's variable-length kernel and everything
else in bfloat16 with float32 master weights. On a CPU only attention is padded; all is in
float32, or the matrix products in 8-bit integers. Encoders other than BERT run padded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from torch import Tensor
from transformers import BertModel, PreTrainedModel

from depl.neural.packing import Packed

# oneDNN's linear layer, with the activation in it. On an AMD CPU it is a tenth faster than MKL's,
# which F.linear calls; it has no gradients.
_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


def token_states(
    bert: PreTrainedModel,
    batch: Packed,
    training: bool,
    layers: list[Layer] | None = None,
) -> Tensor:
    """Last hidden state of every token, (total, size); ``layers`` replace BERT's own."""
    if has_fast_path(bert):
        return _packed_bert(bert, batch, training, layers)
    padded, mask = batch.pad(batch.ids)
    states = bert(input_ids=padded, attention_mask=mask.long()).last_hidden_state
    return states[mask]  # type: ignore[no-any-return]


def has_fast_path(bert: PreTrainedModel) -> bool:
    """Whether the fast path below computes this encoder."""
    return isinstance(bert, BertModel) and bert.config.hidden_act == "gelu"


def _packed_bert(
    bert: Any,  # noqa: ANN401
    batch: Packed,
    training: bool,
    layers: list[Layer] | None,
) -> Tensor:
    """BERT's forward pass over a packed row, on the weights of the Hugging Face module.

    Attention dropout is left out: the variable-length kernel has none.
    """
    config = bert.config
    dtype = torch.bfloat16 if batch.ids.device.type == "cuda" else torch.float32
    heads = config.num_attention_heads
    dropout = config.hidden_dropout_prob if training else 0.0
    onednn = _ONEDNN and batch.ids.device.type == "cpu" and not torch.is_grad_enabled()

    def linear(
        x: Tensor, w: Tensor | Int8, b: Tensor, then: Literal["none", "gelu"] = "none"
    ) -> Tensor:
        if isinstance(w, Int8):
            x = _int8_linear(x, w, b)
            return F.gelu(x) if then == "gelu" else x
        if onednn:
            call = torch.ops.mkldnn._linear_pointwise
            return call(x, w, b, then, [], "none")  # type: ignore[no-any-return]
        x = F.linear(x, w, b)
        return F.gelu(x) if then == "gelu" else x

    def norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w, b, config.layer_norm_eps)

    e = bert.embeddings
    x = F.embedding(batch.ids, e.word_embeddings.weight)
    x = x + F.embedding(batch.positions, e.position_embeddings.weight)
    x = norm(x + e.token_type_embeddings.weight[0], e.LayerNorm.weight, e.LayerNorm.bias)
    x = F.dropout(x.to(dtype), dropout, training)
    for layer in layers or layers_of(bert, dtype):
        q, k, v = linear(x, layer.qkv, layer.qkv_bias).view(len(x), 3, heads, -1).unbind(1)
        mixed = _attend(q, k, v, batch).flatten(1)
        mixed = F.dropout(linear(mixed, layer.mix, layer.mix_bias), dropout, training)
        x = norm(x + mixed, layer.norm_1, layer.norm_1_bias)
        wide = linear(x, layer.widen, layer.widen_bias, "gelu")
        wide = F.dropout(linear(wide, layer.narrow, layer.narrow_bias), dropout, training)
        x = norm(x + wide, layer.norm_2, layer.norm_2_bias)
    return x


class Int8(NamedTuple):
    """A matrix (in, out) of 8-bit integers, and the scale of each column."""

    values: Tensor
    scale: Tensor


def _int8_linear(x: Tensor, w: Int8, b: Tensor) -> Tensor:
    """A linear layer in 8-bit integers; each token has a scale of its own."""
    values, scale = _to_int8(x)
    return torch._int_mm(values, w.values).float().mul_(scale).mul_(w.scale).add_(b)


def _to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as 8-bit integers, and the scale of each row."""
    scale = x.abs().amax(-1, keepdim=True).clamp_(min=1e-12).div_(127)
    return (x / scale).round_().to(torch.int8), scale


class Layer(NamedTuple):
    """The weights of one layer of BERT; those of queries, keys and values in one matrix."""

    qkv: Tensor | Int8
    qkv_bias: Tensor
    mix: Tensor | Int8
    mix_bias: Tensor
    norm_1: Tensor
    norm_1_bias: Tensor
    widen: Tensor | Int8
    widen_bias: Tensor
    narrow: Tensor | Int8
    narrow_bias: Tensor
    norm_2: Tensor
    norm_2_bias: Tensor


class _CastTogether(torch.autograd.Function):
    """Cast tensors to another type and concatenate groups of them, in three operations for all.

    Launching a hundred small casts, and those of their gradients, takes longer on a GPU than
    computing a layer.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        dtype: torch.dtype,
        counts: list[int],
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.shapes = [t.shape for t in tensors]
        groups, rest = [], list(tensors)
        for count in counts:
            groups.append(rest[:count])
            rest = rest[count:]
        flat = torch.cat([t.reshape(-1) for t in tensors]).to(dtype)
        pieces = torch.split(flat, [sum(t.numel() for t in group) for group in groups])
        return tuple(
            piece.view(-1, *group[0].shape[1:]) for piece, group in zip(pieces, groups, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        flat = torch.cat([g.reshape(-1) for g in gradients]).float()
        pieces = torch.split(flat, [shape.numel() for shape in ctx.shapes])
        views = [p.view(shape) for p, shape in zip(pieces, ctx.shapes, strict=True)]
        return (None, None, *views)


def layers_of(bert: Any, dtype: torch.dtype) -> list[Layer]:  # noqa: ANN401
    """All layers' weights in the type that is computed with."""
    fields: list[list[Tensor]] = []
    for layer in bert.encoder.layer:
        a = layer.attention
        together = (a.self.query, a.self.key, a.self.value)
        fields += [[m.weight for m in together], [m.bias for m in together]]
        alone = (a.output.dense, a.output.LayerNorm, layer.intermediate.dense)
        for m in (*alone, layer.output.dense, layer.output.LayerNorm):
            fields += [[m.weight], [m.bias]]
    if dtype == fields[0][0].dtype:
        whole = [torch.cat(field) if len(field) > 1 else field[0] for field in fields]
    else:
        tensors = [t for field in fields for t in field]
        whole = _CastTogether.apply(  # type: ignore[no-untyped-call]
            dtype, [len(field) for field in fields], *tensors
        )
    width = len(Layer._fields)
    return [Layer(*whole[i : i + width]) for i in range(0, len(whole), width)]


@cache
def multiplies_int8() -> bool:
    """Whether the processor has instructions for products of 8-bit integers (VNNI or AMX).

    Without them these products are emulated: on a CPU with AVX2 alone they took 30 times as long
    as in float32. Only Linux says which instructions there are.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return any(name in flags for name in ("avx512_vnni", "avx_vnni", "amx_int8"))


def int8_layers(bert: PreTrainedModel) -> list[Layer] | None:
    """All layers with their matrices in 8 bits; None for an encoder that has no fast path."""
    if not has_fast_path(bert):
        return None
    names = ("qkv", "mix", "widen", "narrow")

    def small(w: Tensor) -> Int8:
        values, scale = _to_int8(w)
        return Int8(values.T, scale.T)

    return [
        layer._replace(**{name: small(getattr(layer, name)) for name in names})  # type: ignore[arg-type]
        for layer in layers_of(bert, torch.float32)
    ]


def _attend(q: Tensor, k: Tensor, v: Tensor, batch: Packed) -> Tensor:
    """Attention within each text; (total, heads, size of a head) in and out."""
    if q.device.type == "cuda":
        from torch.nn.attention.varlen import varlen_attn

        starts, longest = batch.starts, batch.longest
        return varlen_attn(q, k, v, starts, starts, longest, longest)  # type: ignore[return-value]
    if batch.n_texts * batch.longest == len(batch.ids):  # all of one length: nothing to pad
        shape = (batch.n_texts, batch.longest, *q.shape[1:])
        q, k, v = (t.view(shape).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(0, 1)
    padded = [batch.pad(t) for t in (q, k, v)]
    mask = padded[0][1]
    q, k, v = (t.transpose(1, 2) for t, _ in padded)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
    return out.transpose(1, 2)[mask]
