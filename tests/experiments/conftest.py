"""Scripts of the folder ``experiments``, which import each other by their bare names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def import_script() -> Iterator[Callable[[str], ModuleType]]:
    """Imports a script by its name; other tests do not see it."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXPERIMENTS)
        yield importlib.import_module
    for name in set(sys.modules) - before:
        if any(map(_is_script, _places(sys.modules[name]))):
            del sys.modules[name]


def _places(module: ModuleType) -> Iterable[str]:
    """The folders of a package, the file of a module; some of torch's have neither."""
    folders, file = getattr(module, "__path__", None), getattr(module, "__file__", None)
    return folders if isinstance(folders, Iterable) else [file or ""]


def _is_script(path: str) -> bool:
    return Path(path).is_relative_to(EXPERIMENTS)
