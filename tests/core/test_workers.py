"""Work in parallel: results in their order, and nothing that outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from threading import current_thread

import pytest

from depl.core.errors import DeplError
from depl.core.workers import map_in_processes, map_in_threads

SLEEPING = """
from depl.core.workers import map_in_processes
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
print(os.getpid(), flush=True)
list(map_in_processes(time.sleep, [600, 600], 2))
"""


def test_results_come_in_the_order_of_the_items():
    items = list(range(20))
    assert list(map_in_processes(abs, [-i for i in items], 2)) == items
    assert list(map_in_threads(abs, [-i for i in items], 3)) == items
    assert list(map_in_processes(abs, [], 1)) == []


def test_an_error_of_ours_is_passed_on():
    with pytest.raises(DeplError, match="this and that"):
        list(map_in_processes(refuse, ["this", "that"], 1))


def refuse(item: str) -> None:
    raise DeplError("this and that")


def test_a_worker_that_dies_is_told_with_what_to_do():
    with pytest.raises(DeplError, match=r"exit code 3\).*threads=1"):
        list(map_in_processes(os._exit, [3], 1))


@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent_however_it_ends(number: signal.Signals):
    command = [sys.executable, "-c", SLEEPING]
    parent = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    assert int(parent.stdout.readline()) == parent.pid
    workers: list[int] = []
    while len(workers) < 2:
        workers = in_group(parent.pid)
        time.sleep(0.02)
    os.kill(parent.pid, number)
    parent.wait(timeout=30)
    deadline = time.monotonic() + 30
    while in_group(parent.pid):
        assert time.monotonic() < deadline, "workers live on"
        time.sleep(0.02)
    # The pipes are closed as well: nobody holds what the parent had.
    said = parent.communicate()[1]
    assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)
    assert "leaked" not in said


def in_group(leader: int) -> list[int]:
    """The other live processes of a process group."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [
        int(pid)
        for pid, group, state in rows
        if int(group) == leader != int(pid) and not state.startswith("Z")
    ]


def test_threads_are_kept_and_those_inside_threads_do_not_wait_for_each_other():
    def names(_: int) -> set[str]:
        return {current_thread().name, *map_in_threads(name_of_thread, range(3), 2)}

    outer = list(map_in_threads(names, range(20), 2))
    assert all(len(inner) == 1 for inner in outer)
    assert len(set.union(*outer)) <= 2
    before = threading.active_count()
    for _ in range(10):
        list(map_in_threads(name_of_thread, range(5), 2))
    assert threading.active_count() == before


def name_of_thread(_: int) -> str:
    return current_thread().name


def test_an_error_in_a_thread_leaves_the_threads_at_work():
    begun: list[int] = []

    def fail_first(i: int) -> int:
        begun.append(i)
        if i == 0:
            raise DeplError("no")
        time.sleep(0.01)
        return i

    with pytest.raises(DeplError, match="no"):
        list(map_in_threads(fail_first, range(200), 2))
    n = len(begun)
    assert n < 200  # what had not begun was given up
    assert list(map_in_threads(abs, [-1, -2], 2)) == [1, 2]
    assert len(begun) == n


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
def test_a_forked_process_has_threads_of_its_own():
    list(map_in_threads(abs, range(4), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks of processes with threads
        child = os.fork()
    if child == 0:
        os._exit(0 if list(map_in_threads(abs, [-5], 2)) == [5] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


STARTS = """
import threading
from depl.core.workers import thread_pool
start, n = threading.Thread.start, []
def interrupted(thread):
    n.append(thread)
    if {started}:
        start(thread)
    if len(n) == {last}:
        raise KeyboardInterrupt
    if not {started}:
        start(thread)
threading.Thread.start = interrupted
try:
    thread_pool(2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(("last", "started"), [(1, True), (2, False), (2, True)])
def test_an_interruption_while_threads_start_leaves_none_that_waits(last, started):
    code = STARTS.format(last=last, started=started)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
