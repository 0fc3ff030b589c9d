"""A tiny BERT with a tokenizer of its own, for tests in any room that need an encoder."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from depl.core.corpus import Corpus, Label, LabelSet

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo")
WORDS = [first + second for first, second in product(SYLLABLES, repeat=2)][:194]
VOCABULARY = (*SPECIAL, *WORDS, "##s")  # 200 pieces


@pytest.fixture(scope="session")
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
    folder = tmp_path_factory.mktemp("tiny")
    save_tiny_encoder(folder)
    return folder


def save_tiny_encoder(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(exist_ok=True)
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
