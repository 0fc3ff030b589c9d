"""A training step that a GPU replays as a whole.

With a dozen documents a step, starting its hundreds of small operations from Python takes several
times as long as computing them. A CUDA graph starts them all at once. It is bound to addresses:
whatever changes from step to step (rows, learning rates) has to be written into the same tensors.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Work = Callable[[Tensor], Tensor]
_FIRST = 3  # steps that run as they are: libraries choose their algorithms, moments are allocated


class Recorded:
    """A step over some rows, recorded when it has run a few times.

    Parameters
    ----------
    work : callable
        Takes rows on the device, does everything there without waiting for it, and returns a
        tensor that does not require gradients, such as the loss. It is overwritten by the next
        step.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._stream = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._done = 0

    def __call__(self, rows: Tensor) -> Tensor:
        """Do the work; rows of another number than the first, at an epoch's end, as they are."""
        if self._done == 0:
            self._rows = torch.empty_like(rows)
        if rows.shape != self._rows.shape:
            return self._work(rows)
        self._done += 1
        self._rows.copy_(rows)
        if self._done <= _FIRST:
            return self._aside()
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=self._stream):
                self._found = self._work(self._rows)
        self._graph.replay()
        return self._found

    def _aside(self) -> Tensor:
        """The work on the stream on which it will be recorded."""
        here = torch.cuda.current_stream()
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            found = self._work(self._rows)
        here.wait_stream(self._stream)
        return found
