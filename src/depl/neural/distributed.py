"""Several processes that train one model together, started by ``accelerate launch`` or by Ray.

Every process has a share of each batch; gradients are summed over all of them. A single process, as
``depl fit`` is without a launcher, needs none of this and gets a ``Processes`` of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from threading import Event, Thread
from typing import TypeVar

import torch
from torch import Tensor, nn

from depl.core import threads
from depl.core.errors import ConfigError

T = TypeVar("T")

# The others wait while the first process reads, computes features or writes: give it time.
_PATIENCE = timedelta(hours=12)


@cache
def let_threads_sleep() -> None:
    """Keep torch's OpenMP threads from busy-waiting where it was loaded before depl.

    GNU's OpenMP hardly busy-waits while it manages more threads than there are cores. A second team
    of threads, held by an idle thread, achieves that. Two fits side by side on two cores then take
    1.5 times as long as one, as they do where ``OMP_WAIT_POLICY`` could be set in time
    (``benchmarks/side_by_side.py --torch-first``).
    """
    if not threads.TOO_LATE:
        return
    ready = Event()

    def hold_a_team() -> None:
        torch.ones(2_000_000).add_(1.0)  # large enough for all threads
        ready.set()
        Event().wait()

    Thread(target=hold_a_team, name="depl-openmp", daemon=True).start()
    ready.wait()


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is, and where it computes."""

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @classmethod
    def launched(cls, device: str = "auto") -> Processes:
        """Rank and device of this process; ``device`` is "auto", "cpu" or "cuda"."""
        let_threads_sleep()
        wanted = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        if wanted == "cuda" and not torch.cuda.is_available():
            raise ConfigError(
                "This run is set to use a GPU (device = 'cuda'), and torch finds none here. Let it "
                "choose, which makes no stage again: depl fit RUN --set device=auto"
            )
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls(device=torch.device(wanted))
        from accelerate import PartialState

        state = PartialState(cpu=wanted == "cpu", timeout=_PATIENCE)
        return cls(state.process_index, state.num_processes, state.device)

    @classmethod
    def of_ray(cls) -> Processes:
        """Rank and device of this process in a group that Ray Train has made."""
        from ray.train.torch import get_device

        let_threads_sleep()
        group = torch.distributed
        return cls(group.get_rank(), group.get_world_size(), torch.device(get_device()))

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and reports."""
        return self.rank == 0

    def share(self, items: list[T]) -> list[T]:
        """The share of this process in a list whose length is a multiple of ``count``."""
        size = len(items) // self.count
        return items[self.rank * size : (self.rank + 1) * size]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over all processes."""
        if self.count == 1:
            return
        # A parameter that no loss reached has no gradient on any process: all agree on the list.
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        torch.distributed.all_reduce(flat)
        sums = torch.split(flat, [g.numel() for g in gradients])
        for gradient, total in zip(gradients, sums, strict=True):
            gradient.copy_(total.view_as(gradient))

    def sum(self, value: Tensor) -> Tensor:
        """The sum of a value over all processes."""
        if self.count > 1:
            torch.distributed.all_reduce(value)
        return value

    def agree(self, value: T) -> T:
        """The first process's value, on every process."""
        if self.count == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.count > 1:
            torch.distributed.barrier()
