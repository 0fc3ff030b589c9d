"""What a run's encoder made of the documents that people decided about.

Labels were suggested for nearly all of them, and for that they were encoded. So the pooled states
of their texts and titles are kept in ``RUN/feedback/encoded/``, a file for each text, and learning
from them need not encode them again. Nothing is lost with these files: what is missing, or not what
was written, is encoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import DeplError, explain_os_errors
from depl.core.storage import fingerprint
from depl.core.tensors import read_tensors, write_tensors
from depl.run.folder import Run

_ENCODER = "encoder"  # the stage


class EncodedTexts:
    """Pooled states of texts by a run's encoder.

    Parameters
    ----------
    run : Run
        With an encoder. Fitted again, it knows none of those that are of another encoder.
    """

    def __init__(self, run: Run) -> None:
        self._folder = run.path / "feedback" / "encoded"
        files = run.files(_ENCODER)
        stage = run.manifest()["stages"][_ENCODER]["fingerprint"]
        self._encoder = fingerprint(stage, *(files[name].sha256 for name in sorted(files)))

    def keep(self, states: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep states by the digests of their texts, as far as the disk allows."""
        with suppress(DeplError), explain_os_errors(self._folder):
            for digest, state in states.items():
                path = self._folder / self._name(digest)
                if not path.exists():
                    self._folder.mkdir(parents=True, exist_ok=True)
                    write_tensors(path, {"state": state, "hash": _hash(state)})

    def read(self, digests: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The states of the texts with these digests that are there and as they were written."""
        found = {}
        for digest in digests:
            with suppress(DeplError), explain_os_errors(self._folder):
                kept = read_tensors(self._folder / self._name(digest), "state", "hash")
                if np.array_equal(kept["hash"], _hash(kept["state"])):
                    found[digest] = kept["state"]
        return found

    def _name(self, digest: str) -> str:
        return f"{fingerprint(self._encoder, digest)}.safetensors"


def _hash(state: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.frombuffer(hashlib.sha256(state.tobytes()).digest(), np.uint8)
