"""What the tests of reading share."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from depl.core.errors import CorpusError
from depl.readers import read


def refusal(folder: Path, **options: object) -> str:
    """The message with which a folder is refused."""
    with pytest.raises(CorpusError) as caught:
        read(folder, **options)  # type: ignore[arg-type]
    return str(caught.value)


def skipped(folder: Path, caplog: pytest.LogCaptureFixture) -> tuple[list[str], str]:
    """The ids kept and the warning given."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "depl.readers"):
        data = read(folder, on_error="skip")
    assert len(caplog.records) == 1
    return data.train.ids, caplog.text
