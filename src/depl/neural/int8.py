"""The forward pass of BERT in 8-bit integers, for processors with instructions for them.

Each token has a scale of its own, so that a text's vector does not depend on the other texts of
its batch. Attention is computed in bfloat16 where the processor has instructions for that, in
float32 elsewhere. Between the products nothing but ``_int8_kernels`` touches the numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from torch import Tensor

from depl.neural import _int8_kernels as kernels
from depl.neural.layers import Int8, Layer, multiplies_bfloat16
from depl.neural.packing import Packed

Weights = tuple[NDArray[np.float32], NDArray[np.float32]]  # scales of columns, and the bias

_SCORES = 65_536  # scores of a head that are computed at a time: with 12 heads they stay in a cache


def int8_states(bert: Any, x: Tensor, batch: Packed, layers: list[Layer]) -> Tensor:  # noqa: ANN401
    """Last hidden states of all tokens, from their embeddings, (total, size)."""
    heads = bert.config.num_attention_heads
    epsilon = np.float32(bert.config.layer_norm_eps)
    values, scales = torch.empty(x.shape, dtype=torch.int8), np.empty(len(x), np.float32)
    x = x.clone()
    kernels.quantize(x.numpy(), values.numpy(), scales)
    widest = max(_columns(w) for layer in layers for w in (layer.qkv, layer.widen))
    room = torch.empty(len(x) * widest, dtype=torch.int32)
    wide = torch.empty(len(x), _columns(layers[0].widen), dtype=torch.int8)

    def add_and_norm(
        products: NDArray[np.int32], weights: Weights, gain: Tensor, shift: Tensor
    ) -> None:
        columns, bias = weights
        kernels.add_and_norm(
            products,
            scales,
            columns,
            bias,
            x.numpy(),
            gain.numpy(),
            shift.numpy(),
            epsilon,
            values.numpy(),
            scales,
        )

    for layer in layers:
        _attend(_products(values, layer.qkv, room), layer, heads, batch, values, scales)
        weights = _columns_and_bias(layer.mix, layer.mix_bias)
        products = _products(values, layer.mix, room)
        add_and_norm(products, weights, layer.norm_1, layer.norm_1_bias)
        weights = _columns_and_bias(layer.widen, layer.widen_bias)
        products = _products(values, layer.widen, room)
        kernels.gelu(products, scales, *weights, wide.numpy(), scales)
        weights = _columns_and_bias(layer.narrow, layer.narrow_bias)
        products = _products(wide, layer.narrow, room)
        add_and_norm(products, weights, layer.norm_2, layer.norm_2_bias)
    return x


def _columns(w: Tensor | Int8) -> int:
    assert isinstance(w, Int8)
    return w.values.shape[1]


def _products(values: Tensor, w: Tensor | Int8, room: Tensor) -> NDArray[np.int32]:
    """Integer products of tokens and a matrix, in memory that is used again and again."""
    assert isinstance(w, Int8)
    out = room[: len(values) * w.values.shape[1]].view(len(values), -1)
    return torch._int_mm(values, w.values, out=out).numpy()


def _columns_and_bias(w: Tensor | Int8, bias: Tensor | None) -> Weights:
    assert isinstance(w, Int8)
    assert bias is not None  # of a BERT
    return w.scale.numpy().ravel(), bias.numpy()


def _attend(
    products: NDArray[np.int32],
    layer: Layer,
    heads: int,
    batch: Packed,
    values: Tensor,
    scales: NDArray[np.float32],
) -> None:
    """Attention within each text, from the products of queries, keys and values, in 8 bits."""
    weights = _columns_and_bias(layer.qkv, layer.qkv_bias)
    if not multiplies_bfloat16():
        states = torch.empty(products.shape)
        kernels.dequantize(products, scales, *weights, states.numpy())
        q, k, v = states.view(len(states), 3, heads, -1).unbind(1)
        mixed = attend_padded(q, k, v, batch).flatten(1)
        kernels.quantize(mixed.contiguous().numpy(), values.numpy(), scales)
        return
    size = products.shape[1] // 3 // heads
    factor = np.float32(math.log2(math.e) / math.sqrt(size))
    starts, positions = batch.starts.numpy(), batch.positions.numpy()
    some = max(1, _SCORES // max(1, batch.longest) ** 2)
    for first in range(0, batch.n_texts, some):
        begin, *_, end = starts[first : first + some + 1]
        mine = slice(begin, end)
        lengths = np.diff(starts[first : first + some + 1]).astype(np.int64)
        texts, longest = batch.text.numpy()[mine] - first, int(lengths.max())
        full = len(lengths) * longest == end - begin
        shape = (3, len(lengths), heads, longest, size)
        # What pads the values is multiplied by 0, so it must be a number.
        new = torch.empty if full else torch.zeros
        qkv = new(shape, dtype=torch.bfloat16)
        where = (texts, positions[mine])
        kernels.spread(products[mine], scales[mine], *weights, *where, factor, _bits(qkv))
        q, k, v = qkv.flatten(1, 2)
        scores = torch.bmm(q, k.transpose(1, 2)).view(*shape[1:4], longest)
        kernels.softmax(_bits(scores), lengths)
        mixed = torch.bmm(scores.flatten(0, 1), v).view(shape[1:])
        kernels.gather(_bits(mixed), *where, values.numpy()[mine], scales[mine])


def attend_padded(q: Tensor, k: Tensor, v: Tensor, batch: Packed) -> Tensor:
    """Attention within each text in float32; (total, heads, size of a head) in and out."""
    if batch.n_texts * batch.longest == len(batch.ids):  # all of one length: nothing to pad
        shape = (batch.n_texts, batch.longest, *q.shape[1:])
        q, k, v = (t.view(shape).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(0, 1)
    padded = [batch.pad(t) for t in (q, k, v)]
    mask = padded[0][1]
    q, k, v = (t.transpose(1, 2) for t, _ in padded)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
    return out.transpose(1, 2)[mask]


def _bits(x: Tensor) -> NDArray[np.uint16]:
    """The same memory as integers: numpy has no bfloat16."""
    return x.view(torch.int16).numpy().view(np.uint16)
