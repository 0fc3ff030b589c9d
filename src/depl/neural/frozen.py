"""Gradients of the retrieval losses on a CPU, where the encoder's states are known already.

Nearly all work is with labels: their pooler, the scores of documents, the head's rows. So the label
subset of a batch is divided into blocks, each is computed by a thread of its own, and the gradients
are added in the order of the blocks. A block's scores stay in the processor's cache,
and the weights do not depend on the number of threads.

The derivatives are written out, because products without autograd can be oneDNN's, which are twice
as fast as MKL's on an AMD processor and as fast elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from torch import Tensor, nn

from depl.neural._loss_kernels import joint_loss
from depl.neural.encoder import DualEncoder
from depl.neural.sampling import LabelSampler
from depl.neural.threads import map_single_threaded

_BLOCK = 512  # labels
_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


class FrozenRetrieval:
    """Losses and gradients of DEPL and DEPL+c on the pooled states of texts.

    Parameters
    ----------
    encoder : DualEncoder
        On a CPU; its poolers, head, scale and offset get the gradients.
    documents, labels : arrays of shape (n, size)
        Pooled states.
    sampler : LabelSampler
        Knows which document carries which label.
    joint : bool
        Whether there is a classifier next to retrieval: DEPL+c.
    """

    def __init__(
        self,
        encoder: DualEncoder,
        documents: NDArray[np.float32],
        labels: NDArray[np.float32],
        sampler: LabelSampler,
        *,
        joint: bool,
    ) -> None:
        self._encoder, self._sampler = encoder, sampler
        self._head = encoder.head if joint else None
        self._documents, self._labels = torch.from_numpy(documents), torch.from_numpy(labels)
        self._threads = torch.get_num_threads()

    @torch.no_grad()
    def add_gradients(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float, share: float
    ) -> Tensor:
        """Add the gradients of a batch's mean loss, times ``share``; returns that loss."""
        encoder, head = self._encoder, self._head
        documents = _Vectors.of(encoder.document_pooler, self._documents[rows], encoder.cosine)
        carried = self._sampler.targets(rows, subset) > 0
        share /= carried.size
        blocks = [slice(x, x + _BLOCK) for x in range(0, len(subset), _BLOCK)]

        def work(some: slice) -> _Slopes:
            return self._block(documents, subset[some], carried[:, some], alive, share)

        found = list(map_single_threaded(work, blocks, threads=self._threads))
        of_units = _sum(x.of_units for x in found)
        of_vectors = _sum(x.of_vectors for x in found) if head is not None else None
        documents.add_gradients(encoder.document_pooler, of_units, of_vectors)
        _add(encoder.label_pooler.weight, _sum(x.of_pooler for x in found))
        _add(encoder.label_pooler.bias, _sum(x.of_pooler_bias for x in found))
        if encoder.cosine:
            _add(encoder.logit_scale, _sum(x.of_scale for x in found))
            _add(encoder.logit_bias, _sum(x.of_offset for x in found))
        if head is not None:
            for parameter, parts in (
                (head.weight, [x.of_head for x in found]),
                (head.bias, [x.of_head_bias for x in found]),
            ):
                whole = torch.zeros_like(parameter)
                whole[torch.from_numpy(subset)] = torch.cat(parts)  # type: ignore[arg-type]
                _add(parameter, whole)
        return _sum(x.loss for x in found)

    @torch.no_grad()  # each thread has its own
    def _block(
        self,
        documents: _Vectors,
        subset: NDArray[np.int64],
        carried: NDArray[np.bool_],
        alive: float,
        share: float,
    ) -> _Slopes:
        """The part of some labels in the loss and in the gradients."""
        encoder, head = self._encoder, self._head
        chosen = torch.from_numpy(subset)
        labels = _Vectors.of(encoder.label_pooler, self._labels[chosen], encoder.cosine)
        cosines = _product(documents.units, labels.units)
        scale = encoder.logit_scale if encoder.cosine else torch.ones(())
        dual = cosines * scale + encoder.logit_bias if encoder.cosine else cosines
        of_vectors = of_head = of_head_bias = None
        if head is None:
            targets = torch.from_numpy(carried.astype(np.float32))
            loss = F.binary_cross_entropy_with_logits(dual, targets, reduction="sum") * share
            of_dual = (torch.sigmoid(dual) - targets) * share
        else:
            weight = head.weight[chosen]
            dense = _product(documents.vectors, weight, head.bias[chosen])
            loss = _joint_loss(dual, dense, carried, alive, share)
            of_dual, of_dense = dual, dense
            of_vectors = _product(of_dense, weight.T)
            of_head = _product(of_dense.T, documents.vectors.T)
            of_head_bias = of_dense.sum(0)
        of_labels = _product(of_dual.T, documents.units.T) * scale
        of_pooler, of_pooler_bias = labels.gradients(of_labels)
        return _Slopes(
            loss,
            _product(of_dual, labels.units.T) * scale,
            of_pooler,
            of_pooler_bias,
            torch.dot(of_dual.flatten(), cosines.flatten()),
            of_dual.sum(),
            of_vectors,
            of_head,
            of_head_bias,
        )


