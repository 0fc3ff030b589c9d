"""Batches without padding: all tokens of all texts in one row, on the encoder's device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depl.neural.tokens import Tokens

Rows = NDArray[np.integer]


@dataclass(frozen=True)
class Packed:
    """A batch of texts as one row of tokens, on the encoder's device."""

    ids: Tensor  # (total,) token ids
    positions: Tensor  # (total,) position of each token in its text
    text: Tensor  # (total,) which text each token belongs to
    starts: Tensor  # (n + 1,) int32 cumulative lengths
    longest: int

    @property
    def n_texts(self) -> int:
        """How many texts the batch has."""
        return len(self.starts) - 1

    def pad(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """(total, ...) to (n, longest, ...), with the mask of real tokens."""
        padded = flat.new_zeros(self.n_texts, self.longest, *flat.shape[1:])
        mask = torch.zeros(self.n_texts, self.longest, dtype=torch.bool, device=flat.device)
        padded[self.text, self.positions] = flat
        mask[self.text, self.positions] = True
        return padded, mask


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array as a tensor on the device, without waiting for its queued work."""
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


class TokenBank:
    """All texts of a corpus on the device, from which batches are packed there.

    A batch then needs two small copies to the device, and no padding. (45,000 documents of 256
    tokens are 46 MB.)
    """

    def __init__(self, tokens: Tokens, device: torch.device) -> None:
        self.tokens = tokens
        self.device = device
        self.ids = torch.from_numpy(tokens.ids).to(device)

    def __len__(self) -> int:
        return len(self.tokens)

    def pack(self, rows: Rows) -> Packed:
        """The texts at these positions, in this order."""
        lengths = self.tokens.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        total = int(starts[-1])
        table = np.stack([starts[:-1], self.tokens.indptr[rows]])
        begin, source = on_device(table, self.device)
        counts = on_device(lengths, self.device)
        text = torch.repeat_interleave(counts, output_size=total)
        positions = torch.arange(total, device=self.device) - begin[text]
        return Packed(
            self.ids[source[text] + positions].long(),
            positions,
            text,
            on_device(starts.astype(np.int32), self.device),
            int(lengths.max()) if len(lengths) else 0,
        )
