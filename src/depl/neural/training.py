"""The one training loop: classifier, DE-ret, DEPL and DEPL+c (sections 3.3 and 3.4 of the paper).

    classifier   head(phi_doc) against all labels                 binary cross-entropy
    attention    the same over tokens that each label weighs      ... over a label subset
    dual         phi_doc . phi_label over a label subset          binary cross-entropy
    joint        the mean of both branches over the same subset   its cross-entropy

DE-ret is ``dual`` over label names, DEPL ``dual`` over pseudo descriptions, DEPL+c ``joint``.

Texts are ``Tokens``, and the encoder is trained; or an array of its pooled states, and it is left
as it is (the frozen recipe for CPUs: states are computed once, training takes seconds). On a
CPU each operation is then done by one thread, so that the weights do not depend on the number of
cores; ``frozen`` computes blocks of labels side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from depl.core.progress import Tell, bar
from depl.neural.checkpoints import Checkpoint
from depl.neural.distributed import Processes
from depl.neural.encoder import DualEncoder
from depl.neural.losses import Loss, Objective, make_loss
from depl.neural.sampling import LabelSampler
from depl.neural.threads import one_thread
from depl.neural.tokens import Texts, Tokens

_FEWEST_EPOCHS = 8  # whatever the number of steps
_TELL_EVERY = 20  # steps between two readings of the loss: reading it makes the GPU wait


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Epochs, batches and learning rates.

    The learning rates rise over the first ``warmup`` share of the steps and fall linearly to zero
    over the rest. ``alive`` is the share of each branch's own loss in the joint one, after a first
    share ``apart`` of the epochs, in which each branch has nothing but its own loss. A batch is
    computed in ``accumulate`` portions where it does not fit in memory. ``patience`` is
    the number of epochs without a better validation score after which training stops early.
    """

    epochs: int = 4
    batch_size: int = 128
    accumulate: int = 1
    encoder_lr: float = 1e-4
    pooler_lr: float = 1e-3
    head_lr: float = 1e-2
    scale_lr: float = 5e-2
    warmup: float = 0.1
    weight_decay: float = 0.01
    alive: float = 0.7
    apart: float = 0.0
    max_grad_norm: float = 1.0
    patience: int = 3

    def within(self, steps: int, documents: int) -> Schedule:
        """No more epochs over so many documents than these steps take, but at least eight.

        The learning rates fall to zero in that time; an early end would leave them high.

        Examples
        --------
        >>> [Schedule(epochs=20, batch_size=100).within(300, n).epochs for n in (900, 2_500, 9_000)]
        [20, 12, 8]
        """
        enough = -(-steps // -(-documents // self.batch_size))
        return replace(self, epochs=min(self.epochs, max(_FEWEST_EPOCHS, enough)))

    def going_on(self, epochs: int) -> Schedule:
        """For an encoder that was trained by this one, on more documents: at half of the rates."""
        rates = ("encoder_lr", "pooler_lr", "head_lr", "scale_lr")
        halved = {rate: getattr(self, rate) / 2 for rate in rates}
        return replace(self, epochs=epochs, apart=0.0, **halved)

    def alive_in(self, epoch: int) -> float:
        """The share of each branch's own loss in an epoch, from 0 on."""
        return 1.0 if epoch < round(self.apart * self.epochs) else self.alive


@dataclass(frozen=True)
class Validation:
    """How good the encoder is on documents it does not train on."""

    score: float  # the one number that decides when to stop
    branches: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """What an observer gets, every few steps and after every epoch."""

    step: int
    epoch: int  # from 1
    loss: float  # mean since the last reading
    documents_per_second: float
    epoch_ends: bool
    validation: Validation | None = None


@dataclass(frozen=True)
class Outcome:
    """How training went."""

    epochs: int  # the best number of them: those of the encoder's final weights
    score: float | None  # its validation score


def train(
    encoder: DualEncoder,
    documents: Texts,
    Y: csr_array,
    *,
    objective: Objective,
    schedule: Schedule,
    labels: Texts | None = None,
    sampler: LabelSampler | None = None,
    seed: int = 0,
    stop_after: int | None = None,
    validate: Callable[[DualEncoder], Validation] | None = None,
    checkpoint: Checkpoint | None = None,
    processes: Processes | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
    title: str = "training",
) -> Outcome:
    """Train in place.

    Parameters
    ----------
    encoder : DualEncoder
        On the device to train on. Afterwards it is ready to encode, with the weights of its best
        epoch.
    documents : Tokens or array of shape (n_documents, size)
        The training documents, or their pooled states if the encoder is frozen.
    Y : csr_array of shape (n_documents, n_labels)
        Which document carries which label.
    objective : {"classifier", "attention", "dual", "joint"}
        What to minimise.
    schedule : Schedule
        How.
    labels : Tokens or array of shape (n_labels, size)
        Label names or pseudo descriptions, for "dual" and "joint".
    sampler : LabelSampler
        Draws each batch's label subset, for all but "classifier".
    seed : int
        Decides order, subsets and dropout, step by step.
    stop_after : int or None
        End after this many epochs of the schedule, such as the best number of an earlier training.
    validate : callable or None
        Scores the encoder after every epoch; the best epoch's weights are kept.
    checkpoint : Checkpoint or None
        Where a killed training resumes from.
    processes : Processes or None
        The processes that train together; None: only this one.
    observe : callable
        Called every few steps, and after every epoch.
    title : str
        The name of this training in the progress bar.
    """
    team = processes or Processes(device=encoder.device)
    frozen = not isinstance(documents, Tokens)
    encoder.bert.requires_grad_(not frozen)
    loss_of = make_loss(encoder, documents, Y, labels, sampler, objective)
    optimizer = torch.optim.AdamW(
        parameter_groups(encoder, schedule, frozen=frozen),
        weight_decay=schedule.weight_decay,
        fused=True,  # one pass over the weights: on a CPU ten times faster with 10 million of them
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    parameters = list(encoder.parameters())  # iterating over the modules takes a millisecond
    n, size = len(documents), schedule.batch_size
    per_epoch = -(-n // size)
    epochs = schedule.epochs if stop_after is None else min(stop_after, schedule.epochs)
    place, best = _Place(), None
    if checkpoint is not None:
        place = _Place(**(checkpoint.load(encoder, optimizer) or {}))
        best = checkpoint.load_best()
    alone = frozen and encoder.device.type == "cpu"
    with one_thread() if alone else nullcontext(), bar(title, total=epochs * per_epoch) as tell:
        meter = _Meter(tell, observe if team.first else lambda progress: None, epochs)
        encoder.train()
        for step in range(place.step, epochs * per_epoch):
            epoch, position = divmod(step, per_epoch)
            rows = _order(n, seed, epoch)[position * size : (position + 1) * size]
            slope = share_of_rate(step, schedule.epochs * per_epoch, schedule.warmup)
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * slope
            alive = schedule.alive_in(epoch)
            loss = _gradients(
                encoder, loss_of, rows, alive, [seed, step], schedule.accumulate, team
            )
            nn.utils.clip_grad_norm_(parameters, schedule.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            meter.add(loss, len(rows))
            place.step = step + 1
            if position < per_epoch - 1:
                if place.step % _TELL_EVERY == 0:
                    meter.tell(place.step, epoch + 1)
                if checkpoint is not None and team.first and checkpoint.due:
                    checkpoint.save(encoder, optimizer, asdict(place), best)
                continue
            meter.pause()
            found = None
            if validate is not None:
                found = team.agree(validate(encoder.eval()) if team.first else None)
                encoder.train()
            if found is None or (objective == "joint" and alive > schedule.alive):
                place.best = epoch + 1  # as far as it is known: not yet by the loss that is meant
            elif place.score is None or found.score > place.score:
                place.best, place.score = epoch + 1, found.score
                best = {k: v.detach().cpu().clone() for k, v in encoder.state_dict().items()}
            meter.tell(place.step, epoch + 1, ends=True, validation=found)
            over = epoch + 1 == epochs or epoch + 1 - place.best >= schedule.patience
            if checkpoint is not None and team.first and (over or checkpoint.due):
                checkpoint.save(encoder, optimizer, asdict(place), best)
            if over:
                break
    if best is not None and place.best * per_epoch != place.step:
        encoder.load_state_dict(best)
    encoder.eval()
    return Outcome(place.best, place.score)


@dataclass
class _Place:
    """How far training is, and its best epoch so far: what a checkpoint has besides weights."""

    step: int = 0
    best: int = 0
    score: float | None = None


class _Meter:
    """Mean loss and speed since the last reading; reading the loss makes a GPU wait."""

    def __init__(self, tell: Tell, observe: Callable[[Progress], None], epochs: int) -> None:
        self._tell, self._observe, self._epochs = tell, observe, epochs
        self._remark = ""
        self._reset()

    def _reset(self) -> None:
        self._losses: list[Tensor] = []
        self._documents, self._seconds = 0, 0.0
        self._start = time.perf_counter()

    def add(self, loss: Tensor, documents: int) -> None:
        self._losses.append(loss)
        self._documents += documents

    def pause(self) -> None:
        """Pause until the next reading: validation does not count for the speed."""
        float(self._losses[-1])  # wait for the GPU
        self._seconds = time.perf_counter() - self._start

    def tell(
        self, step: int, epoch: int, ends: bool = False, validation: Validation | None = None
    ) -> None:
        loss = float(torch.stack(self._losses).mean())
        speed = self._documents / (self._seconds or time.perf_counter() - self._start)
        if validation is not None:
            self._remark = "  ".join(
                f"{branch} P@1 {scores['P@1']:.1f}"
                for branch, scores in validation.branches.items()
            )
        self._observe(Progress(step, epoch, loss, speed, ends, validation))
        self._tell(
            step, f"{epoch}/{self._epochs}  loss {loss:.5f}  {speed:,.0f} docs/s  {self._remark}"
        )
        self._reset()


@lru_cache(maxsize=1)
def _order(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, epoch]).permutation(n)


def _gradients(
    encoder: DualEncoder,
    loss_of: Loss,
    rows: NDArray[np.int64],
    alive: float,
    seed: list[int],
    accumulate: int,
    team: Processes,
) -> Tensor:
    """Leave the gradient of the batch's loss in the parameters; returns the loss.

    The batch is split into portions, some for each process; the label subset is the whole batch's,
    so neither the number of processes nor that of portions changes what is minimised.
    """
    # Everything random depends on the step number, so training can resume from any.
    rng = np.random.default_rng([*seed, 1])
    torch.manual_seed(int(rng.integers(2**62)) + team.rank)
    subset = loss_of.subset(rows, rng)
    total = torch.zeros((), device=encoder.device)
    for portion in team.share(np.array_split(rows, accumulate * team.count)):
        # A process without a document still takes part, so that all have the same gradients.
        share = len(portion) / len(rows)
        total += loss_of.add_gradients(portion if len(portion) else rows[:1], subset, alive, share)
    team.sum_gradients(encoder.parameters())
    return team.sum(total)


def parameter_groups(
    encoder: DualEncoder, schedule: Schedule, *, frozen: bool = False
) -> list[dict[str, Any]]:
    """Four groups with a learning rate each: encoder (unless frozen), poolers, head, scale."""
    head = [] if encoder.head is None else list(encoder.head.parameters())
    head += [] if encoder.attention is None else [encoder.attention]
    poolers = [*encoder.document_pooler.parameters(), *encoder.label_pooler.parameters()]
    groups = [
        ([] if frozen else list(encoder.bert.parameters()), schedule.encoder_lr),
        (poolers, schedule.pooler_lr),
        (head, schedule.head_lr),
        # On EURLEX57K, with a start at 10 and the poolers' rate, the scale hardly changed, and
        # DEPL stayed 2 points of P@1 and 14 of tail macro-F1 behind.
        ([encoder.logit_scale, encoder.logit_bias], schedule.scale_lr),
    ]
    return [{"params": params, "lr": rate} for params, rate in groups if params]


def share_of_rate(step: int, total: int, warmup: float) -> float:
    """Share of the learning rate at a step: it rises, then falls linearly to zero."""
    rise = max(1, round(total * warmup))
    if step < rise:
        return (step + 1) / rise
    return max(0.0, (total - step) / max(1, total - rise))
