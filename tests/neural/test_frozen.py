"""Gradients over a frozen encoder, block by block, against autograd's of the whole loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from depl.neural import frozen
from depl.neural.encoder_files import load_encoder
from depl.neural.losses import make_loss
from depl.neural.sampling import LabelSampler

N_DOCUMENTS, N_LABELS = 30, 40


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(frozen, "_BLOCK", 7)


def loss_and_weights(tiny_folder, objective, similarity, rng):
    encoder = load_encoder(
        tiny_folder, n_labels=N_LABELS, similarity=similarity, poolers="random", seed=1
    )
    size = encoder.document_pooler.in_features
    documents, labels = (
        rng.standard_normal((n, size)).astype(np.float32) for n in (N_DOCUMENTS, N_LABELS)
    )
    Y = csr_array((rng.random((N_DOCUMENTS, N_LABELS)) < 0.1).astype(np.float32))
    sampler = LabelSampler(Y, None, n_hard=0, size=30)
    weights = {n: p for n, p in encoder.named_parameters() if not n.startswith("bert.")}
    return make_loss(encoder, documents, Y, labels, sampler, objective), weights


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("objective", ["joint", "dual"])
@pytest.mark.parametrize("alive", [0.0, 0.7])
def test_gradients_are_those_of_autograd(
    tiny_folder, objective, similarity, alive, rng, small_blocks
):
    loss_of, weights = loss_and_weights(tiny_folder, objective, similarity, rng)
    rows = np.arange(3, 20)
    subset = loss_of.subset(rows, rng)
    expected = loss_of(rows, subset, alive) * 0.5
    expected.backward()
    wanted = {name: p.grad for name, p in weights.items()}
    for p in weights.values():
        p.grad = None
    found = loss_of.add_gradients(rows, subset, alive, 0.5)
    torch.testing.assert_close(found, expected.detach(), rtol=1e-5, atol=1e-7)
    for name, p in weights.items():
        if wanted[name] is None:
            assert p.grad is None, name
        else:
            torch.testing.assert_close(p.grad, wanted[name], rtol=1e-3, atol=1e-6)


def test_the_number_of_threads_does_not_change_a_bit(tiny_folder, small_blocks):
    found = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        rng = np.random.default_rng(0)
        try:
            loss_of, weights = loss_and_weights(tiny_folder, "joint", "cosine", rng)
            rows = np.arange(20)
            loss_of.add_gradients(rows, loss_of.subset(rows, rng), 0.7, 1.0)
        finally:
            torch.set_num_threads(1)
        found.append({name: p.grad for name, p in weights.items()})
    for name, gradient in found[0].items():
        assert torch.equal(gradient, found[1][name]), name


def test_a_second_portion_is_added(tiny_folder, rng):
    loss_of, weights = loss_and_weights(tiny_folder, "joint", "cosine", rng)
    rows = np.arange(16)
    subset = loss_of.subset(rows, rng)
    loss_of.add_gradients(rows, subset, 0.7, 1.0)
    whole = {name: p.grad.clone() for name, p in weights.items()}
    for p in weights.values():
        p.grad = None
    for half in np.split(rows, 2):
        loss_of.add_gradients(half, subset, 0.7, 0.5)
    for name, p in weights.items():
        torch.testing.assert_close(p.grad, whole[name], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("size", [100.0, 1e4])
def test_extreme_logits_give_finite_gradients(tiny_folder, rng, size):
    loss_of, weights = loss_and_weights(tiny_folder, "joint", "cosine", rng)
    with torch.no_grad():
        weights["logit_scale"].fill_(size)
        weights["head.bias"].fill_(size)
    rows = np.arange(16)
    loss_of.add_gradients(rows, loss_of.subset(rows, rng), 0.0, 1.0)
    assert all(p.grad.isfinite().all() for p in weights.values())
