"""Documents and their labels on the device, as tables: a batch is some of their rows."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from depl.neural.tokens import Tokens


class Documents:
    """Padded token ids of all documents, copied to the device once.

    Every batch of so many documents has the same shape, whatever their lengths, and nothing waits
    for the device. (45,000 documents of 256 tokens are 46 MB.)

    Parameters
    ----------
    tokens : Tokens
        The documents.
    device : torch.device
        Where they are wanted.
    Y : csr_array of shape (n_documents, n_labels) or None
        Which document carries which label, where that is known.
    """

    def __init__(self, tokens: Tokens, device: torch.device, Y: csr_array | None = None) -> None:
        self.lengths = tokens.lengths
        self._ids = torch.from_numpy(_table(tokens.ids, self.lengths, 0)).to(device)
        self._counts = torch.from_numpy(self.lengths).to(device)
        if Y is not None:
            self.n_labels = Y.shape[1]
            carried = _table(Y.indices, np.diff(Y.indptr), self.n_labels)
            self._labels = torch.from_numpy(carried.astype(np.int64)).to(device)

    def texts(self, rows: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """Token ids and the mask of real tokens, padded to ``width`` (by default the longest)."""
        ids = self._ids[rows, :width].long()
        places = torch.arange(ids.shape[1], device=ids.device)
        return ids, places < self._counts[rows, None]

    def targets(self, rows: Tensor) -> Tensor:
        """1 for the labels that each document carries, (rows, n_labels)."""
        carried = self._labels[rows]
        found = torch.zeros(len(rows), self.n_labels + 1, device=carried.device)
        return found.scatter_(1, carried, 1.0)[:, :-1]  # without the column that fills the table


def _table(
    values: NDArray[np.integer], lengths: NDArray[np.integer], fill: int
) -> NDArray[np.integer]:
    """Rows of different lengths, one after the other in ``values``, as one array."""
    out = np.full((len(lengths), int(lengths.max(initial=1))), fill, values.dtype)
    out[np.arange(out.shape[1]) < lengths[:, None]] = values
    return out
