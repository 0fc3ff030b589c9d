"""Label-wise attention: as loops over documents, labels and tokens would have it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from depl.core.errors import ConfigError
from depl.core.ranking import Ranking
from depl.neural import attention as module
from depl.neural import encoder_files
from depl.neural.attention import LabelAttention, attended, candidate_ranking
from depl.neural.encoder import encode
from depl.neural.packing import TokenBank
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import tokenize
from depl.neural.training import Schedule, train

MAX_TOKENS = 24


@pytest.fixture
def encoder(tiny_folder, toy):
    """One whose labels look at tokens each in its own way."""
    found = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels, seed=3)
    found.add_attention()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        found.attention.normal_(generator=rng)
        found.document_pooler.weight.normal_(std=0.3, generator=rng)
        found.document_pooler.bias.normal_(generator=rng)
        found.head.bias.normal_(generator=rng)
    return found


@pytest.fixture
def tokens(toy, tiny_folder):
    return tokenize(toy.texts[:9], tiny_folder, MAX_TOKENS)


def by_hand(encoder, tokens, document, label):
    """The logit of a label, token by token, from the library's own forward pass."""
    ids = tokens.ids[tokens.indptr[document] : tokens.indptr[document + 1]].tolist()
    with torch.no_grad():
        states = encoder.bert(torch.tensor([ids])).last_hidden_state[0].double().numpy()
    pooler, head = encoder.document_pooler, encoder.head
    matrix, offset = (x.detach().double().numpy() for x in (pooler.weight, pooler.bias))
    own, bias = head.weight[label].detach().double().numpy(), head.bias[label].item()
    look = encoder.attention[label].detach().double().numpy()
    shares = np.exp([float(h @ look) for h in states])
    said = [float(own @ (matrix @ h + offset)) + bias for h in states]
    return float(np.average(said, weights=shares))


def test_logits_are_means_of_tokens_by_each_labels_attention(encoder, tokens, toy, monkeypatch):
    monkeypatch.setattr(module, "_LABELS", 3)
    every = torch.arange(toy.n_labels)
    batch = TokenBank(tokens, encoder.device).pack(np.arange(len(tokens)))
    with torch.no_grad():
        found = attended(encoder, batch, every).numpy()
    wanted = [
        [by_hand(encoder, tokens, i, j) for j in range(toy.n_labels)] for i in range(len(tokens))
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    chosen = np.random.default_rng(0).integers(0, toy.n_labels, (len(tokens), 4))
    with torch.no_grad():
        own = attended(encoder, batch, torch.from_numpy(chosen)).numpy()
    np.testing.assert_allclose(own, np.take_along_axis(found, chosen, axis=1), atol=1e-5)


def test_gradients_are_the_same_whatever_is_in_memory(encoder, tokens, toy, monkeypatch):
    def gradient(labels_at_a_time):
        monkeypatch.setattr(module, "_LABELS", labels_at_a_time)
        encoder.zero_grad()
        batch = TokenBank(tokens, encoder.device).pack(np.arange(len(tokens)))
        attended(encoder, batch, torch.arange(toy.n_labels)).square().sum().backward()
        return [p.grad.clone() for p in (encoder.attention, encoder.head.weight)]

    for whole, parts in zip(gradient(10**6), gradient(2), strict=True):
        assert whole.abs().max() > 0
        torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-5)


def test_before_it_is_trained_it_is_the_classifier(tiny_folder, tokens, toy):
    encoder = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels, seed=3)
    with torch.no_grad():
        wanted = encoder.head(encode(encoder, tokens, "document"))
        encoder.add_attention()
        batch = TokenBank(tokens, encoder.device).pack(np.arange(len(tokens)))
        found = attended(encoder, batch, torch.arange(toy.n_labels))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_labels_that_others_suggest_are_ranked_but_none_that_it_does_not_know(
    encoder, tokens, toy, tiny_folder, rng
):
    known = np.arange(toy.n_labels) % 3 > 0
    part = LabelAttention(encoder, tiny_folder, MAX_TOKENS, known, candidates=8)
    # Two labels were added since.
    ranked = Ranking.from_scores(rng.random((9, toy.n_labels + 2)), 8)
    found = part.rank(toy.texts[:9], [ranked], 5)
    for i in range(9):
        listed = [j for j in ranked.indices[i].tolist() if j < toy.n_labels and known[j]]
        logits = {j: by_hand(encoder, tokens, i, j) for j in listed}
        best = sorted(listed, key=lambda j: -logits[j])[:5]
        assert found.indices[i].tolist() == best + [-1] * (5 - len(best))
        wanted = [logits[j] for j in best]
        np.testing.assert_allclose(found.scores[i, : len(best)], wanted, atol=1e-4)
    alone = part.rank(toy.texts[4:5], [ranked.take(slice(4, 5))], 5)
    assert alone.indices.tolist() == found.indices[4:5].tolist()


def test_it_is_read_as_it_was_saved(encoder, tokens, toy, tiny_folder, tmp_path, rng):
    encoder_files.save(encoder, tmp_path / "saved", tiny_folder, max_tokens=MAX_TOKENS)
    again = encoder_files.load(tmp_path / "saved")
    candidates = Ranking.from_scores(rng.random((9, toy.n_labels)), 6)
    before, after = (candidate_ranking(x, tokens, candidates) for x in (encoder, again))
    assert (before.indices == after.indices).all()
    assert (before.scores == after.scores).all()


def test_labels_learn_which_word_is_theirs(tiny_folder):
    """Whether a label fits depends on one word of a text, and others outnumber it."""
    rng = np.random.default_rng(5)
    words = ["devo", "puse", "sele", "mipu"]
    fillers = ["fimi", "fino", "fira", "vono"]
    truth = rng.random((120, 4)) < 0.3
    texts = [
        " ".join(
            rng.permutation(
                [w for w, there in zip(words, row, strict=True) if there]
                + rng.choice(fillers, 8).tolist()
            )
        )
        for row in truth
    ]
    Y = csr_array(truth.astype(np.float32))
    encoder = encoder_files.load_encoder(tiny_folder, n_labels=4, seed=3)
    encoder.add_attention()
    train(
        encoder,
        tokenize(texts[:90], tiny_folder, MAX_TOKENS),
        Y[:90],
        objective="attention",
        schedule=Schedule(epochs=60, batch_size=16, encoder_lr=2e-3, pooler_lr=2e-3, head_lr=2e-2),
        sampler=LabelSampler(Y[:90], None, n_hard=0, size=4),
    )
    every = Ranking.from_scores(np.ones((30, 4)), 4)
    found = candidate_ranking(encoder, tokenize(texts[90:], tiny_folder, MAX_TOKENS), every)
    logits = np.take_along_axis(found.scores, np.argsort(found.indices, axis=1), axis=1)
    assert ((logits > 0) == truth[90:]).mean() > 0.95
    assert encoder.attention.abs().max().item() > 0.01


def test_what_it_needs_is_said(tiny_folder, tokens, toy):
    encoder = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels)
    sampler = LabelSampler(toy.Y[:9], None, n_hard=0, size=4)
    with pytest.raises(ConfigError, match="an encoder with attention"):
        train(
            encoder, tokens, toy.Y[:9], objective="attention", schedule=Schedule(), sampler=sampler
        )
