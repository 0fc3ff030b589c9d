"""Tag documents with labels from very large, long-tailed label sets; get the rare ones right."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from depl.core import threads as threads  # first of all: see there
from depl.core.version import __version__ as __version__

if TYPE_CHECKING:
    from depl.api import evaluate, fit
    from depl.client import Client
    from depl.core.corpus import Corpus, Dataset, Label, LabelSet
    from depl.core.errors import DeplError
    from depl.core.ranking import Ranking
    from depl.model.classifier import Classifier
    from depl.readers.corpora import read
    from depl.run.config import Config
    from depl.sparse.keywords import describe, top_keywords
    from depl.sparse.svm import OneVsAllSVM
    from depl.sparse.tfidf import TfidfFeatures
    from depl.tagger import Tagger

# Where each public name lives. They are imported on first use, so that `import depl` and
# `depl --help` stay fast.
_HOME = {
    "Classifier": "depl.model.classifier",
    "Client": "depl.client.client",
    "Config": "depl.run.config",
    "Corpus": "depl.core.corpus",
    "Dataset": "depl.core.corpus",
    "DeplError": "depl.core.errors",
    "Label": "depl.core.corpus",
    "LabelSet": "depl.core.corpus",
    "OneVsAllSVM": "depl.sparse.svm",
    "Ranking": "depl.core.ranking",
    "Tagger": "depl.tagger",
    "TfidfFeatures": "depl.sparse.tfidf",
    "describe": "depl.sparse.keywords",
    "evaluate": "depl.api",
    "fit": "depl.api",
    "read": "depl.readers.corpora",
    "top_keywords": "depl.sparse.keywords",
}

__all__ = [
    "Classifier",
    "Client",
    "Config",
    "Corpus",
    "Dataset",
    "DeplError",
    "Label",
    "LabelSet",
    "OneVsAllSVM",
    "Ranking",
    "Tagger",
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
