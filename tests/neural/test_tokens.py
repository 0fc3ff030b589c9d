"""Token ids: flat storage, batches by budget, and the tokenizer's settings."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depl.core.errors import MissingExtraError
from depl.neural import tokens as module
from depl.neural.tokens import Tokens, batches, load_tokenizer, tokenize

rows_of_ids = st.lists(st.lists(st.integers(0, 999), max_size=6), max_size=8)


def unpacked(tokens: Tokens) -> list[list[int]]:
    return [
        tokens.ids[a:b].tolist() for a, b in zip(tokens.indptr[:-1], tokens.indptr[1:], strict=True)
    ]


@given(rows_of_ids)
def test_rows_come_back_as_they_went_in(rows):
    tokens = Tokens.from_rows(rows)
    assert unpacked(tokens) == rows
    assert len(tokens) == len(rows)
    assert tokens.lengths.tolist() == [len(row) for row in rows]
    assert tokens.ids.dtype == np.int32


@given(st.data())
def test_take_is_indexing_with_repeats_and_in_any_order(data):
    rows = data.draw(rows_of_ids.filter(bool))
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    taken = Tokens.from_rows(rows).take(np.array(picked, dtype=np.int64))
    assert unpacked(taken) == [rows[i] for i in picked]


@given(st.lists(st.integers(1, 30), max_size=30), st.integers(1, 60), st.booleans())
def test_batches_hold_every_text_once_and_keep_to_the_budget(lengths, budget, shuffled):
    sizes = np.array(lengths, dtype=np.int64)
    rng = np.random.default_rng(3) if shuffled else None
    found = list(batches(sizes, budget, rng))
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    assert all(sizes[batch].sum() <= budget or len(batch) == 1 for batch in found)


def test_batches_go_from_long_to_short_unless_shuffled(rng):
    lengths = rng.integers(1, 50, 200)
    in_order = np.concatenate(list(batches(lengths, 100)))
    assert (np.diff(lengths[in_order]) <= 0).all()
    shuffled = [
        np.concatenate(list(batches(lengths, 100, np.random.default_rng(s)))) for s in (5, 5, 6)
    ]
    assert (shuffled[0] == shuffled[1]).all()
    assert (shuffled[0] != shuffled[2]).any()
    assert (np.diff(lengths[shuffled[0]]) > 0).any()


def test_special_tokens_are_put_around_and_words_are_cut_into_pieces(tiny_folder, vocabulary):
    (ids,) = unpacked(tokenize(["BADE bafis unheard-of"], tiny_folder, 64))
    pieces = ["[CLS]", "bade", "bafi", "##s", "[UNK]", "[UNK]", "[UNK]", "[SEP]"]
    assert [vocabulary[i] for i in ids] == pieces


def test_long_texts_are_cut_short_ones_not_padded_whatever_the_file_says(tiny_folder, vocabulary):
    # The tokenizer's own file pads and cuts to 16.
    words = vocabulary[5:55]
    texts = [" ".join(words), words[0], ""]
    assert tokenize(texts, tiny_folder, 8).lengths.tolist() == [8, 3, 2]
    assert tokenize(texts, tiny_folder, 64).lengths.tolist() == [52, 3, 2]
    cut = [vocabulary[i] for i in unpacked(tokenize(texts, tiny_folder, 8))[0]]
    assert cut == ["[CLS]", *words[:6], "[SEP]"]


def test_the_ids_are_those_of_transformers(tiny_folder, toy):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(tiny_folder)
    expected = theirs(toy.texts, truncation=True, max_length=10, padding=False)["input_ids"]
    assert unpacked(tokenize(toy.texts, tiny_folder, 10)) == expected


def test_chunks_do_not_show(tiny_folder, toy, monkeypatch):
    whole = tokenize(toy.texts, tiny_folder, 12)
    monkeypatch.setattr(module, "_CHUNK", 7)
    assert unpacked(tokenize(toy.texts, tiny_folder, 12)) == unpacked(whole)
    assert len(tokenize([], tiny_folder, 12)) == 0


def test_a_missing_library_is_named_with_its_extra(tiny_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"depl\[neural\]"):
        load_tokenizer(tiny_folder)


def test_texts_that_are_begun_only_have_the_tokens_of_the_whole(tiny_folder, vocabulary):
    rng = np.random.default_rng(0)
    words = [w for w in vocabulary if w.isalpha()]
    texts = []
    for _ in range(300):
        pieces = rng.choice([*words, "x" * 90, "\n", "  ", "-", "Ärger", "\u0301"], 60).tolist()
        glue = [str(g) for g in rng.choice([" ", " ", "", "\n", " " * 40], 60)]
        texts.append("".join(p + g for p, g in zip(pieces, glue, strict=True)))
    texts += ["", "x" * 5000, " " * 5000, " ".join(["x" * 99] * 50), f"{words[0]}{' ' * 4000}end"]
    plain = load_tokenizer(tiny_folder)
    for max_tokens in (3, 8, 24):
        plain.enable_truncation(max_tokens)
        expected = [e.ids for e in plain.encode_batch(texts)]
        assert unpacked(tokenize(texts, tiny_folder, max_tokens)) == expected


def test_long_texts_are_not_read_to_their_end(tiny_folder, monkeypatch):
    read = []
    tokenizer = load_tokenizer(tiny_folder)
    tokenizer.enable_truncation(8)

    class Reader:
        def encode_batch_fast(self, texts):
            read.append(sum(map(len, texts)))
            return tokenizer.encode_batch_fast(texts)

    monkeypatch.setattr(module, "_cutting_tokenizer", lambda *_: Reader())
    tokenize(["a b c d " * 1000, "short"], tiny_folder, 8)
    assert sum(read) < 100


def test_distinct_texts_and_where_they_are():
    tokens = Tokens.concatenate(
        [Tokens.from_rows([[5, 6], [], [5]]), Tokens.from_rows([[5, 6], [7]])]
    )
    once, place = tokens.distinct()
    assert [row.tolist() for row in np.split(once.ids, once.indptr[1:-1])] == [[5, 6], [], [5], [7]]
    assert place.tolist() == [0, 1, 2, 0, 3]


def test_no_text_is_distinct():
    once, place = Tokens.from_rows([]).distinct()
    assert len(once) == 0
    assert len(place) == 0
