"""What training minimises: losses of scores and targets, and the objectives that use them.

An objective first gives the label subset of a whole batch, and then the loss of each portion of
the batch (a process's share, or what fits in memory) against that subset.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from depl.core.errors import ConfigError
from depl.neural.attention import attended
from depl.neural.encoder import DualEncoder, Side
from depl.neural.frozen import FrozenRetrieval
from depl.neural.packing import TokenBank, on_device
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import Texts, Tokens

Objective = Literal["classifier", "attention", "dual", "joint"]


def binary_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean of ``-[t log s(f) + (1 - t) log(1 - s(f))]`` over documents and labels.

    Section 3.3 of the paper prints ``log s(1 - f)`` for the negatives, a typo for
    ``log(1 - s(f))``: the former does not vanish for a confident negative.

    Parameters
    ----------
    scores, targets : Tensor of shape (n_documents, n_labels)
        Logits f, and 1 for the labels that a document carries.
    """
    return F.binary_cross_entropy_with_logits(scores, targets)


def joint_cross_entropy(dual: Tensor, dense: Tensor, targets: Tensor, alive: float) -> Tensor:
    """DEPL+c (section 3.4): cross-entropy of the mean of the two branches' probabilities.

    Alone it lets one branch die, as a confident branch leaves the other no gradient; a share
    ``alive`` of the loss is therefore each branch's own cross-entropy.

    Parameters
    ----------
    dual, dense, targets : Tensor of shape (n_documents, n_labels)
        Logits of the retrieval branch and of the classifier, and the targets.
    alive : float
        Between 0 (the paper's loss) and 1 (two separate losses).
    """
    yes, no = mean_log_probabilities(dual, dense)
    joint = -(targets * yes + (1 - targets) * no).mean()
    own = binary_cross_entropy(dual, targets) + binary_cross_entropy(dense, targets)
    return (1 - alive) * joint + alive * own / 2


def mean_log_probabilities(dual: Tensor, dense: Tensor) -> tuple[Tensor, Tensor]:
    """``log p`` and ``log(1 - p)`` of ``p = (s(dual) + s(dense)) / 2``, f_cls-dual of the paper.

    As logarithms they never under- or overflow: in float32 ``p`` itself is 1 from logits of 17 on.
    """
    yes = torch.logaddexp(F.logsigmoid(dual), F.logsigmoid(dense)) - math.log(2)
    no = torch.logaddexp(F.logsigmoid(-dual), F.logsigmoid(-dense)) - math.log(2)
    return yes, no


