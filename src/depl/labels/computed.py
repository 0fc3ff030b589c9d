"""What was computed for edits of labels, kept beside the journal so that loading needs no model.

``RUN/labels/computed.log`` has one line per edit: its number, a checksum, the key of what it was
computed from, and JSON with the arrays in base64. It is a cache. A line is written before that of
the journal, without waiting for the disk; one that is missing, torn, damaged or of another fit is
computed again from the journal. As every edit has a line, the file also tells when a journal has
lost some of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import frombuffer
from numpy.typing import NDArray

from depl.core.errors import explain_os_errors
from depl.core.lines import LineFile
from depl.core.storage import write_text
from depl.labels.growing import Rows


@dataclass(frozen=True)
class Computed:
    """What was computed for the n labels of one edit.

    Parameters
    ----------
    descriptions : list of str
        The text that describes each label.
    terms : list of str
        Words of names and examples that the run does not know; in ``names`` and ``examples`` they
        come after the run's own terms.
    names, owner : Rows, array
        Tf-idf of what is matched with texts, and to which of the n labels each row belongs,
        ascending.
    vectors : array of shape (n, size)
        Their vectors in the label index; (n, 0) in a run without one.
    name_vectors : array of shape (n, size)
        Those of their names alone in the index of names; (n, 0) likewise.
    weights, bias : Rows, array of shape (n,)
        Their SVMs; -inf where there is none. Of added labels only.
    keyword_terms, keyword_weights : arrays of shape (n, n_keywords)
        As in ``Keywords``. Of added labels only.
    examples : Rows
        Tf-idf of the example documents.
    profiles : Rows
        What the SVM sees in each label's examples, by ``sparse.evidence``.
    likely : Rows
        What sets each label's likely documents apart, by ``sparse.likely``. Of added labels only.
    bounds : array of shape (n,)
        In which share of the documents each label may be, by ``sparse.breadth``.
    shares : array of shape (n,)
        In which share of the documents each label probably is, likewise.
    documents : array of shape (n_examples, size)
        Vectors of the example documents; (n_examples, 0) in a run without an encoder.
    rows : array of shape (n_examples,)
        The training document that an example is, or -1.
    carried : array of shape (n_pairs, 2)
        Pairs of an example and the one of the n labels it is an example of.
    """

    descriptions: list[str]
    terms: list[str]
    names: Rows
    owner: NDArray[np.int64]
    vectors: NDArray[np.float32]
    name_vectors: NDArray[np.float32]
    weights: Rows
    bias: NDArray[np.float32]
    keyword_terms: NDArray[np.int32]
    keyword_weights: NDArray[np.float32]
    examples: Rows
    profiles: Rows
    likely: Rows
    bounds: NDArray[np.float32]
    shares: NDArray[np.float32]
    documents: NDArray[np.float32]
    rows: NDArray[np.int64]
    carried: NDArray[np.int64]

    def _arrays(self) -> list[NDArray[Any]]:
        found: list[NDArray[Any]] = []
        for name in _FIELDS:
            value = getattr(self, name)
            found += value if isinstance(value, Rows) else [value]
        return found

    def to_json(self) -> dict[str, Any]:
        """As it is written to the file."""
        pairs = zip(self._arrays(), _KINDS, strict=True)
        raw = b"".join(np.ascontiguousarray(array, kind).tobytes() for array, kind in pairs)
        return {
            "descriptions": self.descriptions,
            "terms": self.terms,
            "sizes": [len(array) for array in self._arrays()],
            "widths": [array.shape[1] for array in self._arrays() if array.ndim == 2],
            "arrays": b64encode(raw).decode(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Computed:
        """What ``to_json`` gave."""
        raw, widths, at = b64decode(value["arrays"]), iter(value["widths"]), 0
        arrays: list[Any] = []
        for n, (kind, size, flat) in zip(value["sizes"], _LAYOUT, strict=True):
            if flat:
                arrays.append(frombuffer(raw, kind, n, at))
            else:
                width = next(widths)
                arrays.append(frombuffer(raw, kind, n * width, at).reshape(n, width))
                n *= width
            at += n * size
        parts = [Rows(*arrays[:3]), *arrays[3:6], Rows(*arrays[6:9]), *arrays[9:12]]
        parts += [Rows(*arrays[i : i + 3]) for i in (12, 15, 18)] + arrays[21:]
        return cls(value["descriptions"], value["terms"], *parts)


_FIELDS = [x for x in Computed.__dataclass_fields__ if x not in ("descriptions", "terms")]
_ROWS = ("<f4", "<i4", "<i8")
_KINDS = (
    *(*_ROWS, "<i8", "<f4", "<f4"),
    *(*_ROWS, "<f4", "<i4", "<f4"),
    *(*_ROWS, *_ROWS, *_ROWS, "<f4", "<f4", "<f4", "<i8", "<i8"),
)
_FLAT = (
    *((True,) * 4 + (False,) * 2),
    *((True,) * 4 + (False,) * 2),
    *((True,) * 11 + (False, True, False)),
)
_LAYOUT = [
    (np.dtype(kind), np.dtype(kind).itemsize, flat)
    for kind, flat in zip(_KINDS, _FLAT, strict=True)
]

# Part of the key: another layout is computed again. Labels in profiles count by their rarity.
LAYOUT = [*_FIELDS, *_KINDS, "rarity"]

_OLD_FOLDER = re.compile(r"\d{6}")  # where earlier versions kept what was computed for one entry


class ComputedLog:
    """The file of what was computed for the edits of one run.

    Parameters
    ----------
    folder : Path
        ``RUN/labels``.
    """

    def __init__(self, folder: Path) -> None:
        self._file = LineFile(folder / "computed.log")

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def rewind(self) -> None:
        """Let the next reading begin at the start."""
        self._file.rewind()

    def read_on(self) -> dict[int, tuple[str, bytes]]:
        """Key and content of what was written since the last call, by number of entry."""
        _, lines = self._file.read_on()
        found = {}
        for line in lines:
            number, _, rest = line.partition(b" ")
            crc, _, body = rest.partition(b" ")
            if number.isdigit() and crc == b"%08x" % zlib.crc32(body):
                key, _, content = body.partition(b" ")
                found[int(number)] = key.decode(), content
        return found

    def last_entry(self) -> int:
        """The number of the last entry for which there is a line; 0 where there is none."""
        number = self._file.last_line().partition(b" ")[0]
        return int(number) if number.isdigit() else 0

    def append(self, number: int, key: str, computed: Computed | None) -> None:
        """Write a line for an entry; None where nothing had to be computed."""
        self._file.append(_line(number, key, computed), durable=False)

    def replace(self, lines: Mapping[int, tuple[str, Computed | None]]) -> None:
        """Write the whole file, without what nobody needs any more."""
        text = b"".join(_line(number, *lines[number]) for number in sorted(lines)).decode()
        write_text(self.path, text)
        with explain_os_errors(self.path):
            for old in self.path.parent.iterdir():
                if _OLD_FOLDER.fullmatch(old.name) and not old.is_symlink() and old.is_dir():
                    shutil.rmtree(old)


def decoded(content: bytes) -> Computed | None:
    """The content of a line."""
    value = json.loads(content)
    return None if value is None else Computed.from_json(value)


def _line(number: int, key: str, computed: Computed | None) -> bytes:
    content = json.dumps(None if computed is None else computed.to_json())
    body = f"{key} {content}".encode()
    return b"%d %08x %s\n" % (number, zlib.crc32(body), body)
