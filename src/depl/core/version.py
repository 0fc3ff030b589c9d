"""The version of depl; ``pyproject.toml`` repeats it, and a test compares the two."""

__version__ = "0.1.0"