class Classify:
    """The classifier's loss: the head's scores for all labels."""

    def __init__(self, encoder: DualEncoder, documents: Texts, Y: csr_array) -> None:
        if encoder.head is None:
            raise ConfigError("A classifier needs a head: make the encoder with n_labels.")
        self._head, self._Y = encoder.head, Y
        self._phi_doc = _vectors(encoder, documents, "document")

    def subset(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """All labels, whatever the batch."""
        return np.arange(self._Y.shape[1])

    def __call__(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float = 0.0
    ) -> Tensor:
        """Mean cross-entropy over these documents and all labels; there is but one branch."""
        scores = self._head(self._phi_doc(rows))
        return binary_cross_entropy(scores, _targets(self._Y[rows], scores.device))

    def add_gradients(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float, share: float
    ) -> Tensor:
        """Add the gradients of the loss, times ``share``; returns that loss."""
        return _add_gradients(self(rows, subset, alive) * share)


class Attend:
    """The loss of label-wise attention, over a label subset."""

    def __init__(self, encoder: DualEncoder, documents: Tokens, sampler: LabelSampler) -> None:
        self._encoder, self._sampler = encoder, sampler
        self._bank = TokenBank(documents, encoder.device)

    def subset(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The labels against which this batch is scored."""
        return self._sampler.draw(rows, rng)

    def __call__(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float = 0.0
    ) -> Tensor:
        """Mean cross-entropy over these documents and the subset; there is but one branch."""
        chosen = on_device(subset, self._encoder.device)
        scores = attended(self._encoder, self._bank.pack(rows), chosen)
        targets = on_device(self._sampler.targets(rows, subset), scores.device)
        return binary_cross_entropy(scores, targets)

    def add_gradients(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float, share: float
    ) -> Tensor:
        """Add the gradients of the loss, times ``share``; returns that loss."""
        return _add_gradients(self(rows, subset, alive) * share)


class Retrieve:
    """The loss of DE-ret and DEPL, and with ``joint`` that of DEPL+c."""

    def __init__(
        self,
        encoder: DualEncoder,
        documents: Texts,
        labels: Texts,
        sampler: LabelSampler,
        joint: bool,
    ) -> None:
        self._encoder, self._sampler = encoder, sampler
        self._head = encoder.head if joint else None
        self._phi_doc = _vectors(encoder, documents, "document")
        self._phi_label = _vectors(encoder, labels, "label")
        self._frozen = None
        on_cpu = encoder.device.type == "cpu"
        if on_cpu and not isinstance(documents, Tokens) and not isinstance(labels, Tokens):
            self._frozen = FrozenRetrieval(encoder, documents, labels, sampler, joint=joint)

    def subset(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The labels against which this batch is scored."""
        return self._sampler.draw(rows, rng)

    def __call__(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float = 0.0
    ) -> Tensor:
        """Mean cross-entropy over these documents and the subset; ``alive`` as in the joint one."""
        phi_doc = self._phi_doc(rows)
        dual = self._encoder.similarity(phi_doc, self._phi_label(subset))
        targets = on_device(self._sampler.targets(rows, subset), dual.device)
        if self._head is None:
            return binary_cross_entropy(dual, targets)
        chosen = on_device(subset, dual.device)
        dense = F.linear(phi_doc, self._head.weight[chosen], self._head.bias[chosen])
        return joint_cross_entropy(dual, dense, targets, alive)

    def add_gradients(
        self, rows: NDArray[np.int64], subset: NDArray[np.int64], alive: float, share: float
    ) -> Tensor:
        """Add the gradients of the loss, times ``share``; returns that loss."""
        if self._frozen is not None:
            return self._frozen.add_gradients(rows, subset, alive, share)
        return _add_gradients(self(rows, subset, alive) * share)


Loss = Classify | Attend | Retrieve


def make_loss(
    encoder: DualEncoder,
    documents: Texts,
    Y: csr_array,
    labels: Texts | None,
    sampler: LabelSampler | None,
    objective: Objective,
) -> Loss:
    """The loss for an objective; a ``ConfigError`` says what is missing."""
    if objective == "classifier":
        return Classify(encoder, documents, Y)
    if objective == "attention":
        if sampler is None or encoder.attention is None or not isinstance(documents, Tokens):
            raise ConfigError(
                "Label-wise attention needs documents as tokens, a sampler, and an encoder with "
                "attention."
            )
        return Attend(encoder, documents, sampler)
    joint = objective == "joint"
    if labels is None or sampler is None or (joint and encoder.head is None):
        raise ConfigError(
            f"The objective {objective!r} needs the labels' texts and a sampler"
            + (", and the encoder a head." if joint else ".")
        )
    return Retrieve(encoder, documents, labels, sampler, joint)


def _vectors(
    encoder: DualEncoder, texts: Texts, side: Side
) -> Callable[[NDArray[np.int64]], Tensor]:
    """Phi of the texts at some positions: from their tokens, or from their pooled states."""
    if isinstance(texts, Tokens):
        bank = TokenBank(texts, encoder.device)
        run = encoder.encode_documents if side == "document" else encoder.encode_labels
        return lambda rows: run(bank.pack(rows))
    states = torch.from_numpy(texts).to(encoder.device)
    pooler = encoder.document_pooler if side == "document" else encoder.label_pooler
    return lambda rows: pooler(states[on_device(rows, states.device)])


def _add_gradients(loss: Tensor) -> Tensor:
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach()


def _targets(batch: csr_array, device: torch.device) -> Tensor:
    """A batch's rows of Y, dense, built on the device."""
    targets = torch.zeros(batch.shape, device=device)
    rows = np.repeat(np.arange(batch.shape[0]), np.diff(batch.indptr))
    places = on_device(rows * batch.shape[1] + batch.indices.astype(np.int64), device)
    targets.view(-1).index_fill_(0, places, 1.0)
    return targets