class _Slopes(NamedTuple):
    """What a block of labels adds to the loss, and to its derivatives by everything."""

    loss: Tensor
    of_units: Tensor  # the documents' vectors of length one
    of_pooler: Tensor
    of_pooler_bias: Tensor
    of_scale: Tensor
    of_offset: Tensor
    of_vectors: Tensor | None  # the documents' vectors, which the head takes
    of_head: Tensor | None
    of_head_bias: Tensor | None


class _Vectors(NamedTuple):
    """Pooled states, their vectors, and these as they are compared: of length one for cosines."""

    states: Tensor
    vectors: Tensor
    units: Tensor
    lengths: Tensor | None

    @classmethod
    def of(cls, pooler: nn.Linear, states: Tensor, cosine: bool) -> _Vectors:
        vectors = _product(states, pooler.weight, pooler.bias)
        if not cosine:
            return cls(states, vectors, vectors, None)
        lengths = vectors.norm(dim=1, keepdim=True).clamp_(min=1e-12)
        return cls(states, vectors, vectors / lengths, lengths)

    def gradients(
        self, of_units: Tensor, of_vectors: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Those of the pooler's matrix and bias, from those of what it gives."""
        slopes = of_units
        if self.lengths is not None:
            along = (of_units * self.units).sum(1, keepdim=True)
            slopes = (of_units - self.units * along) / self.lengths
        if of_vectors is not None:
            slopes = slopes + of_vectors
        return _product(slopes.T, self.states.T), slopes.sum(0)

    def add_gradients(self, pooler: nn.Linear, of_units: Tensor, of_vectors: Tensor | None) -> None:
        of_weight, of_bias = self.gradients(of_units, of_vectors)
        _add(pooler.weight, of_weight)
        _add(pooler.bias, of_bias)


def _joint_loss(
    dual: Tensor, dense: Tensor, carried: NDArray[np.bool_], alive: float, share: float
) -> Tensor:
    """``joint_cross_entropy``, summed and times a share; logits become its derivatives."""
    logits, right = (dual.numpy(), dense.numpy()), np.nonzero(carried)
    for x in logits:
        x[right] *= -1
    loss = joint_loss(*logits, np.float32(alive), np.float32(share))
    for x in logits:
        x[right] *= -1
    return torch.tensor(loss, dtype=torch.float32)


def _product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """A times the transpose of b, plus a bias."""
    if _ONEDNN:
        call = torch.ops.mkldnn._linear_pointwise
        return call(a, b, bias, "none", [], "none")  # type: ignore[no-any-return]
    return F.linear(a, b, bias)


def _sum(parts: Iterable[Tensor | None]) -> Tensor:
    """The sum, in the order of the parts."""
    return functools.reduce(torch.add, parts)  # type: ignore[arg-type,return-value]


def _add(parameter: Tensor, gradient: Tensor) -> None:
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
