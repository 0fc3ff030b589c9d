"""What is called in a process of its own cannot harm this one."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import pytest

from depl.core import apart
from depl.core.apart import EndedError, call_apart

# What is called. The other process finds these functions in this module.


def describe(raw: bytes, *arguments: object) -> list[object]:
    return [os.getpid(), len(raw), *arguments]


def crash(_: bytes) -> None:
    ctypes.string_at(0)


def leave(_: bytes) -> None:
    os._exit(3)


def fail(_: bytes) -> None:
    raise ValueError


def hang(_: bytes) -> None:
    while True:
        pass


def fill(_: bytes) -> int:
    return len(bytes(8 << 30))


def grow(_: bytes) -> int:
    bytearray(300 << 20)
    return os.getpid()


def print_much(_: bytes) -> str:
    print("x" * 100_000, flush=True)
    return "done"


def test_values_come_back_from_one_process_that_is_kept():
    first, size, *rest = call_apart(describe, "Käse", None, [1.5], raw=b"\x00" * 1_000_000)
    assert first != os.getpid()
    assert (size, rest) == (1_000_000, ["Käse", None, [1.5]])
    assert call_apart(describe)[0] == first


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (crash, r"crashed \(SIGSEGV\)"),
        (leave, r"crashed \(exit code 3\)"),
        (fail, r"failed \(ValueError\)"),
        (fill, "more than 4 GB of memory"),
    ],
)
def test_the_end_of_the_other_process_is_an_error_and_the_next_call_is_answered(function, why):
    with pytest.raises(EndedError, match=why):
        call_apart(function)
    assert call_apart(describe, "again")[1:] == [0, "again"]


def test_a_call_without_end_is_ended(monkeypatch):
    monkeypatch.setattr(apart, "SECONDS", 1)
    with pytest.raises(EndedError, match="more than 1 seconds of computing"):
        call_apart(hang)


def test_the_time_of_earlier_calls_does_not_count(monkeypatch):
    assert call_apart(describe)
    monkeypatch.setattr(apart, "SECONDS", 0)
    for _ in range(3):
        assert call_apart(describe)


def test_a_process_that_has_grown_is_not_kept():
    assert call_apart(grow) != call_apart(describe)[0]


def test_what_is_printed_is_no_answer():
    assert call_apart(print_much) == "done"


def test_it_ends_with_a_parent_that_is_killed_whatever_it_is_doing(quick_python, tmp_path):
    code = f"""
import sys, threading
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_apart import call_apart, describe, hang
pid = call_apart(describe)[0]
threading.Thread(target=call_apart, args=(hang,), daemon=True).start()
print(pid, flush=True)
threading.Event().wait()
"""
    with (tmp_path / "out").open("w+") as out:
        parent = quick_python("-c", code, stdout=out)
        while not (said := (tmp_path / "out").read_text()).endswith("\n"):
            assert parent.poll() is None
            time.sleep(0.02)
        parent.send_signal(signal.SIGKILL)
        assert parent.wait(60) == -signal.SIGKILL
    while _alive(int(said)):
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
