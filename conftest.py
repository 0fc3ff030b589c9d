"""Doctests are collected from all of ``src``; without torch the neural half is left out."""

from importlib.util import find_spec

collect_ignore = []
if find_spec("torch") is None or find_spec("transformers") is None:
    neural = ("encoder", "losses", "pretrained", "training")
    collect_ignore = [f"src/depl/{name}.py" for name in neural]
