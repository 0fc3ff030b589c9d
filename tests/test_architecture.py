"""The map of the code: it shows every room, and the imports as they are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "depl"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = sorted(
    path.stem
    for path in SOURCE.iterdir()
    if (path.suffix == ".py" and not path.stem.startswith("__")) or (path / "__init__.py").is_file()
)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))


def test_there_are_nine_layers_with_every_room_in_one(script: dict[str, Any]):
    layers = script["layers"]()
    assert len(layers) == 9
    assert sorted(room for layer in layers for room in layer) == ROOMS


def test_the_table_has_every_room_in_its_layer(script: dict[str, Any]):
    rows = re.findall(r"^\| (\d) \| `(\w+)` \|", PAGE, re.MULTILINE)
    layers = enumerate(reversed(script["layers"]()), start=1)
    assert sorted(rows) == sorted((str(i), room) for i, layer in layers for room in layer)


def test_the_picture_is_what_the_imports_are_now(script: dict[str, Any]):
    drawn = script["PICTURE"].read_text(encoding="utf-8")
    assert sorted(re.findall(r'class="name"[^>]*>(\w+)<', drawn)) == ROOMS
    assert drawn == script["draw"](), "run: python docs/draw_architecture.py"


def test_every_module_that_the_page_names_exists():
    named = [x for x in re.findall(r"`(\w+)\.(\w+)`", PAGE) if x[0] in ROOMS]
    assert named
    assert [x for x in named if not SOURCE.joinpath(*x).with_suffix(".py").is_file()] == []
