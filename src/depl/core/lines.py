"""A file of lines to which processes append under a lock, and which others read without one."""

from __future__ import annotations

import os
from pathlib import Path

from depl.core.errors import RunError, explain_os_errors
from depl.core.storage import append, flush, whole_file

_CHUNK = 2**16  # bytes to read at a time from the end of the file


class LineFile:
    """A file of lines, read from where the last reading ended.

    A line counts once its line break is there. What a kill or a power cut left of another is not
    read, and the next append removes it.

    Parameters
    ----------
    path : Path
        The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rewind()

    def rewind(self) -> None:
        """Let the next reading begin at the start."""
        self._read = 0  # bytes
        self._last = b""  # the last line that was read
        self._seen: tuple[int, ...] | None = None

    def changed(self) -> bool:
        """Whether the file is another than when it was last read. This costs next to nothing."""
        return self._signature() != self._seen

    def read_on(self) -> tuple[bool, list[bytes]]:
        """Lines that were not read before, and whether they start at the beginning.

        They do at first, and again when what was read is no longer there: the file was cut, or
        another was put in its place.
        """
        try:
            with self.path.open("rb") as file:
                self._seen = _signature(os.fstat(file.fileno()))
                known = len(self._last)
                file.seek(self._read - known)
                raw = file.read()
                again = not raw.startswith(self._last)
                if again:
                    file.seek(0)
                    raw, known, self._read = file.read(), 0, 0
        except FileNotFoundError:
            self.rewind()
            return True, []
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be read ({error.strerror}). Check permissions and the disk."
            ) from error
        whole = raw[known : raw.rfind(b"\n") + 1]
        from_start = self._read == 0
        lines = whole.split(b"\n")[:-1]
        self._read += len(whole)
        if lines:
            self._last = lines[-1] + b"\n"
        elif from_start:
            self._last = b""
        return from_start or again, lines

    def append(self, line: bytes, *, durable: bool = True) -> None:
        """Write a line, line break included; the caller holds a lock.

        Parameters
        ----------
        line : bytes
            The line.
        durable : bool
            Wait until it is on the disk.
        """
        new = not self.path.exists()
        end = self._end()
        if new:  # whole or not at all: no file is empty because a disk was full or a process killed
            with whole_file(self.path) as unfinished:
                unfinished.write_bytes(line)
        else:
            append(self.path, line, after=end, durable=durable)
        if new and durable:  # the file is new in its folder, and the folder may be
            with explain_os_errors(self.path):
                flush(self.path.parent)
                flush(self.path.parent.parent)
        if self._read == end:  # all before it was read, so this line need not be
            self._read, self._last = end + len(line), line
            self._seen = self._signature()

    def last_line(self) -> bytes:
        """The last whole line, without its line break; empty where there is none."""
        end = self._end()
        return self._back_to_line_break(end - 1)[1] if end else b""

    def _end(self) -> int:
        """Where the last whole line ends."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return 0
        return self._back_to_line_break(size)[0]

    def _back_to_line_break(self, end: int) -> tuple[int, bytes]:
        """The place behind the last line break before ``end``, and what is between the two."""
        between = b""
        with explain_os_errors(self.path), self.path.open("rb") as file:
            while end > 0:
                start = max(0, end - _CHUNK)
                file.seek(start)
                chunk = file.read(end - start)
                place = chunk.rfind(b"\n") + 1
                between = chunk[place:] + between
                if place:
                    return start + place, between
                end = start
        return 0, between

    def _signature(self) -> tuple[int, ...] | None:
        # Not by its name alone: on network storage a machine asks for news of a file that is
        # opened, and else believes for seconds what it knows.
        try:
            with self.path.open("rb", buffering=0) as file:
                return _signature(os.fstat(file.fileno()))
        except OSError:
            return None


def _signature(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
