r"""The dual encoder: one BERT for documents and labels, a pooler for each (sections 3.2 and 3.3).

::

    document  ->  BERT  ->  mean (or CLS)  ->  document pooler  ->  phi_doc   \
                                                                              dot product
    label     ->  BERT  ->  mean (or CLS)  ->  label pooler     ->  phi_label /

With a head, ``head(phi_doc)`` are the scores of an ordinary classifier.

Batches are packed: all tokens of all texts in one row, no padding. On a GPU attention runs over the
packed row with PyTorch's variable-length kernel and everything else in bfloat16 with float32 master
weights; on a CPU attention alone is padded, in float32, and each thread has batches of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertModel, PreTrainedModel

from depl.tokens import Tokens

Pooling = Literal["mean", "cls"]
Similarity = Literal["cosine", "dot"]
Rows = NDArray[np.integer]

# oneDNN's linear layer, with the activation in it. On an AMD CPU it is a tenth faster than MKL's,
# which F.linear calls; it knows no gradients.
_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


@dataclass(frozen=True)
class Packed:
    """A batch of texts as one row of tokens, on the encoder's device."""

    ids: Tensor  # (total,) token ids
    positions: Tensor  # (total,) place of each token in its text
    text: Tensor  # (total,) which text each token belongs to
    starts: Tensor  # (n + 1,) int32 cumulative lengths
    longest: int

    @property
    def n_texts(self) -> int:
        """How many texts the batch has."""
        return len(self.starts) - 1


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array as a tensor there, without waiting for the device to finish what it is doing."""
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


class TokenBank:
    """All texts of a corpus on the device, from which batches are packed there.

    A batch then costs two small copies to the device, and no padding. (45,000 documents of 256
    tokens are 46 MB.)
    """

    def __init__(self, tokens: Tokens, device: torch.device) -> None:
        self.tokens = tokens
        self.device = device
        self.ids = torch.from_numpy(tokens.ids).to(device)

    def __len__(self) -> int:
        return len(self.tokens)

    def pack(self, rows: Rows) -> Packed:
        """The texts at these positions, in this order."""
        lengths = self.tokens.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        total = int(starts[-1])
        table = np.stack([starts[:-1], self.tokens.indptr[rows]])
        begin, source = on_device(table, self.device)
        counts = on_device(lengths, self.device)
        text = torch.repeat_interleave(counts, output_size=total)
        positions = torch.arange(total, device=self.device) - begin[text]
        return Packed(
            self.ids[source[text] + positions].long(),
            positions,
            text,
            on_device(starts.astype(np.int32), self.device),
            int(lengths.max()) if len(lengths) else 0,
        )


class DualEncoder(nn.Module):
    """Documents and labels in one space.

    Parameters
    ----------
    bert : PreTrainedModel
        Any Hugging Face encoder; a BERT gets the packed fast path.
    n_labels : int
        Size of the classification head; 0 for none.
    document_pooling, label_pooling : {"mean", "cls"}
        How token states become one vector. The paper takes CLS for documents and the mean for
        labels; with a small sentence encoder the mean serves both better.
    similarity : {"cosine", "dot"}
        Cosines times a learned scale, plus an offset; or the paper's dot product.
    int8 : bool
        Encode with 8-bit numbers on a CPU (training and GPUs take no notice): more than twice as
        fast, for vectors that differ a little.
    """

    def __init__(
        self,
        bert: PreTrainedModel,
        *,
        n_labels: int = 0,
        document_pooling: Pooling = "mean",
        label_pooling: Pooling = "mean",
        similarity: Similarity = "cosine",
        int8: bool = False,
    ) -> None:
        super().__init__()
        size = bert.config.hidden_size
        self.bert = bert
        self.document_pooling: Pooling = document_pooling
        self.label_pooling: Pooling = label_pooling
        self.cosine = similarity == "cosine"
        self.int8 = int8
        self._int8_layers: list[_Layer] | None = None
        self.document_pooler = _identity_linear(size)
        self.label_pooler = _identity_linear(size)
        self.head = nn.Linear(size, n_labels) if n_labels else None
        if self.head is not None:
            nn.init.normal_(self.head.weight, std=0.02)
            nn.init.constant_(self.head.bias, -4.0)  # labels are rare: start from "no"
        # Cosines times a scale, plus an offset, are logits; both learn fast (see training.py).
        self.logit_scale = nn.Parameter(torch.tensor(20.0 if self.cosine else 1.0))
        self.logit_bias = nn.Parameter(torch.tensor(-10.0 if self.cosine else 0.0))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.logit_scale.device

    def encode_documents(self, batch: Packed) -> Tensor:
        """phi_doc of every text, (n, size), in float32."""
        return self.document_pooler(self.pool(batch, self.document_pooling))  # type: ignore[no-any-return]

    def encode_labels(self, batch: Packed) -> Tensor:
        """phi_label of every text, (n, size), in float32."""
        return self.label_pooler(self.pool(batch, self.label_pooling))  # type: ignore[no-any-return]

    def similarity(self, documents: Tensor, labels: Tensor) -> Tensor:
        """Logits of every document with every label, (n_documents, n_labels)."""
        if not self.cosine:
            return documents @ labels.T
        documents = F.normalize(documents, dim=-1)
        labels = F.normalize(labels, dim=-1)
        return self.logit_scale * (documents @ labels.T) + self.logit_bias

    def train(self, mode: bool = True) -> DualEncoder:
        """As every module does; 8-bit copies of weights that may change are forgotten."""
        self._int8_layers = None
        return super().train(mode)

    def pool(self, batch: Packed, pooling: Pooling) -> Tensor:
        """Pooled last states, (n, size) float32: what a pooler takes."""
        layers = None
        if self.int8 and self.device.type == "cpu" and not torch.is_grad_enabled():
            layers = self._int8_layers = self._int8_layers or _int8_layers(self.bert)
        states = token_states(self.bert, batch, self.training, layers)
        if pooling == "cls":
            return states[batch.starts[:-1].long()].float()
        sums = states.new_zeros(batch.n_texts, states.shape[1], dtype=torch.float32)
        sums = sums.index_add(0, batch.text, states.float())
        counts = (batch.starts[1:] - batch.starts[:-1]).clamp(min=1)
        return sums / counts[:, None]


def _identity_linear(size: int) -> nn.Linear:
    """A linear pooler that starts as the identity: before training it changes nothing."""
    layer = nn.Linear(size, size)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(size))
        layer.bias.zero_()
    return layer


def pooled_batches(
    encoder: DualEncoder, bank: TokenBank, batches: Iterable[Rows], pooling: Pooling
) -> Iterator[tuple[Rows, Tensor]]:
    """Each batch with its pooled states, in order, without gradients.

    On a CPU there is a worker for each of PyTorch's threads, and all of a batch is computed by one
    of them: they never wait for each other, and the vectors do not depend on their number. Batches
    of about 1,000 tokens are best: their states stay in the cache and fill pages already there.
    """

    @torch.inference_mode()
    def work(rows: Rows) -> tuple[Rows, Tensor]:
        return rows, encoder.pool(bank.pack(rows), pooling)

    if encoder.device.type != "cpu":
        yield from map(work, batches)
        return
    threads = torch.get_num_threads()
    try:
        # The setting holds for the worker that makes it, and for threads started later.
        with ThreadPoolExecutor(threads, "encode", torch.set_num_threads, (1,)) as workers:
            yield from workers.map(work, batches)
    finally:
        torch.set_num_threads(threads)


def token_states(
    bert: PreTrainedModel,
    batch: Packed,
    training: bool,
    layers: list[_Layer] | None = None,
) -> Tensor:
    """Last hidden state of every token, (total, size); ``layers`` in place of BERT's own."""
    if _packs(bert):
        return _packed_bert(bert, batch, training, layers)
    padded, mask = _pad(batch.ids, batch)
    states = bert(input_ids=padded, attention_mask=mask.long()).last_hidden_state
    return states[mask]  # type: ignore[no-any-return]


