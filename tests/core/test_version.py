"""One version, wherever it is asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import depl
from depl.core.version import __version__


def test_code_and_packaging_agree_on_the_version():
    packaging = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert __version__ == packaging["project"]["version"]
    assert depl.__version__ == __version__
