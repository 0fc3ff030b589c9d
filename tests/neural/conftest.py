"""A toy corpus that a tiny encoder can learn in a second."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.tiny_encoder import WORDS

from depl.core.indicator import indicator


def pytest_collect_file() -> None:
    """Skip this folder as a whole where the neural libraries are not installed.

    Asked for here, and not while this file is imported: pytest takes a skip there for an error if
    the folder is named on the command line. Doctests of ``src`` are not this folder's business.
    """
    for library in ("torch", "transformers", "tokenizers"):
        pytest.importorskip(library, reason="the neural tests need the extra depl[neural]")


@pytest.fixture(scope="session", autouse=True)
def small_matrices(one_thread):
    """All of this room's tests use one thread."""


@pytest.fixture
def encoder(tiny_folder: Path):
    """A fresh dual encoder with a head for the toy corpus, this test's own."""
    from depl.neural.encoder_files import load_encoder

    return load_encoder(tiny_folder, n_labels=Toy.n_labels)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@dataclass(frozen=True)
class Toy:
    """Documents that carry one or two of eight labels, and are told by the words of those."""

    texts: list[str]
    names: list[str]
    Y: csr_array

    n_labels = 8
    words_a_label = 5


@pytest.fixture(scope="session")
def toy() -> Toy:
    rng = np.random.default_rng(7)
    own = np.array(WORDS[: Toy.n_labels * Toy.words_a_label]).reshape(Toy.n_labels, -1)
    common = np.array(WORDS[len(WORDS) // 2 :])
    rows = [sorted(rng.choice(Toy.n_labels, 1 + i % 2, replace=False)) for i in range(96)]
    texts = [
        " ".join(rng.permutation([*rng.choice(own[row].ravel(), 8), *rng.choice(common, 4)]))
        for row in rows
    ]
    return Toy(texts, [" ".join(words[:2]) for words in own], indicator(rows, Toy.n_labels))
