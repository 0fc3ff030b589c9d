"""Frequency bands: labels grouped by how many training documents carry them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Band(NamedTuple):
    """Labels of similar frequency, from ``first`` training documents up to the next band."""

    name: str
    first: int


BANDS = (Band("0", 0), Band("1-9", 1), Band("10-99", 10), Band("100+", 100))


def band_of(counts: NDArray[np.integer]) -> NDArray[np.intp]:
    """Position in ``BANDS`` of each label, from the number of training documents that carry it.

    Examples
    --------
    >>> [BANDS[b].name for b in band_of(np.array([0, 1, 9, 10, 99, 100, 5000]))]
    ['0', '1-9', '1-9', '10-99', '10-99', '100+', '100+']
    """
    return np.searchsorted([band.first for band in BANDS], counts, side="right") - 1


def labels_per_band(counts: NDArray[np.integer]) -> dict[str, int]:
    """How many labels each band has, by the band's name, from rare to common; empty bands have 0.

    Examples
    --------
    >>> labels_per_band(np.array([0, 1, 9, 5000]))
    {'0': 1, '1-9': 2, '10-99': 0, '100+': 1}
    """
    sizes = np.bincount(band_of(counts), minlength=len(BANDS))
    return {band.name: int(size) for band, size in zip(BANDS, sizes, strict=True)}
