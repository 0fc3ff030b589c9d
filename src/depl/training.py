"""The one training loop: classifier, DE-ret, DEPL and DEPL+c (sections 3.3 and 3.4 of the paper).

    classifier   head(phi_doc) against all labels                 binary cross-entropy
    dual         phi_doc . phi_label over a label subset          binary cross-entropy
    joint        the mean of both branches over the same subset   its cross-entropy

DE-ret is ``dual`` over label names, DEPL ``dual`` over pseudo descriptions, DEPL+c ``joint``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from depl.encoder import DualEncoder, TokenBank
from depl.errors import ConfigError
from depl.losses import binary_cross_entropy, joint_cross_entropy
from depl.ranking import Ranking
from depl.sampling import LabelSampler
from depl.tokens import Tokens, batches

Objective = Literal["classifier", "dual", "joint"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long, in what portions, and how fast.

    The learning rates rise over the first ``warmup`` share of the steps and fall linearly to zero
    over the rest. ``alive`` is the share of each branch's own loss in the joint one.
    """

    epochs: int = 4
    batch_size: int = 128
    encoder_lr: float = 1e-4
    pooler_lr: float = 1e-3
    head_lr: float = 1e-2
    scale_lr: float = 5e-2
    warmup: float = 0.1
    weight_decay: float = 0.01
    alive: float = 0.7
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class Progress:
    """What an observer is told after every epoch."""

    epoch: int
    loss: float
    documents_per_second: float


def train(
    encoder: DualEncoder,
    documents: Tokens,
    Y: csr_array,
    *,
    objective: Objective,
    schedule: Schedule,
    labels: Tokens | None = None,
    sampler: LabelSampler | None = None,
    seed: int = 0,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> DualEncoder:
    """Train in place.

    Parameters
    ----------
    encoder : DualEncoder
        On the device where training is to happen.
    documents : Tokens
        The training documents.
    Y : csr_array of shape (n_documents, n_labels)
        Who carries which label.
    objective : {"classifier", "dual", "joint"}
        What to minimise.
    schedule : Schedule
        How.
    labels : Tokens
        Label names or pseudo descriptions, for "dual" and "joint".
    sampler : LabelSampler
        Draws each batch's label subset, for "dual" and "joint".
    seed : int
        Decides order, subsets and dropout, step by step.
    observe : callable
        Told of every epoch.

    Returns
    -------
    DualEncoder
        The same encoder, ready to encode.
    """
    loss_of = _loss_function(encoder, documents, Y, labels, sampler, objective, schedule.alive)
    n = len(documents)
    total = -(-n // schedule.batch_size) * schedule.epochs
    optimizer = torch.optim.AdamW(
        parameter_groups(encoder, schedule),
        weight_decay=schedule.weight_decay,
        fused=encoder.device.type == "cuda",
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    encoder.train()
    step = 0
    for epoch in range(schedule.epochs):
        order = np.random.default_rng([seed, epoch]).permutation(n)
        start, losses = time.perf_counter(), []
        for first in range(0, n, schedule.batch_size):
            # Everything random hangs on the number of the step, so training can go on from any.
            rng = np.random.default_rng([seed, step, 1])
            torch.manual_seed(int(rng.integers(2**62)))
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * _slope(step, total, schedule.warmup)
            loss = loss_of(order[first : first + schedule.batch_size], rng)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(encoder.parameters(), schedule.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            step += 1
        mean = float(torch.stack(losses).mean())
        observe(Progress(epoch, mean, n / (time.perf_counter() - start)))
    return encoder.eval()


def _loss_function(
    encoder: DualEncoder,
    documents: Tokens,
    Y: csr_array,
    labels: Tokens | None,
    sampler: LabelSampler | None,
    objective: Objective,
    alive: float,
) -> Callable[[NDArray[np.int64], np.random.Generator], Tensor]:
    """The objective as a function of a batch of documents."""
    device, head = encoder.device, encoder.head
    bank = TokenBank(documents, device)
    if objective == "classifier":
        if head is None:
            raise ConfigError("A classifier needs a head: make the encoder with n_labels.")

        def classify(rows: NDArray[np.int64], rng: np.random.Generator) -> Tensor:
            return binary_cross_entropy(
                head(encoder.encode_documents(bank.pack(rows))), _targets(Y[rows], device)
            )

        return classify
    if labels is None or sampler is None or (objective == "joint" and head is None):
        raise ConfigError(
            f"The objective {objective!r} needs the labels' texts and a sampler"
            + (", and the encoder a head." if objective == "joint" else ".")
        )
    label_bank = TokenBank(labels, device)

    def retrieve(rows: NDArray[np.int64], rng: np.random.Generator) -> Tensor:
        subset, drawn = sampler.draw(rows, rng)
        targets = torch.from_numpy(drawn).to(device)
        phi_doc = encoder.encode_documents(bank.pack(rows))
        phi_label = encoder.encode_labels(label_bank.pack(subset))
        dual = encoder.similarity(phi_doc, phi_label)
        if objective == "dual" or head is None:
            return binary_cross_entropy(dual, targets)
        chosen = torch.from_numpy(subset).to(device)
        dense = F.linear(phi_doc, head.weight[chosen], head.bias[chosen])
        return joint_cross_entropy(dual, dense, targets, alive)

    return retrieve


def _targets(batch: csr_array, device: torch.device) -> Tensor:
    """A batch's rows of Y, dense, made on the device."""
    targets = torch.zeros(batch.shape, device=device)
    rows = np.repeat(np.arange(batch.shape[0]), np.diff(batch.indptr))
    at = torch.from_numpy(np.stack([rows, batch.indices.astype(np.int64)])).to(device)
    targets[at[0], at[1]] = 1.0
    return targets


def parameter_groups(encoder: DualEncoder, schedule: Schedule) -> list[dict[str, Any]]:
    """Four groups with a learning rate each: encoder, poolers, head, scale and offset."""
    head = [] if encoder.head is None else list(encoder.head.parameters())
    poolers = [*encoder.document_pooler.parameters(), *encoder.label_pooler.parameters()]
    groups = [
        (list(encoder.bert.parameters()), schedule.encoder_lr),
        (poolers, schedule.pooler_lr),
        (head, schedule.head_lr),
        # Seen on EURLEX57K: started at 10 and at the poolers' rate the scale hardly moved, and
        # DEPL stayed 2 points of P@1 and 14 of tail macro-F1 behind.
        ([encoder.logit_scale, encoder.logit_bias], schedule.scale_lr),
    ]
    return [{"params": params, "lr": rate} for params, rate in groups if params]


def _slope(step: int, total: int, warmup: float) -> float:
    """Share of the learning rate at this step."""
    rise = max(1, round(total * warmup))
    if step < rise:
        return (step + 1) / rise
    return max(0.0, (total - step) / max(1, total - rise))


@torch.no_grad()
def encode(
    encoder: DualEncoder, tokens: Tokens, side: Literal["document", "label"], budget: int = 65_536
) -> Tensor:
    """Vectors of many texts, (n, size) float32, in batches of about ``budget`` tokens."""
    encoder.eval()
    run = encoder.encode_documents if side == "document" else encoder.encode_labels
    out = torch.empty(len(tokens), encoder.document_pooler.out_features, device=encoder.device)
    bank = TokenBank(tokens, encoder.device)
    for rows in batches(tokens.lengths, budget):
        out[torch.from_numpy(rows).to(out.device)] = run(bank.pack(rows))
    return out


@torch.no_grad()
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
