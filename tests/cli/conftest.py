"""What all tests of commands share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def figures_in_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are written in half the time; the tests of reports look at both sizes."""
    monkeypatch.setattr("depl.evaluation.html.SIZES", ("wide",))
