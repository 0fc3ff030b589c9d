"""A tiny BERT with a tokenizer of its own, and a toy corpus that it can learn in a second."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from depl.corpus import Corpus, Label, LabelSet, indicator

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo")
WORDS = [first + second for first, second in product(SYLLABLES, repeat=2)][:194]
VOCABULARY = (*SPECIAL, *WORDS, "##s")  # 200 pieces


def pytest_collect_file() -> None:
    """Skip this folder as a whole where the neural libraries are not installed.

    Asked for here, and not while this file is imported: pytest takes a skip there for an error if
    the folder is named on the command line. Doctests of ``src`` are not this folder's business.
    """
    for library in ("torch", "transformers", "tokenizers"):
        pytest.importorskip(library, reason="the neural tests need the extra depl[neural]")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """One thread: tiny matrices gain nothing from more, and sums keep their order."""
    import torch

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def vocabulary() -> tuple[str, ...]:
    """The pieces that the tokenizer knows, by their ids: 5 special ones, then words."""
    return VOCABULARY


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 2 layers, size 32 and 4 heads, as Hugging Face lays it out; to be read only."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny")
    save_tokenizer(folder)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,  # with the usual 0.02 so small a BERT says the same of every text
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def two_words_a_label():
    """Makes corpora in which two words decide a label, and one of them names it."""

    def make(n_documents: int, n_labels: int, noise: slice) -> Corpus:
        rng = np.random.default_rng(0)
        words = np.array(WORDS)
        labels = LabelSet(Label(f"l{j}", words[2 * j]) for j in range(n_labels))
        rows, texts = [], []
        for _ in range(n_documents):
            carried = sorted(rng.choice(n_labels, rng.integers(1, 3), replace=False).tolist())
            signs = [words[2 * j + rng.integers(2)] for j in carried for _ in range(2)]
            texts.append(" ".join(rng.permutation([*signs, *rng.choice(words[noise], 6)])))
            rows.append(carried)
        return Corpus.from_rows([f"d{i}" for i in range(n_documents)], texts, rows, labels)

    return make


def save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    vocabulary = {piece: i for i, piece in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(s, vocabulary[s]) for s in ("[CLS]", "[SEP]")]
    )
    # As all-MiniLM-L6-v2 has it: whoever reads the file as it is gets padded and cut texts.
    tokenizer.enable_padding(length=16, pad_token="[PAD]")
    tokenizer.enable_truncation(16)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **dict(zip(names, SPECIAL, strict=True))
    ).save_pretrained(folder)


@pytest.fixture
def encoder(tiny_folder: Path):
    """A fresh dual encoder with a head for the toy corpus, this test's own."""
    from depl.pretrained import load_encoder

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
