"""The pooled states of the latest texts, so that a text which comes again is not encoded again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from depl.core.hashes import text_digest

States = NDArray[np.float32]


class LatestStates:
    """Pooled states of texts, by their digests; those that were not asked for longest go first.

    Where somebody decides about suggestions, a document is read several times: when labels are
    suggested for it, when they are explained, and when the decisions are kept and learnt from.
    Encoding it takes longer than all the rest.

    Parameters
    ----------
    most : int
        How many texts to know. What more texts than that are given at once is not remembered.
    """

    def __init__(self, most: int = 2_048) -> None:
        self._most = most
        self._states: OrderedDict[str, States] = OrderedDict()
        self._lock = Lock()

    def of(self, texts: Sequence[str], encode: Callable[[list[str]], States]) -> States:
        """The states of texts, (n, size); ``encode`` gives those that are not known."""
        if not 0 < len(texts) <= self._most:
            return encode(list(texts))
        digests = [text_digest(text) for text in texts]
        known = self.known(digests)
        new = {x: text for x, text in zip(digests, texts, strict=True) if x not in known}
        if new:
            # A copy of each, or one row that is kept would keep all others.
            found = dict(zip(new, map(np.copy, encode(list(new.values()))), strict=True))
            self.learn(found)
            known |= found
        return np.stack([known[x] for x in digests])

    def known(self, digests: Iterable[str]) -> dict[str, States]:
        """The states of the texts with these digests, as far as they are known."""
        with self._lock:
            found = {x: self._states[x] for x in digests if x in self._states}
            for x in found:
                self._states.move_to_end(x)
        return found

    def learn(self, states: Mapping[str, States]) -> None:
        """Know further states, all of them, by the digests of their texts."""
        with self._lock:
            self._most = max(self._most, len(states))
            self._states.update(states)
            while len(self._states) > self._most:
                self._states.popitem(last=False)
