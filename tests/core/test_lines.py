"""A file of lines that several processes append to and read on from where they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.core.lines import LineFile


def test_each_reader_gets_every_line_once(tmp_path: Path):
    one, other = LineFile(tmp_path / "f"), LineFile(tmp_path / "f")
    assert not one.changed()
    assert one.read_on() == (True, [])
    one.append(b"a\n")
    assert not one.changed()
    assert other.changed()
    assert other.read_on() == (True, [b"a"])
    other.append(b"b\n")
    other.append(b"c\n", durable=False)
    assert one.read_on() == (False, [b"b", b"c"])
    assert one.read_on() == (False, [])
    assert other.read_on() == (False, [])
    assert one.last_line() == b"c"


def test_what_is_not_a_whole_line_is_not_read_and_the_next_append_removes_it(tmp_path: Path):
    file = LineFile(tmp_path / "f")
    file.append(b"a\n")
    with file.path.open("ab") as torn:
        torn.write(b"half of a l")
    assert file.read_on() == (False, [])
    assert file.last_line() == b"a"
    file.append(b"b\n")
    assert file.path.read_bytes() == b"a\nb\n"


@pytest.mark.parametrize("now", [b"", b"a\n", b"x\ny\nz\n", b"a\nB\nc\n", None])
def test_a_file_that_is_another_is_read_from_its_start(tmp_path: Path, now: bytes | None):
    file = LineFile(tmp_path / "f")
    for line in (b"a\n", b"b\n"):
        file.append(line)
    if now is None:
        file.path.unlink()
    else:
        file.path.write_bytes(now)
    assert file.changed()
    assert file.read_on() == (True, (now or b"").split(b"\n")[:-1])
    assert not file.changed()
    file.append(b"new\n")
    assert file.path.read_bytes() == (now or b"") + b"new\n"
    assert file.read_on() == (False, [])


@given(st.lists(st.tuples(st.integers(0, 70_000), st.booleans()), max_size=6))
def test_lines_of_any_length_are_found_from_the_end(tmp_path_factory, lengths):
    file = LineFile(tmp_path_factory.mktemp("lines") / "f")
    kept = []
    for length, torn in lengths:
        file.append(b"x" * length + b"\n", durable=False)
        kept.append(b"x" * length)
        if torn:
            with file.path.open("ab") as half:
                half.write(b"y" * length)
        assert file.last_line() == kept[-1]
    assert LineFile(file.path).read_on() == (True, kept)
