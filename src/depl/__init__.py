"""Tag documents with labels from very large, long-tailed label sets; get the rare ones right."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depl.api import evaluate, fit
    from depl.classifier import Classifier
    from depl.config import Config
    from depl.corpus import Corpus, Dataset, Label, LabelSet
    from depl.descriptions import describe
    from depl.errors import DeplError
    from depl.features import TfidfFeatures
    from depl.keywords import top_keywords
    from depl.linear import OneVsAllSVM
    from depl.ranking import Ranking
    from depl.readers import read

__version__ = "0.1.0"

# Where each public name lives. They are imported on first use, so that `import depl` and
# `depl --help` stay fast.
_HOME = {
    "Classifier": "depl.classifier",
    "Config": "depl.config",
    "Corpus": "depl.corpus",
    "Dataset": "depl.corpus",
    "DeplError": "depl.errors",
    "Label": "depl.corpus",
    "LabelSet": "depl.corpus",
    "OneVsAllSVM": "depl.linear",
    "Ranking": "depl.ranking",
    "TfidfFeatures": "depl.features",
    "describe": "depl.descriptions",
    "evaluate": "depl.api",
    "fit": "depl.api",
    "read": "depl.readers",
    "top_keywords": "depl.keywords",
}

__all__ = [
    "Classifier",
    "Config",
    "Corpus",
    "Dataset",
    "DeplError",
    "Label",
    "LabelSet",
    "OneVsAllSVM",
    "Ranking",
    "TfidfFeatures",
    "describe",
    "evaluate",
    "fit",
    "read",
    "top_keywords",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'depl' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
