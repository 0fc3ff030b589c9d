"""Doctests are collected from all of ``src``; without torch the neural half is left out."""

from importlib.util import find_spec

pytest_plugins = ["tests.tiny_encoder"]
collect_ignore = []
if find_spec("torch") is None or find_spec("transformers") is None:
    collect_ignore = ["src/depl/neural", "src/depl/pipeline/neural.py"]
