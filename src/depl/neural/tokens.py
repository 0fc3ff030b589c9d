"""Texts as the encoder's token ids: computed once, stored flat, batched without padding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depl.core.errors import MissingExtraError, RunError
from depl.core.progress import track
from depl.core.tensors import read_tensors, write_tensors

TOKENIZER = "tokenizer.json"  # its file in the folder of an encoder

_FILE = "tokens.safetensors"
_CHARACTERS = 8  # read per token; most have fewer
_CHUNK = 2_000  # texts per call of the tokenizer, which processes them in parallel


@dataclass(frozen=True)
class Tokens:
    """Token ids of many texts, one after the other.

    Parameters
    ----------
    ids : array of int32
        The ids of all texts.
    indptr : array of shape (n_texts + 1,), int64
        Text i is ``ids[indptr[i]:indptr[i + 1]]``.
    """

    ids: NDArray[np.int32]
    indptr: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[int]]) -> Tokens:
        """From one list of ids per text."""
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=indptr[1:])
        flat = [np.asarray(row, np.int32) for row in rows]
        return cls(np.concatenate(flat) if flat else np.empty(0, np.int32), indptr)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many tokens each text has."""
        return np.diff(self.indptr)

    def take(self, rows: NDArray[np.integer]) -> Tokens:
        """The texts at these positions, in this order."""
        lengths = self.lengths[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        # Index of every token of the result: its text's start plus its position in the text.
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return Tokens(self.ids[places], indptr)

    @classmethod
    def concatenate(cls, parts: Sequence[Tokens]) -> Tokens:
        """The texts of all parts, in their order."""
        lengths = np.concatenate([part.lengths for part in parts])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return cls(np.concatenate([part.ids for part in parts]), indptr)

    def distinct(self) -> tuple[Tokens, NDArray[np.int64]]:
        """Each text once, in the order in which they first occur; and where each of these is."""
        found: dict[bytes, int] = {}
        place = []
        for begin, end in pairwise(self.indptr.tolist()):
            digest = hashlib.blake2b(self.ids[begin:end].tobytes(), digest_size=16).digest()
            place.append(found.setdefault(digest, len(found)))
        _, first = np.unique(place, return_index=True)
        return self.take(first), np.asarray(place, np.int64)

    def save(self, folder: Path) -> None:
        """Write the ids, in two bytes each where they fit."""
        small = self.ids.max(initial=0) < 2**16
        ids = self.ids.astype(np.uint16 if small else np.int32)
        write_tensors(folder / _FILE, {"ids": ids, "indptr": self.indptr})

    @classmethod
    def load(cls, folder: Path) -> Tokens:
        """Read what ``save`` wrote."""
        kept = read_tensors(folder / _FILE, "ids", "indptr")
        ids, indptr = kept["ids"].astype(np.int32), kept["indptr"]
        if (
            not len(indptr)
            or indptr[0] != 0
            or indptr[-1] != len(ids)
            or (np.diff(indptr) < 0).any()
        ):
            raise RunError(
                f"{folder / _FILE} is damaged: its texts do not fit its {len(ids)} tokens. Delete "
                f"its folder and fit again."
            )
        return cls(ids, indptr)


# Tokens, or the encoder's pooled states of the texts, where it is not trained.
Texts = Tokens | NDArray[np.float32]


def some_of(texts: Texts, rows: NDArray[np.integer]) -> Texts:
    """The texts at these positions, in this order."""
    return texts.take(rows) if isinstance(texts, Tokens) else texts[rows]


def load_tokenizer(folder: Path):  # type: ignore[no-untyped-def]  # noqa: ANN201 - an extra
    """The fast tokenizer in an encoder's folder."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers", "neural", "Reading texts with an encoder") from None
    path = folder / TOKENIZER
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # its only type
        trouble = "is missing" if not path.exists() else f"is damaged ({error})"
        raise RunError(
            f"{path} {trouble}. In a run folder, make it again with `depl fit RUN`; elsewhere, "
            f"copy the encoder again from where it came."
        ) from error
    tokenizer.no_padding()
    return tokenizer


@lru_cache(maxsize=4)
def _cutting_tokenizer(folder: Path, max_tokens: int, written: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """A tokenizer that truncates; cached, as loading takes as long as encoding three documents.

    ``written`` is when its file was written: a replaced file is loaded again.
    """
    tokenizer = load_tokenizer(folder)
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def cutting_tokenizer(folder: Path, max_tokens: int) -> Any:  # noqa: ANN401 - an extra
    """The tokenizer in an encoder's folder as it is now, which truncates to ``max_tokens``."""
    path = folder / TOKENIZER
    written = path.stat().st_mtime_ns if path.exists() else 0
    return _cutting_tokenizer(folder, max_tokens, written)


def tokenize(texts: Sequence[str], folder: Path, max_tokens: int) -> Tokens:
    """Token ids of every text, special tokens included, truncated to ``max_tokens``."""
    return tokenize_with(cutting_tokenizer(folder, max_tokens), texts, max_tokens)


def tokenize_with(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> Tokens:  # noqa: ANN401
    """The same by a ``cutting_tokenizer`` that has been loaded.

    A tokenizer reads a whole text before it truncates. Most texts reach the limit long before their
    end, so only their beginnings are read, up to a space; those that fall short are read whole.
    """
    starts = range(0, len(texts), _CHUNK)
    rows: list[list[int]] = []
    for i in track(starts, "tokens", total=len(starts)):
        whole = texts[i : i + _CHUNK]
        begun = [_beginning(text, _CHARACTERS * max_tokens) for text in whole]
        found = [encoding.ids for encoding in tokenizer.encode_batch_fast(begun)]
        short = [
            j
            for j, ids in enumerate(found)
            if len(ids) < max_tokens and len(begun[j]) < len(whole[j])
        ]
        again = tokenizer.encode_batch_fast([whole[j] for j in short])
        for j, encoding in zip(short, again, strict=True):
            found[j] = encoding.ids
        rows += found
    return Tokens.from_rows(rows)


def token_counter(folder: Path) -> Callable[[str], int]:
    """Counts the tokens of a text as the tokenizer in a folder does, without special ones."""
    tokenizer = load_tokenizer(folder)
    tokenizer.no_truncation()
    return cache(lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def _beginning(text: str, length: int) -> str:
    """The text up to the last space before this length; all of it where there is none."""
    if len(text) <= length:
        return text
    end = text.rfind(" ", length // 2, length)
    return text if end < 0 else text[:end]


def batches(
    lengths: NDArray[np.integer], budget: int, rng: np.random.Generator | None = None
) -> Iterator[NDArray[np.int64]]:
    """Positions of texts in batches of about ``budget`` tokens.

    Without ``rng`` the texts go from long to short, which wastes least where batches are padded;
    with it they are shuffled.
    """
    order = np.argsort(-lengths, kind="stable") if rng is None else rng.permutation(len(lengths))
    ends = np.cumsum(lengths[order])
    first = 0
    while first < len(order):
        used = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, used + budget, side="right")), first + 1)
        yield order[first:last]
        first = last
