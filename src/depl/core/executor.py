"""Where the parallel work of a fit or a prediction is done: on this machine, or on a Ray cluster.

Work is cut into tasks that depend on nothing but a *payload*, which all of them share and none of
them changes. An executor calls one function with the payload and each task, and gives the results
in the order of the tasks. So what comes out does not depend on where, by how many, or how often
after a loss a task was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from depl.core.workers import cores, map_in_processes, map_in_threads

P = TypeVar("P")
T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Something that does tasks in parallel."""

    @property
    def workers(self) -> int:
        """How many tasks are done at the same time."""

    def map(
        self,
        function: Callable[[P, T], R],
        payload: P,
        tasks: Iterable[T],
        *,
        compiled: bool = True,
        ahead: int | None = None,
    ) -> Iterator[R]:
        """The results of ``function(payload, task)``, in the order of the tasks.

        When the iterator is closed, tasks that were not begun are dropped.

        Parameters
        ----------
        function : callable
            One that can be pickled, such as a function of a module.
        payload : object
            What all tasks read; it goes to every machine once.
        tasks : iterable
            Any number of them.
        compiled : bool
            Whether the work is done by compiled code that releases Python's lock. On one machine
            threads do it then, which share the payload; otherwise processes do.
        ahead : int or None
            How many tasks per worker are taken before their turn, where all of them would not fit
            in memory; None: all at once.
        """

    def together(
        self, function: Callable[[P], None], task: P, *, gpus: bool, scratch: Path
    ) -> bool:
        """Call a function in several processes at once, which form a process group of torch's.

        Parameters
        ----------
        function : callable
            What each of them calls with the task. After a loss all that are left call it again.
        task : object
            What is to be done.
        gpus : bool
            Whether GPUs are wanted.
        scratch : Path
            A folder for what is needed meanwhile, which all of them see.

        Returns
        -------
        bool
            False where there would be one process, or one is left: the caller has to call it.
        """

    def refuse_unfit(self, run: Path, *, gpus: bool) -> None:
        """Refuse machines on which ``together`` could not train what is in this run folder."""


class LocalExecutor:
    """The cores of this machine.

    Parameters
    ----------
    workers : int or None
        Threads or processes; None means one per core.

    Examples
    --------
    >>> from operator import add
    >>> list(LocalExecutor(2).map(add, 10, [1, 2, 3]))
    [11, 12, 13]
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or cores()

    @property
    def workers(self) -> int:
        """How many tasks are done at the same time."""
        return self._workers

    def map(
        self,
        function: Callable[[P, T], R],
        payload: P,
        tasks: Iterable[T],
        *,
        compiled: bool = True,
        ahead: int | None = None,
    ) -> Iterator[R]:
        """The results, in order; see ``Executor.map``."""
        call, most = partial(function, payload), None if ahead is None else ahead * self._workers
        if self._workers == 1:
            return map(call, tasks)
        in_parallel = map_in_threads if compiled else map_in_processes
        return in_parallel(call, tasks, self._workers, most)

    def together(
        self, function: Callable[[P], None], task: P, *, gpus: bool, scratch: Path
    ) -> bool:
        """Nothing: this is one process."""
        return False

    def refuse_unfit(self, run: Path, *, gpus: bool) -> None:
        """Nothing: this machine has what it has."""
