"""The Extreme Classification Repository's sparse files: recognised, explained, not read."""

from __future__ import annotations

import re
from pathlib import Path

from depl.core.errors import CorpusError
from depl.readers.lines import first_line

# "documents features labels", or "rows columns" in the newer files that hold one matrix each.
_THREE = re.compile(r"\d+\s+\d+\s+\d+\s*")
_TWO = re.compile(r"\d+\s+\d+\s*")


def refuse(folder: Path, layouts: str) -> None:
    """Raise ``CorpusError`` if the folder holds feature numbers instead of texts."""
    for path in sorted(folder.glob("*.txt*")):
        start = first_line(path) if path.is_file() else ""
        if _THREE.fullmatch(start) or (path.name.endswith("_Xf.txt") and _TWO.fullmatch(start)):
            raise CorpusError(
                f"{path} is a sparse bag-of-words file (its header is {start.strip()!r}): it "
                f"holds numbers of words, not the words. A plain linear model could be trained "
                f"on it, but nothing else that depl does: no keywords, no label descriptions, no "
                f"encoder, no new documents as text. Get the raw-text version of the same set, "
                f"in one of these layouts:\n{layouts}"
            )
