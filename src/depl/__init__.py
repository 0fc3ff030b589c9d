"""Tag documents with labels from very large, long-tailed label sets; get the rare ones right."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depl.api import evaluate, fit
    from depl.core.corpus import Corpus, Dataset, Label, LabelSet
    from depl.core.errors import DeplError
    from depl.core.ranking import Ranking
    from depl.model.classifier import Classifier
    from depl.readers.corpora import read
    from depl.run.config import Config
    from depl.sparse.descriptions import describe
    from depl.sparse.keywords import top_keywords
    from depl.sparse.svm import OneVsAllSVM
    from depl.sparse.tfidf import TfidfFeatures

__version__ = "0.1.0"

# OpenMP's threads busy-wait for each other by default. Where something else wants the cores, each
# then waits for one that is not running: two fits side by side on two cores took four times as long
# as with threads that sleep. The library reads this once, when it is loaded, so it is set before
# torch or scikit-learn bring theirs. `depl.neural.distributed` helps where they came first.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Where each public name lives. They are imported on first use, so that `import depl` and
# `depl --help` stay fast.
_HOME = {
    "Classifier": "depl.model.classifier",
    "Config": "depl.run.config",
    "Corpus": "depl.core.corpus",
    "Dataset": "depl.core.corpus",
    "DeplError": "depl.core.errors",
    "Label": "depl.core.corpus",
    "LabelSet": "depl.core.corpus",
    "OneVsAllSVM": "depl.sparse.svm",
    "Ranking": "depl.core.ranking",
    "TfidfFeatures": "depl.sparse.tfidf",
    "describe": "depl.sparse.descriptions",
    "evaluate": "depl.api",
    "fit": "depl.api",
    "read": "depl.readers.corpora",
    "top_keywords": "depl.sparse.keywords",
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
