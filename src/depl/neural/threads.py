"""Work on a CPU whose bytes do not depend on how many threads there are.

Where PyTorch or a BLAS library divides an array among threads, a few numbers at the borders of the
parts are rounded differently: five of 340,000 weights, after a training with two threads in place
of one. So every piece of work is done by a single thread, and several pieces at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from depl.core.workers import thread_pool

T = TypeVar("T")
R = TypeVar("R")


_CPU = torch.device("cpu")


def map_single_threaded(
    work: Callable[[T], R],
    items: Iterable[T],
    device: torch.device = _CPU,
    threads: int | None = None,
) -> Iterator[R]:
    """The results in order; on a CPU there is a worker for each of PyTorch's threads."""
    if device.type != "cpu":
        yield from map(work, items)
        return
    workers = thread_pool(threads or torch.get_num_threads(), _use_one_thread)
    with one_thread():
        yield from workers.map(work, items)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for what PyTorch computes meanwhile."""
    threads = torch.get_num_threads()
    try:
        _use_one_thread()  # here, too, although each worker does it: MKL has one number for all
        yield
    finally:
        torch.set_num_threads(threads)


def _use_one_thread() -> None:
    torch.set_num_threads(1)