def _packs(bert: PreTrainedModel) -> bool:
    """Whether the fast path below computes this encoder."""
    return isinstance(bert, BertModel) and bert.config.hidden_act == "gelu"


def _packed_bert(
    bert: Any,  # noqa: ANN401
    batch: Packed,
    training: bool,
    layers: list[_Layer] | None,
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
        x: Tensor, w: Tensor | _Int8, b: Tensor, then: Literal["none", "gelu"] = "none"
    ) -> Tensor:
        if isinstance(w, _Int8):
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
    for layer in layers or _layers(bert, dtype):
        q, k, v = linear(x, layer.qkv, layer.qkv_bias).view(len(x), 3, heads, -1).unbind(1)
        mixed = _attend(q, k, v, batch).flatten(1)
        mixed = F.dropout(linear(mixed, layer.mix, layer.mix_bias), dropout, training)
        x = norm(x + mixed, layer.norm_1, layer.norm_1_bias)
        wide = linear(x, layer.widen, layer.widen_bias, "gelu")
        wide = F.dropout(linear(wide, layer.narrow, layer.narrow_bias), dropout, training)
        x = norm(x + wide, layer.norm_2, layer.norm_2_bias)
    return x


class _Int8(NamedTuple):
    """A matrix (in, out) of 8-bit numbers, and what a column of them is to be multiplied by."""

    values: Tensor
    scale: Tensor


