"""Locks between processes: who holds one is said, and a wait has an end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from depl.core.errors import BusyError
from depl.core.locks import locked


def hold(path: Path, wait: float = 0.0):
    return locked(path, busy="Somebody is in here", remedy="Come back later.", wait=wait)


@pytest.mark.parametrize("wait", [0.0, 0.05])
def test_a_lock_keeps_others_out_until_it_is_released(tmp_path: Path, wait: float):
    path = tmp_path / "deeper" / ".lock"
    told = rf"Somebody is in here \(`.+`, process {os.getpid()}, since .+\)\. Come back later\."
    with hold(path), pytest.raises(BusyError, match=told), hold(path, wait):
        pass
    with hold(path):
        pass
    assert [x.name for x in path.parent.iterdir()] == [".lock"]


@pytest.mark.parametrize("note", [None, "", "[]", "{}", "\ud800"])
def test_a_lock_whose_holder_left_no_note_is_still_one(tmp_path: Path, note: str | None):
    path = tmp_path / ".lock"
    with hold(path):
        beside = tmp_path / ".lock.holder"
        beside.unlink()
        if note is not None:
            beside.write_text(note, errors="surrogatepass")
        with pytest.raises(BusyError, match=r"in here\. Come back"), hold(path):
            pass


def test_a_note_that_finds_no_room_or_was_cut_short_leaves_nothing(tmp_path: Path):
    resource = pytest.importorskip("resource")
    (tmp_path / ".lock.note").write_text("of a process that was killed")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # a real error of the system
    try:
        with hold(tmp_path / ".lock"):
            assert [x.name for x in tmp_path.iterdir()] == [".lock"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
