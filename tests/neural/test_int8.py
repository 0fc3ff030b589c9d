"""The compiled loops of the 8-bit forward pass against PyTorch's operations in float32."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - what everybody calls it

from depl.neural import _int8_kernels as kernels
from depl.neural.layers import to_int8

N, SIZE = 7, 48


class Products:
    """Integer products of a linear layer, and its output in floats."""

    def __init__(self, rng, width=SIZE):
        self.integers = rng.integers(-30_000, 30_000, (N, width)).astype(np.int32)
        self.scales = rng.uniform(1e-3, 2e-3, N).astype(np.float32)
        self.columns = rng.uniform(0.02, 0.1, width).astype(np.float32)
        self.bias = rng.standard_normal(width).astype(np.float32)
        exact = self.integers * self.scales[:, None].astype(np.float64) * self.columns + self.bias
        self.floats = torch.tensor(exact, dtype=torch.float32)

    @property
    def arguments(self):
        return self.integers, self.scales, self.columns, self.bias


def room(width=SIZE):
    return np.empty((N, width), np.int8), np.empty(N, np.float32)


def assert_nearly_in_bytes(values, scales, expected):
    """Within a rounding of the 8-bit integers of what is expected."""
    wanted, scale = to_int8(expected)
    np.testing.assert_allclose(scales, scale.numpy().ravel(), rtol=1e-4)
    assert np.abs(values.astype(int) - wanted.numpy()).max() <= 1
    assert (values != wanted.numpy()).mean() < 0.02


def test_quantizing_is_that_of_the_weights(rng):
    x = rng.standard_normal((N, SIZE)).astype(np.float32)
    x[3] = 0.0
    values, scales = room()
    kernels.quantize(x, values, scales)
    wanted, scale = to_int8(torch.from_numpy(x))
    assert np.array_equal(values, wanted.numpy())
    np.testing.assert_allclose(scales, scale.numpy().ravel(), rtol=1e-6)


def test_products_become_the_output_of_the_layer(rng):
    p, out = Products(rng), np.empty((N, SIZE), np.float32)
    kernels.dequantize(*p.arguments, out)
    np.testing.assert_allclose(out, p.floats.numpy(), rtol=1e-5, atol=1e-5)


def test_gelu(rng):
    p = Products(rng)
    values, scales = room()
    kernels.gelu(*p.arguments, values, scales)
    assert_nearly_in_bytes(values, scales, F.gelu(p.floats))


def test_adding_and_normalising(rng):
    p = Products(rng)
    x = rng.standard_normal((N, SIZE)).astype(np.float32)
    gain, shift = rng.standard_normal((2, SIZE)).astype(np.float32)
    weights = torch.from_numpy(gain), torch.from_numpy(shift)
    expected = F.layer_norm(torch.from_numpy(x) + p.floats, (SIZE,), *weights, 1e-3)
    values, scales = room()
    kernels.add_and_norm(*p.arguments, x, gain, shift, np.float32(1e-3), values, scales)
    np.testing.assert_allclose(x, expected.numpy(), rtol=1e-4, atol=1e-4)
    assert_nearly_in_bytes(values, scales, expected)


@pytest.mark.parametrize("size", [1.0, 50.0, 1e4])
def test_softmax_of_texts_of_several_lengths(rng, size):
    lengths, longest = np.array([5, 2, 9]), 9
    scores = torch.tensor(size * rng.standard_normal((3, 2, longest, longest))).bfloat16()
    found = scores.clone()
    kernels.softmax(found.view(torch.int16).numpy().view(np.uint16), lengths)
    for text, n in enumerate(lengths):
        own = scores[text, :, :n, :n].float()
        expected = torch.softmax(own * np.log(2), -1)
        torch.testing.assert_close(found[text, :, :n, :n].float(), expected, rtol=0, atol=3e-3)
        assert not found[text, :, :n, n:].any()


def test_tokens_go_to_their_places_and_come_back(rng):
    """Through batches of texts x heads, as values in bfloat16."""
    heads, size, lengths = 2, 4, [3, 4]
    p = Products(rng, 3 * heads * size)
    texts = np.repeat(np.arange(2), lengths)
    positions = np.concatenate([np.arange(n) for n in lengths])
    out = torch.zeros(3, 2, heads, 4, size, dtype=torch.bfloat16)
    bits = out.view(torch.int16).numpy().view(np.uint16)
    kernels.spread(*p.arguments, texts, positions, np.float32(0.5), bits)
    whole = p.floats.view(N, 3, heads, size) * torch.tensor([0.5, 1.0, 1.0])[:, None, None]
    for i, (text, at) in enumerate(zip(texts, positions, strict=True)):
        found = out[:, text, :, at].float()
        torch.testing.assert_close(found, whole[i].bfloat16().float(), rtol=0.01, atol=1e-3)
    values, scales = room(heads * size)
    kernels.gather(bits[2], texts, positions, values, scales)
    assert_nearly_in_bytes(values, scales, out[2, texts, :, positions].float().flatten(1))
