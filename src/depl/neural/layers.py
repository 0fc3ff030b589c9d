"""The weights of an encoder's layers, as the packed forward pass of ``bert.py`` takes them.

BERT has biases and one matrix that widens; NomicBERT has no biases, and a second matrix whose
output gates the first. Both become the same ``Layer``, in the type that is computed with.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import BertModel, PreTrainedModel

_NOMIC = "nomic_bert"  # not imported: older versions of transformers do not have it


def has_fast_path(bert: PreTrainedModel) -> bool:
    """Whether the packed forward pass computes this encoder."""
    if is_rotary(bert):
        kind = (bert.config.rope_parameters["rope_type"], bert.config.hidden_act)
        return kind == ("default", "silu")
    return isinstance(bert, BertModel) and bert.config.hidden_act == "gelu"


def is_rotary(bert: PreTrainedModel) -> bool:
    """Whether it is a NomicBERT: rotated queries and keys, gated layers, no biases."""
    return bool(bert.config.model_type == _NOMIC)


class Int8(NamedTuple):
    """A matrix (in, out) of 8-bit integers, and the scale of each column."""

    values: Tensor
    scale: Tensor


class Layer(NamedTuple):
    """The weights of one layer; matrices that are multiplied with the same vectors are one.

    ``qkv`` are queries, keys and values. Where a layer is gated, the gate is the first half of
    ``widen``.
    """

    qkv: Tensor | Int8
    qkv_bias: Tensor | None
    mix: Tensor | Int8
    mix_bias: Tensor | None
    norm_1: Tensor
    norm_1_bias: Tensor
    widen: Tensor | Int8
    widen_bias: Tensor | None
    narrow: Tensor | Int8
    narrow_bias: Tensor | None
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
    fields = _rotary_fields(bert) if is_rotary(bert) else _bert_fields(bert)
    groups = [field for field in fields if field]  # the others are biases that there are not
    if dtype == groups[0][0].dtype:
        whole = [torch.cat(group) if len(group) > 1 else group[0] for group in groups]
    else:
        whole = _CastTogether.apply(  # type: ignore[no-untyped-call]
            dtype, [len(group) for group in groups], *(t for group in groups for t in group)
        )
    there = iter(whole)
    found: list[Any] = [next(there) if field else None for field in fields]
    width = len(Layer._fields)
    return [Layer(*found[i : i + width]) for i in range(0, len(found), width)]


def _bert_fields(bert: Any) -> list[list[Tensor]]:  # noqa: ANN401
    """What each field of each layer is made of, in their order."""
    fields: list[list[Tensor]] = []
    for layer in bert.encoder.layer:
        a = layer.attention
        together = (a.self.query, a.self.key, a.self.value)
        fields += [[m.weight for m in together], [m.bias for m in together]]
        alone = (a.output.dense, a.output.LayerNorm, layer.intermediate.dense)
        for m in (*alone, layer.output.dense, layer.output.LayerNorm):
            fields += [[m.weight], [m.bias]]
    return fields


def _rotary_fields(bert: Any) -> list[list[Tensor]]:  # noqa: ANN401
    """The same of a NomicBERT."""
    fields: list[list[Tensor]] = []
    for layer in bert.layers:
        a, m = layer.self_attn, layer.mlp
        norms = (layer.post_attention_layernorm, layer.post_mlp_layernorm)
        first, second = ([[norm.weight], [norm.bias]] for norm in norms)
        fields += [[a.q_proj.weight, a.k_proj.weight, a.v_proj.weight], []]
        fields += [[a.o_proj.weight], [], *first]
        fields += [[m.gate_proj.weight, m.up_proj.weight], [], [m.down_proj.weight], [], *second]
    return fields


def multiplies_int8() -> bool:
    """Whether the processor has instructions for products of 8-bit integers (VNNI or AMX).

    Without them these products are emulated: on a CPU with AVX2 alone they took 30 times as long
    as in float32. Only Linux says which instructions there are.
    """
    return not _instructions().isdisjoint({"avx512_vnni", "avx_vnni", "amx_int8"})


def multiplies_bfloat16() -> bool:
    """Whether it has instructions for products of bfloat16, which take a quarter of the time.

    Not where PyTorch would take AMX for them: on machines whose system does not let a process use
    AMX, although the processor lists it, that ends the process.
    """
    return "avx512_bf16" in _instructions() and "amx_bf16" not in _instructions()


@cache
def _instructions() -> frozenset[str]:
    """What the processor can do, by Linux's names."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    flags = (line.partition(":")[2] for line in told.splitlines() if line.startswith("flags"))
    return frozenset(next(flags, "").split())


def int8_layers(bert: PreTrainedModel) -> list[Layer] | None:
    """All layers with their matrices in 8 bits; None for an encoder that has no fast path."""
    if not has_fast_path(bert):
        return None
    names = ("qkv", "mix", "widen", "narrow")

    def small(w: Tensor) -> Int8:
        values, scale = to_int8(w)
        return Int8(values.T, scale.T)

    return [
        layer._replace(**{name: small(getattr(layer, name)) for name in names})  # type: ignore[arg-type]
        for layer in layers_of(bert, torch.float32)
    ]


def to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as 8-bit integers, and the scale of each row."""
    scale = x.abs().amax(-1, keepdim=True).clamp_(min=1e-12).div_(127)
    return (x / scale).round_().to(torch.int8), scale