def _int8_linear(x: Tensor, w: _Int8, b: Tensor) -> Tensor:
    """A linear layer in 8-bit numbers; each token has a scale of its own, whoever is beside it."""
    values, scale = _to_int8(x)
    return torch._int_mm(values, w.values).float().mul_(scale).mul_(w.scale).add_(b)


def _to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as 8-bit numbers, and the scale of each row."""
    scale = x.abs().amax(-1, keepdim=True).clamp_(min=1e-12).div_(127)
    return (x / scale).round_().to(torch.int8), scale


class _Layer(NamedTuple):
    """The weights of one layer of BERT; those of queries, keys and values in one matrix."""

    qkv: Tensor | _Int8
    qkv_bias: Tensor
    mix: Tensor | _Int8
    mix_bias: Tensor
    norm_1: Tensor
    norm_1_bias: Tensor
    widen: Tensor | _Int8
    widen_bias: Tensor
    narrow: Tensor | _Int8
    narrow_bias: Tensor
    norm_2: Tensor
    norm_2_bias: Tensor


class _CastTogether(torch.autograd.Function):
    """Tensors as another type, groups of them joined, in three steps for all of them.

    A GPU spends longer on being told of a hundred small casts, and of their gradients, than on
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


def _layers(bert: Any, dtype: torch.dtype) -> list[_Layer]:  # noqa: ANN401
    """All layers' weights as they are computed with."""
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
        whole = _CastTogether.apply(dtype, [len(field) for field in fields], *tensors)
    width = len(_Layer._fields)
    return [_Layer(*whole[i : i + width]) for i in range(0, len(whole), width)]


def _int8_layers(bert: PreTrainedModel) -> list[_Layer] | None:
    """All layers with their matrices in 8 bits; None for an encoder that has no fast path."""
    if not _packs(bert):
        return None
    names = ("qkv", "mix", "widen", "narrow")

    def small(w: Tensor) -> _Int8:
        values, scale = _to_int8(w)
        return _Int8(values.T, scale.T)

    return [
        layer._replace(**{name: small(getattr(layer, name)) for name in names})  # type: ignore[arg-type]
        for layer in _layers(bert, torch.float32)
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
    padded = [_pad(t, batch) for t in (q, k, v)]
    mask = padded[0][1]
    q, k, v = (t.transpose(1, 2) for t, _ in padded)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
    return out.transpose(1, 2)[mask]


def _pad(flat: Tensor, batch: Packed) -> tuple[Tensor, Tensor]:
    """(total, ...) to (n, longest, ...), with the mask of what is real."""
    padded = flat.new_zeros(batch.n_texts, batch.longest, *flat.shape[1:])
    mask = torch.zeros(batch.n_texts, batch.longest, dtype=torch.bool, device=flat.device)
    padded[batch.text, batch.positions] = flat
    mask[batch.text, batch.positions] = True
    return padded, mask
