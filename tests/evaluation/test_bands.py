"""Frequency bands: where they begin, and how many labels they have."""

from __future__ import annotations

import numpy as np

from depl.evaluation.bands import BANDS, band_of, labels_per_band


def test_band_limits():
    counts = np.array([0, 1, 9, 10, 99, 100, 10_000])
    names = [BANDS[i].name for i in band_of(counts)]
    assert names == ["0", "1-9", "1-9", "10-99", "10-99", "100+", "100+"]


def test_labels_per_band_counts_every_label_once_and_keeps_empty_bands():
    assert labels_per_band(np.array([0, 0, 9, 100, 5000])) == {
        "0": 2,
        "1-9": 1,
        "10-99": 0,
        "100+": 2,
    }
    assert labels_per_band(np.zeros(0, int)) == dict.fromkeys(("0", "1-9", "10-99", "100+"), 0)
