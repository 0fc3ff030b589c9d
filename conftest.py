"""Doctests are collected from all of ``src``; without torch the neural half is left out."""

import gc
from importlib.util import find_spec

pytest_plugins = ["tests.quick_python", "tests.tiny_encoder"]
collect_ignore = []
if find_spec("torch") is None or find_spec("transformers") is None:
    collect_ignore = ["src/depl/neural", "src/depl/pipeline/neural.py"]

# Everything that is imported stays; looking for garbage in it again and again would cost the tests
# a tenth of their time.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on only what tests make is looked through for garbage."""
    gc.freeze()
    gc.enable()
