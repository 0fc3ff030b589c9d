"""The cross-encoder: pairs as plain lists would have them, scores as transformers computes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from depl.core.ranking import Ranking, agreed
from depl.neural import reranker as module
from depl.neural.reranker import Reranker, pair_tokens, tokenize_labels, training_pairs
from depl.neural.tokens import Tokens, tokenize

CANDIDATES, MAX_TOKENS = 5, 24

rows_of_ids = st.lists(st.lists(st.integers(1, 99), min_size=2, max_size=12), min_size=1)


@given(rows_of_ids, rows_of_ids, st.integers(12, 20), st.data())
def test_a_pair_is_the_label_and_the_document_without_its_first_token(
    documents, labels, longest, data
):
    pair = st.tuples(st.integers(0, len(documents) - 1), st.integers(0, len(labels) - 1))
    pairs = data.draw(st.lists(pair, min_size=1))
    rows, columns = np.array(pairs).T
    found = pair_tokens(
        Tokens.from_rows(documents), Tokens.from_rows(labels), rows, columns, longest
    )
    for i, (row, column) in enumerate(pairs):
        wanted = (labels[column] + documents[row][1:])[:longest]
        assert found.ids[found.indptr[i] : found.indptr[i + 1]].tolist() == wanted


def test_pairs_are_the_same_however_many_are_in_memory(monkeypatch):
    rng = np.random.default_rng(0)
    documents = Tokens.from_rows([rng.integers(1, 99, n).tolist() for n in rng.integers(2, 20, 9)])
    labels = Tokens.from_rows([rng.integers(1, 99, n).tolist() for n in rng.integers(2, 6, 7)])
    rows, columns = rng.integers(0, 9, 50), rng.integers(0, 7, 50)
    whole = pair_tokens(documents, labels, rows, columns, 12)
    monkeypatch.setattr(module, "_PAIRS", 3)
    portions = pair_tokens(documents, labels, rows, columns, 12)
    assert (whole.ids == portions.ids).all()
    assert (whole.indptr == portions.indptr).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_training_pairs_are_all_right_labels_and_wrong_ones_that_are_seen(seed, negatives):
    rng = np.random.default_rng(seed)
    Y = csr_array((rng.random((6, 10)) < 0.2).astype(np.float32))
    scores = np.where(rng.random((6, 10)) < 0.7, rng.random((6, 10)), -np.inf)
    candidates = Ranking.from_scores(scores, 7)
    rows, labels, true = training_pairs(Y, candidates, negatives, rng)
    dense, pairs = Y.toarray() > 0, list(zip(rows.tolist(), labels.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert sorted(p for p, right in zip(pairs, true, strict=True) if right) == sorted(
        zip(*(x.tolist() for x in np.nonzero(dense)), strict=True)
    )
    seen = dense.any(axis=0)
    for i in range(6):
        wrong = {
            pair[1] for pair, right in zip(pairs, true, strict=True) if pair[0] == i and not right
        }
        listed = [int(j) for j in candidates.indices[i] if j >= 0]
        possible = {j for j in listed if seen[j] and not dense[i, j]}
        assert wrong <= possible
        assert len(wrong) == min(negatives, len(possible))


@pytest.fixture
def reranker(tiny_folder):
    from depl.neural.encoder_files import load_encoder

    encoder = load_encoder(tiny_folder, n_labels=1, seed=3)
    return Reranker(encoder, tiny_folder, MAX_TOKENS, CANDIDATES)


def test_scores_are_those_of_the_library_reading_label_and_document(reranker, toy, rng):
    import torch

    ranked = [Ranking.from_scores(rng.random((6, toy.n_labels)), 4) for _ in range(2)]
    found = reranker.rank(toy.texts[:6], ranked, toy.names, CANDIDATES)
    together = agreed(ranked, CANDIDATES)
    documents = tokenize(toy.texts[:6], reranker.folder, MAX_TOKENS)
    labels = tokenize_labels(toy.names, reranker.folder, MAX_TOKENS)
    encoder = reranker.encoder
    for i in range(6):
        listed = together.indices[i][together.indices[i] >= 0]
        assert sorted(found.indices[i][found.indices[i] >= 0]) == sorted(listed)
        for label in listed:
            own = labels.ids[labels.indptr[label] : labels.indptr[label + 1]].tolist()
            own += documents.ids[documents.indptr[i] + 1 : documents.indptr[i + 1]].tolist()
            with torch.no_grad():
                states = encoder.bert(torch.tensor([own[:MAX_TOKENS]])).last_hidden_state
                logit = float(encoder.head(encoder.document_pooler(states.mean(dim=1))))
            score, _ = found.place(i, int(label))
            assert score == pytest.approx(logit, abs=1e-4)


def test_one_document_is_read_as_among_many_and_k_pads(reranker, toy, rng, monkeypatch):
    ranked = [Ranking.from_scores(rng.random((7, toy.n_labels)), 6)]
    many = reranker.rank(toy.texts[:7], ranked, toy.names, 3)
    assert many.k == 3
    monkeypatch.setattr(module, "_PAIRS", CANDIDATES)  # two documents at a time
    few = reranker.rank(toy.texts[:7], ranked, toy.names, CANDIDATES + 2)
    assert few.k == CANDIDATES + 2
    assert (few.indices[:, CANDIDATES:] == -1).all()
    assert (few.indices[:, :3] == many.indices).all()
    np.testing.assert_allclose(few.scores[:, :3], many.scores, atol=1e-5)
    none = reranker.rank([], [x.take(slice(0, 0)) for x in ranked], toy.names, 3)
    assert none.indices.shape == (0, 3)


def test_what_it_is_trained_on_it_tells_apart(reranker, toy, rng):
    from depl.neural.training import Schedule, train

    n = 12
    documents = tokenize(toy.texts[:n], reranker.folder, MAX_TOKENS)
    labels = tokenize_labels(toy.names, reranker.folder, MAX_TOKENS)
    every = Ranking.from_scores(rng.random((n, toy.n_labels)), CANDIDATES)
    rows, columns, true = training_pairs(toy.Y[:n], every, 2, rng)
    pairs = pair_tokens(documents, labels, rows, columns, MAX_TOKENS)
    schedule = Schedule(epochs=60, batch_size=8, encoder_lr=2e-3, pooler_lr=2e-3, head_lr=1e-2)
    Y = csr_array(true[:, None].astype(np.float32))
    train(reranker.encoder, pairs, Y, objective="classifier", schedule=schedule)
    found = reranker.rank(toy.texts[:n], [every], toy.names, CANDIDATES)
    scores = [found.place(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
    listed = np.array([place is not None for place in scores])
    logits = np.array([place[0] for place in scores if place is not None])
    assert ((logits > 0) == true[listed]).mean() > 0.9
