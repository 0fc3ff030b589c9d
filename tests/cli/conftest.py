"""What all tests of commands share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quick_reports(figures_in_one_size: None) -> None:
    """Commands that write reports are quicker."""
