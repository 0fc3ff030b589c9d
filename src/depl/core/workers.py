"""Work in parallel that ends with the process that wants it, however that one ends.

Threads are started once and kept. The C library gives a new thread a part of the heap of its own,
and what such a part once held is not given back: a service that starts threads for every request
would take ever more memory.

A worker process reads its tasks from its standard input and writes the results to its standard
output. When the parent is gone, killed or not, the system closes the pipe and the worker ends at
once. Nothing else is shared, so nothing can leak; and unlike with multiprocessing's pools, the
user's script needs no main guard.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Barrier, Thread, current_thread
from typing import IO, Any, TypeVar

from depl.core.errors import DeplError

F = TypeVar("F")
T = TypeVar("T")
R = TypeVar("R")

_NAME = "depl-worker"
_START = "import sys; sys.path[:] = {path!r}; from depl.core.workers import work; work()"


_cores: int | None = None


def cores() -> int:
    """How many threads or processes to use where nothing else is asked for: one per core."""
    return _cores or os.cpu_count() or 1


def use_cores(number: int) -> None:
    """Make this process use so many cores from now on: it is one of several on this machine."""
    global _cores
    _cores = number


def in_order(
    begin: Callable[[T], F],
    result: Callable[[F], R],
    items: Iterable[T],
    ahead: int | None = None,
    drop: Callable[[Iterable[F]], None] = lambda _: None,
) -> Iterator[R]:
    """Begin the work on all items, or on so many ahead; yield the results in the items' order.

    What nobody waits for any more, because of an error or since the iterator was closed, is given
    to ``drop``.

    Examples
    --------
    >>> begun = []
    >>> results = in_order(begun.append, lambda _: len(begun), [1, 2, 3, 4, 5], ahead=2)
    >>> next(results), next(results)
    (2, 3)
    """
    pending: deque[F] = deque()
    try:
        for item in items:
            pending.append(begin(item))
            if len(pending) == ahead:
                yield result(pending.popleft())
        while pending:
            yield result(pending.popleft())
    finally:
        drop(pending)


def map_in_processes(
    function: Callable[[T], R], items: Iterable[T], processes: int, ahead: int | None = None
) -> Iterator[R]:
    """The results of a function for all items, in their order, from worker processes.

    Parameters
    ----------
    function : callable
        It is pickled, and so are the items and the results.
    items : iterable
        What to call it with.
    processes : int
        How many workers.
    ahead : int or None
        How many items are taken before their turn; None: all of them at once.
    """
    with _Workers(function, processes) as workers:
        yield from workers.map(items, ahead)


def map_in_threads(
    function: Callable[[T], R], items: Iterable[T], threads: int | None, ahead: int | None = None
) -> Iterator[R]:
    """The results of a function for all items, in their order, from threads; None: one per core.

    An interruption waits for what the threads are doing, but not for what they have not begun.
    """
    if current_thread().name.startswith(_NAME):  # its pool may have no thread left to wait for
        yield from map(function, items)
        return
    pool = thread_pool(threads or cores())
    yield from in_order(
        lambda item: pool.submit(function, item), Future.result, items, ahead, _cancel
    )


def _cancel(futures: Iterable[Future[R]]) -> None:
    wait([future for future in futures if not future.cancel()])


@cache
def thread_pool(threads: int, prepare: Callable[[], None] | None = None) -> ThreadPoolExecutor:
    """So many threads, always the same ones; each has called ``prepare`` before anything else."""
    pool = ThreadPoolExecutor(threads, _NAME, prepare or (lambda: None))
    all_there = Barrier(threads)  # otherwise threads are started one by one, when work comes
    try:
        list(pool.map(lambda _: all_there.wait(), range(threads)))
    except BaseException:  # interrupted: those that are there would wait for the others for ever,
        all_there.abort()
        pool.shutdown(wait=False)  # or for work, if their pool has not heard of them yet
        raise
    return pool


if hasattr(os, "register_at_fork"):  # a process that was forked has none of its parent's threads
    os.register_at_fork(after_in_child=thread_pool.cache_clear)


class _Workers:
    """Processes that all call the same function."""

    def __init__(self, function: Callable[[Any], Any], processes: int) -> None:
        command = [sys.executable, "-c", _START.format(path=sys.path)]
        self._all = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(processes)
        ]
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for worker in self._all:
            self._free.put(worker)
        self._function = pickle.dumps(function)
        self._pool = ThreadPoolExecutor(processes)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._all:
            worker.kill()
        self._pool.shutdown()
        for worker in self._all:
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):  # by what a killed worker had not read
                    pipe.close()

    def map(self, items: Iterable[Any], ahead: int | None) -> Iterator[Any]:
        return in_order(lambda x: self._pool.submit(self._call, x), Future.result, items, ahead)

    def _call(self, item: object) -> object:
        worker = self._free.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            send(worker.stdin, (self._function, item))
            said, value = receive(worker.stdout)
        except (EOFError, BrokenPipeError):
            raise DeplError(
                f"A worker process ended by itself (exit code {worker.wait()}); perhaps there was "
                f"too little memory. Give the same command again, with --set threads=1 if it "
                f"happens again."
            ) from None
        finally:
            self._free.put(worker)
        if said == "error":
            raise DeplError(value)
        return value


def work() -> None:
    """What a worker does until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed is no result
    tasks: SimpleQueue[tuple[bytes, Any]] = SimpleQueue()
    Thread(target=_read, args=(tasks,), daemon=True).start()
    while True:
        pickled, item = tasks.get()
        try:
            said = "result", pickle.loads(pickled)(item)
        except DeplError as error:
            said = "error", str(error)
        send(results, said)


def _read(tasks: SimpleQueue[tuple[bytes, Any]]) -> None:
    """Pass on the tasks; end the process, whatever it is doing, when there can be no more."""
    try:
        while True:
            tasks.put(receive(sys.stdin.buffer))
    finally:
        os._exit(0)


def send(pipe: IO[bytes], value: object) -> None:
    """Write a value to a pipe, for ``receive`` at its other end."""
    raw = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(len(raw).to_bytes(8, "little"))
    pipe.write(raw)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:  # noqa: ANN401 - whatever was sent
    """The next value from a pipe; ``EOFError`` when nobody can send any more."""
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    return pickle.loads(pipe.read(int.from_bytes(size, "little")))
